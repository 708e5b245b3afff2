"""Nodes that place plugins keep free for waiting pods, until their next placement."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from lamina.model.decision import Refusal
from lamina.model.pod import PodUid

KEPT: Final = "node(s) were kept free for a pod that waits for more room"


Keeper = tuple[str, str]
"""A profile and its plugin, by name: each profile has its own instance of a plugin."""


class KeptNode(msgspec.Struct, frozen=True):
    """A node that a profile's plugin keeps for some waiting pods."""

    profile: str
    plugin: str
    node: str
    pods: tuple[PodUid, ...]


class KeptNodes:
    """Kept nodes by profile and plugin. Usually empty, and every decision checks that first."""

    def __init__(self) -> None:
        """Start without kept nodes."""
        self._nodes: dict[Keeper, dict[str, frozenset[PodUid]]] = {}

    def __len__(self) -> int:
        """Return the number of plugins that keep nodes."""
        return len(self._nodes)

    def keep(self, keeper: Keeper, nodes: dict[str, frozenset[PodUid]]) -> bool:
        """Replace the nodes that a profile's plugin keeps; return whether one of the earlier ones became free."""
        before = self._nodes.pop(keeper, {})
        if nodes:
            self._nodes[keeper] = nodes
        return not before.keys() <= nodes.keys()

    def refusals(self, uid: PodUid, placer: Keeper | None = None) -> dict[str, Refusal]:
        """Return the nodes that a pod cannot use, with the reason; *placer* places the pod."""
        return {
            node: Refusal(keeper[1], (KEPT,))
            for keeper, nodes in self._nodes.items()
            if keeper != placer
            for node, pods in nodes.items()
            if uid not in pods
        }

    def release(self, waits: Callable[[PodUid], bool]) -> list[str]:
        """Free the nodes of pods that wait no longer; return the names of the plugins that kept them."""
        freed: list[str] = []
        for keeper, nodes in list(self._nodes.items()):
            left = {node: still for node, pods in nodes.items() if (still := frozenset(filter(waits, pods)))}
            if left != nodes and self.keep(keeper, left):
                freed.append(keeper[1])
        return freed

    def snapshot(self) -> tuple[KeptNode, ...]:
        """Return the kept nodes as data."""
        return tuple(
            KeptNode(profile, plugin, node, tuple(sorted(pods)))
            for (profile, plugin), nodes in self._nodes.items()
            for node, pods in nodes.items()
        )

    def restore(self, kept: Iterable[KeptNode]) -> None:
        """Restore the kept nodes of a snapshot."""
        for one in kept:
            self._nodes.setdefault((one.profile, one.plugin), {})[one.node] = frozenset(one.pods)
