"""
Watched nodes, and pods if an annotator needs them.

Only this module distinguishes nodes that are not ready from ready ones; schedulers use taints for that.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.clients.kube.errors import UnreachableError
from lamina.clients.kube.reflector import ReflectedResource
from lamina.clients.kube.transport import KubeClient
from lamina.model.events import Event, NodeGone, NodeSeen
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.services.informers.informer_set import InformerSet
from lamina.services.informers.watched_resources import PODS, WatchedResource
from lamina.wire.kube.codec import decode_node
from lamina.wire.kube.node_ready import decode_ready

BETWEEN_LOOKS: Final = 0.05
SYNC_TIMEOUT: Final = 30.0
"""Seconds to wait for the initial sync before it fails."""


class NodeReadiness(msgspec.Struct, frozen=True):
    """A node, and whether it is ready."""

    node: Node
    ready: bool


def decode_node_readiness(data: bytes | msgspec.Raw) -> NodeReadiness:
    """Decode a v1 Node. Raises WireError."""
    node = decode_node(bytes(data))
    return NodeReadiness(node, decode_ready(data, node.name))


NODE_READINESS: Final = WatchedResource[NodeReadiness](
    ReflectedResource(path="/api/v1/nodes", kind="Node"),
    decode_node_readiness,
    lambda machine: machine.node.name,
    lambda machine: NodeSeen(machine.node),
    lambda machine: NodeGone(machine.node.name),
)


class _DiscardedEvents:
    """Discards events: the annotator reads the reflectors' stores instead."""

    def put(self, event: Event, /) -> None:
        """Discard the event."""

    def wake(self) -> None:
        """Do nothing."""


class WatchedCluster:
    """Nodes and pods of the cluster, kept up to date by watches."""

    def __init__(self, client: KubeClient, *, pods: bool) -> None:
        """Watch nodes through *client*; also pods if *pods* is true."""
        self._informers = InformerSet(client, _DiscardedEvents(), [NODE_READINESS, PODS] if pods else [NODE_READINESS])

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._informers.run()

    async def seen(self, patience: float = SYNC_TIMEOUT) -> None:
        """Wait until the caches are synced. Raises Unreachable after *patience* seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while not self._informers.synced:
            if loop.time() > end:
                raise UnreachableError("the cluster", self.problem or "the caches did not sync in time")
            await asyncio.sleep(BETWEEN_LOOKS)

    @property
    def problem(self) -> str:
        """Why a resource cannot be watched now; empty if all can."""
        return next((one.problem for one in self._informers.reflectors.values() if one.problem), "")

    @property
    def follows(self) -> bool:
        """Whether the caches are synced and all watches are up."""
        return all(one.synced and one.stale_since is None for one in self._informers.reflectors.values())

    def nodes(self) -> dict[str, Node]:
        """Return nodes by name."""
        return {machine.node.name: machine.node for machine in self._machines()}

    def ready(self) -> set[str]:
        """Return the names of ready nodes."""
        return {machine.node.name for machine in self._machines() if machine.ready}

    def pods(self) -> Iterable[Pod]:
        """Return the pods that have not ended."""
        pods: Iterable[Pod] = self._informers.reflectors[PODS.resource.kind].store.items()
        return pods

    def _machines(self) -> Iterable[NodeReadiness]:
        machines: Iterable[NodeReadiness] = self._informers.reflectors[NODE_READINESS.resource.kind].store.items()
        return machines
