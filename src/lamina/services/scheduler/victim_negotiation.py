"""
What the extenders of other vendors have left of the proposed victims of one pod, and whether they may say so.

`extender_calls` makes one for each question about victims and passes the reply of each extender to it. The rules are
kube-scheduler's: a reply replaces what the earlier extenders left, names pods by uid, and may name other pods of a node
than the proposed ones. A node or a pod that does not exist makes the reply invalid. A node without victims makes it
invalid, too, unless the extender is ignorable: then the node is left out.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from lamina.clients.kube.extender_client import ExtenderError
from lamina.model.extender_answer import AllowedVictims
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import ProposedVictims
from lamina.scheduling.contract.extender_chain import CalledExtender
from lamina.services.scheduler.known_cluster import KnownCluster
from lamina.wire.extender.preemption_arguments import ExtenderVictims
from lamina.wire.kube.pod_encoder import encode_pod

UNKNOWN_NODE: Final = "extender {!r} claims to preempt pods on node {!r:.260}, but there is no such node"
UNKNOWN_POD: Final = (
    "extender {!r} claims to preempt pod (UID: {:.100}) on node {!r:.260}, but the pod is not found on that node"
)
NO_VICTIM: Final = "expected at least one victim pod on node {!r:.260}"
ENCODED_AT_ONCE: Final = 50
"""Pods that are encoded before other tasks of the event loop run."""


class VictimNegotiation:
    """The victims that are left, by node."""

    def __init__(self, proposed: Iterable[ProposedVictims], cluster: KnownCluster) -> None:
        """Start with the proposal of the loop."""
        self._cluster = cluster
        self._pods: dict[str, dict[str, Pod]] = {}
        """By node and uid: the pods that were named on it."""
        self._encoded: dict[str, bytes] = {}
        self.left: dict[str, ExtenderVictims] = {}
        for one in proposed:
            self._pods[one.node] = {pod.uid: pod for pod in one.victims}
            self.left[one.node] = ExtenderVictims(tuple([pod.uid for pod in one.victims]), one.violations)

    async def whole(self) -> dict[str, bytes]:
        """Return the victims as JSON by uid, for extenders that do not know them."""
        for node, victims in self.left.items():
            for uid in victims.uids:
                if uid not in self._encoded:
                    self._encoded[uid] = _encode(self._pods[node][uid])
                    if len(self._encoded) % ENCODED_AT_ONCE == 0:
                        await asyncio.sleep(0)
        return self._encoded

    def use(self, extender: CalledExtender, reply: Mapping[str, ExtenderVictims]) -> None:
        """Replace what is left with the reply of an extender. Raises ExtenderError, and then keeps what was left."""
        left: dict[str, ExtenderVictims] = {}
        for node, victims in reply.items():
            self._find(extender, node, victims)
            if victims.uids:
                left[node] = ExtenderVictims(tuple(dict.fromkeys(victims.uids)), victims.violations)
        for node, victims in reply.items():
            if not victims.uids and not extender.ignorable:
                raise ExtenderError(NO_VICTIM.format(node))
        self.left = left

    def allowed(self) -> tuple[AllowedVictims, ...]:
        """Return what is left, as the loop expects it: the proposed nodes in their order, then others."""
        named = [(node, self.left[node]) for node in self._pods if node in self.left]
        return tuple([AllowedVictims(node, tuple(map(PodUid, those.uids)), those.violations) for node, those in named])

    def _find(self, extender: CalledExtender, node: str, victims: ExtenderVictims) -> None:
        """Find the pods that a reply names: those proposed, even if they left meanwhile, or others on the node."""
        if node not in self._pods and node not in self._cluster.nodes():
            raise ExtenderError(UNKNOWN_NODE.format(extender.name, node))
        known = self._pods.setdefault(node, {})
        if all(uid in known for uid in victims.uids):
            return
        there = {str(pod.uid): pod for pod in self._cluster.pods_on(node)}
        for uid in victims.uids:
            pod = known.get(uid) or there.get(uid)
            if pod is None:
                raise ExtenderError(UNKNOWN_POD.format(extender.name, uid, node))
            known[uid] = pod


def _encode(pod: Pod) -> bytes:
    try:
        return msgspec.json.encode(encode_pod(pod))
    except ValueError as error:
        raise ExtenderError(f"victim {pod.key} cannot be written: {error}") from None
