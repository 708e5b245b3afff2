"""
Pods that wait for a node on which room is being made, and the room they hold there.

A scheduler nominates a node for a pod when it evicts others in the pod's favour. Until the victims are gone, pods of
lower priority must not take the room: their filters count the nominated pods of a node as if they ran there.

    nominated ──(bound, deleted, or the node no longer fits)──> ended
"""

from collections.abc import Iterable, Iterator

import msgspec

from lamina.model.pod import Pod, PodUid


class NominatedPod(msgspec.Struct, frozen=True):
    """A nominated pod, as data."""

    pod: Pod
    node: str
    victims: tuple[PodUid, ...]


class Nominations:
    """Which pods are nominated for which node."""

    def __init__(self) -> None:
        """Start without any."""
        self.nodes: dict[PodUid, str] = {}
        """The node of each nominated pod; to be read only, and empty as a rule: every decision looks here first."""
        self._on_node: dict[str, dict[PodUid, Pod]] = {}
        self._victims: dict[PodUid, frozenset[PodUid]] = {}

    def __len__(self) -> int:
        """Count the nominated pods."""
        return len(self.nodes)

    def node_of(self, uid: PodUid) -> str:
        """Return the node a pod is nominated for; empty when it is not."""
        return self.nodes.get(uid, "")

    def get(self, uid: PodUid) -> tuple[Pod, str] | None:
        """Return a nominated pod, as it was last seen, and its node; None when it is not nominated."""
        node = self.nodes.get(uid)
        return None if node is None else (self._on_node[node][uid], node)

    def victims_of(self, uid: PodUid) -> frozenset[PodUid]:
        """Return the pods whose eviction this scheduler asked for in favour of a pod."""
        return self._victims.get(uid, frozenset())

    def put(self, pod: Pod, node: str, victims: frozenset[PodUid] = frozenset()) -> None:
        """Nominate *node* for a pod, instead of what was nominated before; *victims* make room for it there."""
        if self.nodes.get(pod.uid) == node:
            victims |= self.victims_of(pod.uid)
        self.remove(pod.uid)
        if victims:
            self._victims[pod.uid] = victims
        self.nodes[pod.uid] = node
        self._on_node.setdefault(node, {})[pod.uid] = pod

    def remove(self, uid: PodUid) -> tuple[Pod, str] | None:
        """End a pod's nomination; return the pod and its node, None when it had none."""
        node = self.nodes.pop(uid, None)
        if node is None:
            return None
        self._victims.pop(uid, None)
        pods = self._on_node[node]
        pod = pods.pop(uid)
        if not pods:
            del self._on_node[node]
        return pod, node

    def snapshot(self) -> tuple[NominatedPod, ...]:
        """Return the nominated pods, as data."""
        return tuple(
            NominatedPod(pod, node, tuple(sorted(self.victims_of(pod.uid))))
            for node, pods in self._on_node.items()
            for pod in pods.values()
        )

    def restore(self, nominated: Iterable[NominatedPod]) -> None:
        """Know what the snapshot was taken of; no pod may be nominated yet."""
        for one in nominated:
            self.put(one.pod, one.node, frozenset(one.victims))

    def ahead_of(self, pod: Pod) -> Iterator[tuple[str, list[Pod]]]:
        """Go through the nodes where nominated pods come before *pod*: others, of equal or higher priority."""
        for node, pods in self._on_node.items():
            ahead = [one for one in pods.values() if one.priority >= pod.priority and one.uid != pod.uid]
            if ahead:
                yield node, ahead
