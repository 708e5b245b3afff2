"""
Congestion of nodes from node-exporter's metrics: the annotation that the scheduling agent `congestion` reads.

Queries a Prometheus server for the shares that `congestion_level` combines. After a restart, a level continues from the
annotation if that is not too old.
"""

from collections.abc import Mapping
from typing import Final

from lamina.model.node import Node
from lamina.services.annotator import congestion_level
from lamina.services.annotator.annotation_plan import age_of, number_in
from lamina.services.annotator.congestion_level import CongestionLevel
from lamina.services.annotator.node_values import DesiredNumber, DesiredValues
from lamina.services.informers.usage.prometheus import Numbers, QueryClient, find_nodes, moment, numbers, remark
from lamina.services.informers.usage.queries import BY, Queries, promql
from lamina.services.informers.usage.series_match import merge_matches
from lamina.services.informers.usage.usage_source import SKEW

KEY: Final = "congestion-factor"
STAMP: Final = "lamina.dev/congestion-observed-at"
STEP: Final = 5.0
"""Points by which the level must change before a write."""
GOES_ON: Final = 600.0
"""Seconds for which an annotation is used after a restart."""

# Physical network devices, whose reported speed is meaningful, by the names that the kernel, systemd and udev give
# them. Container networks name their devices freely (EKS eni…, AKS azv…, GKE gke…, Antrea after the pod), and the
# kernel reports 10 Gbit/s for most of them. So only known names are used.
NAMES: Final = (
    "eth[0-9].*",
    "en[abcdopsuvPX][0-9].*",
    "enx[0-9a-f]{12}",
    "em[0-9].*",
    "p[0-9]+p[0-9].*",
    "ib[a-z]*[0-9].*",
    "wl[a-z]*[0-9].*",
    "bond[0-9].*",
    "team[0-9].*",
)
CARDS: Final = f'device=~"{"|".join(NAMES)}"'
DISKS: Final = 'device!~"(dm-|loop|md|sr|ram|zram|nbd).*"'
PRESSURE: Final = {"cpu": "cpu_waiting", "memory": "memory_waiting", "io": "io_waiting"}


class CongestionValues:
    """Computes the congestion of nodes."""

    def __init__(self, client: QueryClient, queries: Queries | None = None) -> None:
        """Query through *client*; *queries* gives the rate window and the label matchers."""
        self._client = client
        self._queries = queries or Queries()
        self._levels: dict[tuple[str, str], CongestionLevel] = {}
        """By name and uid."""
        self.remark = ""

    async def values(self, nodes: Mapping[str, Node], now: float) -> dict[str, DesiredValues]:
        """Measure once. Raises PrometheusError."""
        parts: list[tuple[str, Numbers]] = []
        warnings: list[str] = []
        at: float | None = None
        for part, query in expressions(self._queries):
            answer = await self._client.query(query, at=at)
            at = at if at is not None else moment(answer)
            warnings += answer.warnings
            parts.append((part, numbers(answer)))
        matches = await find_nodes(self._client, self._queries, nodes, [found for _, found in parts], at)
        shares: dict[str, dict[str, float]] = {}
        for (part, found), matched in zip(parts, matches, strict=True):
            for name, one in matched.series.items():
                known = shares.setdefault(name, {})
                known[part] = max(found[one], known.get(part, 0.0))
        self.remark = remark(merge_matches(matches), nodes, set(shares), warnings)
        if at is None or abs(at - now) > SKEW:
            if at is not None:
                self.remark = f"the clock of Prometheus differs from ours by more than {SKEW:g} s"
            return {}
        raw = {name: congestion_level.current_congestion(each) for name, each in sorted(shares.items())}
        self._levels = {
            (name, nodes[name].uid): self._level(nodes[name], now, value)
            for name, value in raw.items()
            if value is not None
        }
        return {
            name: DesiredValues({KEY: DesiredNumber(round(level.value), STEP)}, min(at, now))
            for (name, _), level in self._levels.items()
        }

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    def _level(self, node: Node, now: float, target: float) -> CongestionLevel:
        before = self._levels.get((node.name, node.uid))
        if before is None:
            written = number_in(node.annotations.get(KEY))
            age = age_of(node.annotations.get(STAMP), now)
            if written is None or age > GOES_ON:
                return CongestionLevel(target, now)
            before = CongestionLevel(min(max(written, 0.0), congestion_level.MOST), now - age)
        return before.follow(now, target)


def expressions(queries: Queries) -> list[tuple[str, str]]:
    """Return the queries, each with the part that it measures."""
    span = f"[{promql(queries.rate)}]"
    asked = [
        (part, f"rate(node_pressure_{metric}_seconds_total{queries.among()}{span})")
        for part, metric in PRESSURE.items()
    ]
    cards = queries.among(CARDS)
    asked += [
        ("network", f"rate(node_network_{way}_bytes_total{cards}{span}) / (node_network_speed_bytes{cards} > 0)")
        for way in ("receive", "transmit")
    ]
    asked.append(("disk", f"rate(node_disk_io_time_seconds_total{queries.among(DISKS)}{span})"))
    return [(part, f"max by ({BY}) ({expression})") for part, expression in asked]
