"""
Nominated pods: pods that wait for their victims to leave a node, and the resources reserved for them there.

The scheduler nominates a node for a pod when it evicts other pods in its favour. Until the victims are gone, pods of
lower priority must not take the free resources. Their filters therefore count nominated pods as if they ran there.

    nominated ──(bound, deleted, or the node no longer fits)──> ended
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from lamina.model.pod import Pod, PodUid


class NominatedPod(msgspec.Struct, frozen=True):
    """A nominated pod in a snapshot."""

    pod: Pod
    node: str
    victims: tuple[PodUid, ...]


GoesFirst = Callable[[Pod, Pod], bool]
"""Returns whether room is kept for a nominated pod, given first, when the other pod is decided."""


def by_priority(nominated: Pod, pod: Pod) -> bool:
    """Keep room for pods of equal or higher priority, as upstream."""
    return nominated.priority >= pod.priority


class Nominations:
    """Nominated pods by node."""

    def __init__(self) -> None:
        """Start without nominations."""
        self.goes_first: GoesFirst = by_priority
        """The rule of the scheduler that owns the cluster state; a host of other plugins sets it."""
        self.nodes: dict[PodUid, str] = {}
        """The node of each nominated pod; read-only. Usually empty, and every decision checks it first."""
        self._on_node: dict[str, dict[PodUid, Pod]] = {}
        self._victims: dict[PodUid, frozenset[PodUid]] = {}

    def __len__(self) -> int:
        """Return the number of nominated pods."""
        return len(self.nodes)

    def node_of(self, uid: PodUid) -> str:
        """Return the node a pod is nominated for, or an empty string."""
        return self.nodes.get(uid, "")

    def get(self, uid: PodUid) -> tuple[Pod, str] | None:
        """Return a nominated pod in its last seen state, with its node; None if it is not nominated."""
        node = self.nodes.get(uid)
        return None if node is None else (self._on_node[node][uid], node)

    def victims_of(self, uid: PodUid) -> frozenset[PodUid]:
        """Return the pods that this scheduler evicts in favour of a pod."""
        return self._victims.get(uid, frozenset())

    def put(self, pod: Pod, node: str, victims: frozenset[PodUid] = frozenset()) -> None:
        """Nominate *node* for a pod and replace its earlier nomination; *victims* are evicted for it."""
        if self.nodes.get(pod.uid) == node:
            victims |= self.victims_of(pod.uid)
        self.remove(pod.uid)
        if victims:
            self._victims[pod.uid] = victims
        self.nodes[pod.uid] = node
        self._on_node.setdefault(node, {})[pod.uid] = pod

    def remove(self, uid: PodUid) -> tuple[Pod, str] | None:
        """End a pod's nomination; return the pod and its node, or None if it had none."""
        node = self.nodes.pop(uid, None)
        if node is None:
            return None
        self._victims.pop(uid, None)
        pods = self._on_node[node]
        pod = pods.pop(uid)
        if not pods:
            del self._on_node[node]
        return pod, node

    def on(self, node: str) -> list[Pod]:
        """Return the pods that are nominated for a node."""
        return list(self._on_node.get(node, {}).values())

    def below(self, pod: Pod, node: str) -> list[Pod]:
        """Return the pods that are nominated for a node and do not go before *pod*."""
        return [one for one in self.on(node) if one.uid != pod.uid and not self.goes_first(one, pod)]

    def waiting_for(self, victim: PodUid) -> list[Pod]:
        """Return the nominated pods in whose favour a pod is evicted."""
        return [
            self._on_node[self.nodes[uid]][uid] for uid, victims in list(self._victims.items()) if victim in victims
        ]

    def snapshot(self) -> tuple[NominatedPod, ...]:
        """Return the nominated pods as data."""
        return tuple(
            NominatedPod(pod, node, tuple(sorted(self.victims_of(pod.uid))))
            for node, pods in self._on_node.items()
            for pod in pods.values()
        )

    def restore(self, nominated: Iterable[NominatedPod]) -> None:
        """Restore nominations from a snapshot, into an empty object."""
        for one in nominated:
            self.put(one.pod, one.node, frozenset(one.victims))

    def ahead_on(self, node: str, pod: Pod) -> list[Pod]:
        """Return the other pods that are nominated for a node and go before *pod*."""
        return self._ahead(self._on_node.get(node, {}), pod)

    def ahead_of(self, pod: Pod) -> Iterator[tuple[str, list[Pod]]]:
        """Yield nodes with other nominated pods that go before *pod*, and these pods."""
        for node, pods in self._on_node.items():
            ahead = self._ahead(pods, pod)
            if ahead:
                yield node, ahead

    def _ahead(self, nominated: dict[PodUid, Pod], pod: Pod) -> list[Pod]:
        return [one for one in nominated.values() if one.uid != pod.uid and self.goes_first(one, pod)]
