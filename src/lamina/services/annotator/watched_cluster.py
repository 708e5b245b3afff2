"""
Nodes, and pods where they are needed, kept up to date by watches.

A node that says it is not ready, or has said nothing yet, is told apart here and nowhere else: who places pods goes by
taints.
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
"""Seconds until everything was seen, or somebody is told why not."""


class NodeReadiness(msgspec.Struct, frozen=True):
    """A node, and whether it is ready for pods."""

    node: Node
    ready: bool


def decode_node_readiness(data: bytes | msgspec.Raw) -> NodeReadiness:
    """Read a v1 Node. Raises WireError."""
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
    """Nobody decides here; what is watched is looked up."""

    def put(self, event: Event, /) -> None:
        """Let it go."""

    def ring(self) -> None:
        """Wake nobody."""


class WatchedCluster:
    """What is there."""

    def __init__(self, client: KubeClient, *, pods: bool) -> None:
        """Watch nodes through *client*, and *pods* if they are wanted."""
        self._intake = InformerSet(client, _DiscardedEvents(), [NODE_READINESS, PODS] if pods else [NODE_READINESS])

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._intake.run()

    async def seen(self, patience: float = SYNC_TIMEOUT) -> None:
        """Wait until everything was seen. Raises Unreachable when that takes too long."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while not self._intake.synced:
            if loop.time() > end:
                raise UnreachableError("the cluster", self.problem or "nodes could not be listed in time")
            await asyncio.sleep(BETWEEN_LOOKS)

    @property
    def problem(self) -> str:
        """Why something cannot be seen now; empty when everything can."""
        return next((one.problem for one in self._intake.reflectors.values() if one.problem), "")

    @property
    def follows(self) -> bool:
        """Whether everything was seen and nothing can have escaped us since."""
        return all(one.synced and one.stale_since is None for one in self._intake.reflectors.values())

    def nodes(self) -> dict[str, Node]:
        """Nodes by name."""
        return {machine.node.name: machine.node for machine in self._machines()}

    def ready(self) -> set[str]:
        """Nodes that say they are ready."""
        return {machine.node.name for machine in self._machines() if machine.ready}

    def pods(self) -> Iterable[Pod]:
        """Pods that have not ended."""
        pods: Iterable[Pod] = self._intake.reflectors[PODS.resource.kind].store.items()
        return pods

    def _machines(self) -> Iterable[NodeReadiness]:
        machines: Iterable[NodeReadiness] = self._intake.reflectors[NODE_READINESS.resource.kind].store.items()
        return machines
