"""
Usage of nodes from the cluster's metrics API, as ``kubectl top nodes`` shows it.

The API returns one number for each node, an average over some seconds, without history. This process keeps the history:
a deviation is available from three samples on, and a restart begins anew. A node without new samples is left out before
its samples expire. The API uses node names, so no matching is needed.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage
from lamina.services.informers.usage.queries import WINDOW
from lamina.services.informers.usage.samples import UsageSample, UsageSamples
from lamina.services.informers.usage.usage_source import some
from lamina.wire.errors import WireError
from lamina.wire.node_metrics import decode_node_metrics_list

PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
LIMIT: Final = 32 * 1024 * 1024
"""Bytes of a reply; 5,000 nodes need about 2 MB."""
TIMEOUT: Final = 10.0
SILENCE: Final = 180.0
"""Seconds without a new sample after which a node is left out: three times the longest interval of metrics-server."""


class MetricsApiClient(Protocol):
    """The method used of `lamina.clients.kube.transport.KubeClient`."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        limit: int = 0,
    ) -> bytes:
        """Send one request; return the body or raise."""
        ...


class MetricsServerUsage:
    """Samples the metrics API and keeps the history."""

    def __init__(
        self, client: MetricsApiClient, window: float = WINDOW, *, passing: Callable[[], float] = time.monotonic
    ) -> None:
        """Query through *client*, which the caller closes; *passing* returns monotonic seconds."""
        self._client = client
        self._window = window
        self._passing = passing
        self._samples: dict[tuple[str, str], UsageSamples] = {}
        """By name and uid: a recreated node starts without samples."""
        self._heard: dict[tuple[str, str], float] = {}
        """Monotonic time of each node's last new sample."""
        self.remark = ""
        """What was missing in the last measurement."""

    async def look(self, nodes: Mapping[str, Node], /) -> Sequence[NodeUsage]:
        """Measure once. Raises ApiError or Unreachable."""
        unreadable = await self._sample(nodes)
        since = self._passing() - SILENCE
        silent = {name for (name, _), at in self._heard.items() if at < since}
        told = [
            usage
            for (name, _), samples in sorted(self._samples.items())
            if name not in silent and (usage := samples.usage(name)) is not None
        ]
        self.remark = self._remark(nodes, {one.node for one in told}, silent, unreadable)
        return told

    async def close(self) -> None:
        """Do nothing: the caller of the constructor closes the client."""

    async def _sample(self, nodes: Mapping[str, Node]) -> int:
        """Add one sample for each node; return how many could not be read."""
        try:
            body = await self._client.request("GET", PATH, timeout=TIMEOUT, limit=LIMIT)
        except ApiError as error:
            if error.status not in (404, 503):
                raise
            words = "the metrics API is not available; install metrics-server, or use another source"
            raise UnreachableError(error.what, f"{error.status}: {words}") from None
        try:
            metrics = decode_node_metrics_list(body)
        except WireError as error:
            raise UnreachableError(f"GET {PATH}", f"the reply is no metrics list ({error.problem})") from None
        there = {(name, node.uid) for name, node in nodes.items()}
        self._samples = {key: samples for key, samples in self._samples.items() if key in there}
        self._heard = {key: at for key, at in self._heard.items() if key in there}
        now, unreadable = self._passing(), 0
        for found in metrics:
            if found is None:
                unreadable += 1
            elif (node := nodes.get(found.node)) is not None:
                key = (node.name, node.uid)
                sample = UsageSample(found.at, found.over, found.cpu, found.memory)
                if self._samples.setdefault(key, UsageSamples(self._window)).add(sample):
                    self._heard[key] = now
        return unreadable

    def _remark(self, nodes: Mapping[str, Node], told: set[str], silent: set[str], unreadable: int) -> str:
        parts = []
        seen = {name for name, _ in self._samples}
        if missing := [name for name in nodes if name not in seen]:
            parts.append(f"the metrics API has no data for {some(missing)}")
        if silent:
            parts.append(f"the metrics API has no new data for {some(silent)} in the last {SILENCE:g} s")
        if new := seen - told - silent:
            parts.append(f"too few samples yet for {some(new)}")
        if unreadable:
            parts.append("some entries of the metrics API cannot be read")
        return "; ".join(parts)
