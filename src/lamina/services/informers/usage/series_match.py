"""
Matching of Prometheus series with nodes: the step at which most installations of load-aware schedulers fail.

A series names its node with a label: `node`, `nodename` or `kubernetes_node` after relabelling, else the host part of
`instance`. A node is known by its name, its label kubernetes.io/hostname, and its addresses.

- If a series names a node that does not exist here, it matches no node, whatever its `instance`: clusters share
  addresses.
- If no label names a node and `instance` does not match, the machine's own name (node_uname_info) is tried.
- A value that fits two nodes matches neither.
- If two series match one node, the one with the more trustworthy label is used.

Case and a trailing dot are ignored. Pure.
"""

import functools
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from lamina.model.node import Node
from lamina.model.plain import plural
from lamina.services.informers.usage.queries import LABELS
from lamina.services.informers.usage.usage_source import some

HOSTNAME: Final = "kubernetes.io/hostname"
INSTANCE: Final = LABELS.index("instance")
"""The last of the labels; those before it name a node directly."""

SeriesOwner = tuple[str, ...]
"""The values of `LABELS` of a series, in that order; empty strings for missing labels."""


def series_owner(labels: Mapping[str, str]) -> SeriesOwner:
    """Return the identifying label values of a series."""
    return tuple(labels.get(name, "") for name in LABELS)


class SeriesMatch(msgspec.Struct, frozen=True):
    """Result of matching series with nodes."""

    series: dict[str, SeriesOwner]
    """The series of each matched node."""
    unmatched_nodes: tuple[str, ...]
    """Nodes without a series."""
    unmatched_series: tuple[SeriesOwner, ...]
    """Series without a node."""
    doubled: int = 0
    """Series that were dropped because their node has a better one."""


def merge_matches(matches: Sequence[SeriesMatch]) -> SeriesMatch:
    """Merge the matches of several queries: a node is unmatched only if no query has a series for it."""
    series: dict[str, SeriesOwner] = {}
    for one in matches:
        series = {**one.series, **series}
    return SeriesMatch(
        series,
        tuple(sorted(set.intersection(*(set(one.unmatched_nodes) for one in matches)))),
        tuple(sorted({owner for one in matches for owner in one.unmatched_series})),
        max(one.doubled for one in matches),
    )


class NodeDirectory:
    """Index of nodes by name, hostname and address."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        """Index *nodes*; a node's own name always refers to that node."""
        self._nodes = nodes
        self._by_name: dict[str, str] = {}
        tiers: tuple[dict[str, set[str]], ...] = ({}, {}, {})
        for name, node in nodes.items():
            tiers[0].setdefault(plain(name), set()).add(name)
            if host := node.labels.get(HOSTNAME):
                tiers[1].setdefault(plain(host), set()).add(name)
            for address in node.addresses:
                tiers[2].setdefault(plain(address), set()).add(name)
        for tier in reversed(tiers):
            for called, names in tier.items():
                if len(names) == 1:
                    self._by_name[called] = min(names)
                else:
                    self._by_name.pop(called, None)

    def match(self, seen: Iterable[SeriesOwner], calls_itself: Mapping[str, str] | None = None) -> SeriesMatch:
        """Find the node of each series; *calls_itself* maps `instance` to the name in node_uname_info."""
        claims: dict[str, list[tuple[int, SeriesOwner]]] = {}
        unmatched: list[SeriesOwner] = []
        for one in sorted(set(seen)):
            found = self._find(one, calls_itself or {})
            if found is None:
                unmatched.append(one)
            else:
                claims.setdefault(found[0], []).append((found[1], one))
        return SeriesMatch(
            {name: min(claims[name])[1] for name in sorted(claims)},
            tuple(name for name in sorted(self._nodes) if name not in claims),
            tuple(unmatched),
            sum(len(each) - 1 for each in claims.values()),
        )

    def _find(self, one: SeriesOwner, calls_itself: Mapping[str, str]) -> tuple[str, int] | None:
        """Return the node of a series and the rank of the label that matched; 0 is the best."""
        for rank, value in enumerate(one):
            if rank == INSTANCE and any(one[:rank]):
                return None
            for called in names_in(value) if value else ():
                if called in self._by_name:
                    return self._by_name[called], rank
        instance = one[INSTANCE]
        node = self._by_name.get(plain(calls_itself.get(instance, "")))
        return None if node is None else (node, len(LABELS))


@functools.lru_cache(maxsize=65_536)  # every measurement has the same names
def plain(name: str) -> str:
    """Normalise a name for comparison; IPv6 addresses in their shortest form."""
    called = name.strip().rstrip(".").lower()
    try:
        return str(ipaddress.ip_address(called)) if called.count(":") > 1 else called
    except ValueError:
        return called


@functools.lru_cache(maxsize=65_536)
def names_in(value: str) -> tuple[str, ...]:
    """Return the node names that a label's value may contain: the whole value, and its host part."""
    return plain(value), host_part(value)


def host_part(instance: str) -> str:
    """Return the host of ``host:port``, ``[::1]:port`` or a URL."""
    rest = instance.rpartition("://")[2].partition("/")[0]
    if rest.startswith("["):
        return plain(rest[1:].partition("]")[0])
    host, colon, port = rest.rpartition(":")
    return plain(host if colon and port.isdigit() and ":" not in host else rest)


def describe_unmatched(matched: SeriesMatch, nodes: Mapping[str, Node]) -> str:
    """Describe the unmatched nodes and series; empty if every node is matched."""
    if not matched.unmatched_nodes:
        return ""
    if matched.series:
        known = f"{len(matched.series)} of {plural(len(nodes), 'node is', 'nodes are')} measured; no series for {some(matched.unmatched_nodes)}"
        return f"{known}{of_no_node(matched)}"
    if not matched.unmatched_series:
        return "the queries returned no series: is node-exporter scraped, and do the queries fit its metrics?"
    wanted = some(f"{name} ({'/'.join(nodes[name].addresses[:3]) or 'no address'})" for name in matched.unmatched_nodes)
    return (
        f"no series matches a node: got {_shown(matched.unmatched_series)}; expected {wanted}: "
        "relabel the scrape job so that a label `node` has the node's name"
    )


def of_no_node(matched: SeriesMatch) -> str:
    """Describe series without a node, as the end of a line; empty if there are none."""
    return f"; series without a node: {_shown(matched.unmatched_series)}" if matched.unmatched_series else ""


def _shown(unmatched: Iterable[SeriesOwner]) -> str:
    return some(
        next((f'{label}="{value}"' for label, value in zip(LABELS, one, strict=True) if value), "no such label")
        for one in unmatched
    )
