"""Which pods belong to which gang, how many of them the gang needs, and which of them have a node."""

from collections.abc import Iterable, Iterator

from lamina.model.pod import Pod, PodUid
from lamina.model.pod_groups import QUEUE_KEY, GroupRef, PodGroup, Workload, group_of
from lamina.model.resources import Amounts
from lamina.scheduling.state.cluster_objects import ClusterObjects

DEFAULT_QUEUE = "default"


class Gang:
    """A gang and its living pods."""

    __slots__ = ("failing", "members", "placed", "ref", "started")

    def __init__(self, ref: GroupRef) -> None:
        """Start without pods."""
        self.ref = ref
        self.members: dict[PodUid, Pod] = {}
        self.placed: set[PodUid] = set()
        """Members with a node, bound or chosen."""
        self.started = False
        """Whether the gang has been complete; pods that join or return later are then not held."""
        self.failing = False
        """Whether a member found no node since the gang was planned, so that all of them give their nodes back."""

    @property
    def key(self) -> str:
        """Identifies the gang."""
        return self.ref.key


class GangDirectory:
    """All living pods that were seen, and their gangs."""

    def __init__(self, objects: ClusterObjects) -> None:
        """Read PodGroups and Workloads from *objects*."""
        self._objects = objects
        self._gangs: dict[str, Gang] = {}
        self._of: dict[PodUid, str] = {}
        self._pods: dict[PodUid, Pod] = {}
        """Pods with a node, of gangs or not."""
        self._without: dict[PodUid, Pod] = {}
        """Pods without a node."""

    def seen(self, pod: Pod) -> None:
        """Note the present state of a pod."""
        if pod.finished or (pod.deleting and not pod.node_name):
            self.gone(pod.uid)
            return
        placed = bool(pod.node_name) or pod.uid in self._pods
        if placed:
            self._pods[pod.uid] = pod
            self._without.pop(pod.uid, None)
        else:
            self._without[pod.uid] = pod
        ref, before = group_of(pod), self._of.get(pod.uid, "")
        if before and (ref is None or ref.key != before):
            self._leave(pod.uid)
        if ref is None:
            return
        gang = self._gangs.get(ref.key)
        if gang is None:
            gang = self._gangs[ref.key] = Gang(ref)
        self._of[pod.uid] = ref.key
        gang.ref = ref
        gang.members[pod.uid] = pod
        # A chosen node is not written yet; the pod brings it along if it joins from another gang.
        if pod.node_name or (placed and before != ref.key):
            self._place(gang, pod.uid)

    def gone(self, uid: PodUid) -> None:
        """Forget a pod that left or ended."""
        self._pods.pop(uid, None)
        self._without.pop(uid, None)
        self._leave(uid)

    def _leave(self, uid: PodUid) -> None:
        """Take a pod out of its gang."""
        gang = self._gangs.get(self._of.pop(uid, ""))
        if gang is None:
            return
        gang.members.pop(uid, None)
        gang.placed.discard(uid)
        if not gang.members:
            del self._gangs[gang.key]

    def reserve(self, pod: Pod) -> Gang | None:
        """Note that a node was chosen for a pod; return its gang."""
        self._pods[pod.uid] = pod
        self._without.pop(pod.uid, None)
        gang = self.gang_of(pod)
        if gang is not None:
            self._place(gang, pod.uid)
        return gang

    def unreserve(self, pod: Pod) -> Gang | None:
        """Note that a pod lost its node; return its gang."""
        # The pod may have changed since its node was chosen.
        known = self._pods.pop(pod.uid, None)
        if known is not None:
            self._without[pod.uid] = known
        gang = self.gang_of(pod)
        if gang is not None:
            gang.placed.discard(pod.uid)
        return gang

    def gang_of(self, pod: Pod) -> Gang | None:
        """Return the gang of a pod that was seen; None if it has none."""
        return self._gangs.get(self._of.get(pod.uid, ""))

    def get(self, key: str) -> Gang | None:
        """Return a gang by its key."""
        return self._gangs.get(key)

    def placed(self) -> Iterator[Pod]:
        """Iterate over the living pods that have a node."""
        return iter(self._pods.values())

    def waiting(self, scheduler: str) -> Iterator[Pod]:
        """Iterate over the pods of a scheduler that have no node and no scheduling gate."""
        return (pod for pod in self._without.values() if pod.scheduler_name == scheduler and not pod.gates)

    def node_pod(self, uid: PodUid) -> Pod | None:
        """Return a living pod that has a node; None if there is none of that uid."""
        return self._pods.get(uid)

    def least(self, gang: Gang) -> int | None:
        """Return how many pods of a gang must start together; None while its object is missing."""
        ref = gang.ref
        if ref.min_member:
            return ref.min_member
        if ref.part:
            workload = self._objects.get(Workload, ref.namespace, ref.name)
            return None if workload is None else dict(workload.gangs).get(ref.part.partition("/")[0])
        found = self._group(ref)
        return None if found is None else found.min_member

    def lacks(self, gang: Gang) -> int:
        """Return how many more pods a gang needs on nodes before it can start; 0 once it has started."""
        least = self.least(gang)
        return 0 if gang.started or least is None else max(0, least - len(gang.placed))

    def timeout(self, gang: Gang) -> float | None:
        """Return the seconds that the gang may be incomplete, if its object names them."""
        found = self._group(gang.ref)
        return gang.ref.timeout if found is None or found.timeout is None else found.timeout

    def min_resources(self, gang: Gang) -> Amounts:
        """Return what must be free before the gang is placed."""
        found = self._group(gang.ref)
        return () if found is None else found.min_resources

    def queue_of(self, pod: Pod) -> str:
        """Return the name of a pod's queue."""
        ref = group_of(pod)
        found = None if ref is None else self._group(ref)
        own = found.queue if found is not None else ""
        return own or pod.annotations.get(QUEUE_KEY) or pod.labels.get(QUEUE_KEY) or DEFAULT_QUEUE

    def spared(self, victims: Iterable[Pod]) -> "SparedPods":
        """Return a count of how many pods each gang can lose; *victims* are lost already."""
        spared = SparedPods(self)
        for pod in victims:
            spared.lose(pod)
        return spared

    def _group(self, ref: GroupRef) -> PodGroup | None:
        return self._objects.get(PodGroup, ref.namespace, ref.name)

    def _place(self, gang: Gang, uid: PodUid) -> None:
        gang.placed.add(uid)
        least = self.least(gang)
        if least is not None and len(gang.placed) >= least:
            gang.started = True


class SparedPods:
    """How many pods each gang can lose and keep its minimum size."""

    def __init__(self, gangs: GangDirectory) -> None:
        """Start before any pod is lost."""
        self._gangs = gangs
        self._lost: dict[str, int] = {}

    def can_lose(self, pod: Pod) -> bool:
        """Return whether a pod can be evicted: its gang keeps its minimum size, or needs only one pod."""
        gang = self._gangs.gang_of(pod)
        if gang is None:
            return True
        least = self._gangs.least(gang) or 1
        return least == 1 or len(gang.placed) - self._lost.get(gang.key, 0) > least

    def lose(self, pod: Pod) -> None:
        """Note that a pod is evicted."""
        gang = self._gangs.gang_of(pod)
        if gang is not None:
            self._lost[gang.key] = self._lost.get(gang.key, 0) + 1
