"""
What nodes are used for, as the cluster's own metrics API tells it: what ``kubectl top nodes`` shows.

That is one number for each node, an average over some seconds, and no history. The history is kept here, in this process:
a deviation is known once there are three samples, and after a restart it begins anew. A node of which nothing new comes is
left out before its samples are too old to be believed. Nodes go by their names, so nothing has to be matched.
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
"""Bytes of an answer; 5,000 nodes have about 2 MB."""
TIMEOUT: Final = 10.0
SILENCE: Final = 180.0
"""Seconds without a new sample after which a node is not told of: three times what metrics-server takes at the most."""


class MetricsApiClient(Protocol):
    """What is needed of `lamina.clients.kube.transport.KubeClient`."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        limit: int = 0,
    ) -> bytes:
        """Ask once; return the body or raise."""
        ...


class MetricsServerUsage:
    """Asks the metrics API, and remembers."""

    def __init__(
        self, client: MetricsApiClient, window: float = WINDOW, *, passing: Callable[[], float] = time.monotonic
    ) -> None:
        """Ask through *client*, which is somebody else's to close; *passing* tells seconds that have passed."""
        self._client = client
        self._window = window
        self._passing = passing
        self._samples: dict[tuple[str, str], UsageSamples] = {}
        """By name and uid: a node that was made anew begins anew."""
        self._heard: dict[tuple[str, str], float] = {}
        """When something new was heard of it."""
        self.remark = ""
        """What was lacking at the last look."""

    async def look(self, nodes: Mapping[str, Node], /) -> Sequence[NodeUsage]:
        """Look once. Raises ApiError or Unreachable."""
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
        """Leave the client to whoever made it."""

    async def _sample(self, nodes: Mapping[str, Node]) -> int:
        """Add one sample of each node; return how many could not be read."""
        try:
            body = await self._client.request("GET", PATH, timeout=TIMEOUT, limit=LIMIT)
        except ApiError as error:
            if error.status not in (404, 503):
                raise
            words = "there is no metrics API; install metrics-server, or take another source"
            raise UnreachableError(error.what, f"{error.status}: {words}") from None
        try:
            metrics = decode_node_metrics_list(body)
        except WireError as error:
            raise UnreachableError(f"GET {PATH}", f"the answer is no list of metrics ({error.problem})") from None
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
            parts.append(f"the metrics API tells nothing of {some(missing)}")
        if silent:
            parts.append(f"the metrics API has had nothing new of {some(silent)} for {SILENCE:g} s")
        if new := seen - told - silent:
            parts.append(f"too few samples yet of {some(new)}")
        if unreadable:
            parts.append("some of what the metrics API sends cannot be read")
        return "; ".join(parts)
