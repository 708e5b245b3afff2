"""State shared by the loop and its scheduling cycle: cluster, queue, binding cycles, profiles and pending commands."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from lamina.model.decision import Decision, pending_message
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind, Command, DoWork, Nominate, ReportPluginError, ReportUnschedulable
from lamina.scheduling.contract.extender_chain import CalledExtender, ExtenderChain
from lamina.scheduling.contract.status import Code, Status, raised
from lamina.scheduling.loop.batch_queue import BatchQueue
from lamina.scheduling.loop.binding_cycle import BindingCycle, BindingCycles
from lamina.scheduling.loop.extender_waits import ExtenderWaits
from lamina.scheduling.loop.kept_nodes import KeptNodes
from lamina.scheduling.loop.scheduling_queue import PodBackoff
from lamina.scheduling.runtime.explanation import Detail
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.cluster_state import ClusterState
from lamina.scheduling.state.plugin_context import PluginContext

MakeProfiles = Callable[[PluginContext], Mapping[str, Profile]]


class LoopSettings(msgspec.Struct, frozen=True):
    """Settings of the loop, apart from its profiles."""

    backoff: PodBackoff = PodBackoff()
    detail: Detail = "brief"
    cycles_per_feed: int = 0
    """Maximum number of pods decided per feed; 0 for all that are ready. The next feed continues."""
    extenders: tuple[CalledExtender, ...] = ()
    """Extenders of other vendors that the host calls for the loop; a host that cannot call any passes none."""


class LoopState:
    """The parts of one loop."""

    def __init__(self, make_profiles: MakeProfiles, settings: LoopSettings) -> None:
        """Start at time 0 with an empty cluster."""
        self.settings = settings
        self.cluster = ClusterState()
        self.queue = BatchQueue(settings.backoff)
        self.chain = ExtenderChain(settings.extenders)
        self.waits = ExtenderWaits()
        self.kept = KeptNodes()
        self.bindings = BindingCycles(self._give_up, self.plugin_raised, self.chain.binder)
        self.cluster.columns.fact_raised = self._fact_raised
        self.profiles = dict(make_profiles(self.cluster.context))
        self.changes = 0
        """Number of cluster changes so far."""
        self.commands: list[Command] = []
        self.evictions_off_until = 0.0
        """No pod is evicted before this time: the API server rejected an eviction for lack of permission."""

    @property
    def evictions_off(self) -> bool:
        """Whether no pod is evicted now."""
        return self.now < self.evictions_off_until

    @property
    def now(self) -> float:
        """The time of the last `TimePassed`."""
        return self.cluster.now

    def do(self, *commands: Command) -> None:
        """Add commands for the host."""
        self.commands.extend(commands)

    def withdraw(self, uid: PodUid) -> bool:
        """
        Remove the pending `Bind` or `DoWork` of a pod; return whether there was one.

        Commands stay pending while another instance leads: `take` adds them, and only `decide` returns them.
        """
        before = len(self.commands)
        self.commands = [one for one in self.commands if not (isinstance(one, Bind | DoWork) and one.pod.uid == uid)]
        return len(self.commands) < before

    def react(self, changes: Iterable[ClusterChange]) -> None:
        """Wake waiting pods that the changes may help."""
        for change in changes:
            self.changes += 1
            held = self.cluster.nominated_on(change.row) if self.cluster.nominations.nodes else ()
            self.queue.react(change, held)
            if held and change.kind is ChangeKind.POD_REMOVED:
                self._wake_nominated(change.row, held)

    def _wake_nominated(self, row: int, held: Iterable[Pod]) -> None:
        """
        Wake the pods nominated for a node once no evicted pod is left there.

        They evicted no others meanwhile. Where the node does not fit them, no other change might wake them.
        """
        node = self.cluster.columns.nodes[row]
        if node is None or any(map(self.cluster.leaves, self.cluster.cache.on(node.name))):
            return
        for pod in held:
            queued = self.queue.get(pod.uid)
            if queued is not None and queued.place == "unschedulable":
                self.queue.wake(queued)

    def nominate(self, pod: Pod, node: str, victims: Iterable[Pod] = ()) -> None:
        """Reserve resources for a pod on *node*, where *victims* are evicted, and end its earlier nomination."""
        self.do(Nominate(pod, node))
        before = self.cluster.nominations.node_of(pod.uid)
        if before and before != node:
            self.react(self.cluster.end_nomination(pod.uid))
        self.cluster.nominate(pod, node, victims)

    def end_nomination(self, pod: Pod) -> None:
        """End a pod's nomination and release what was reserved for it."""
        self.do(Nominate(pod, ""))
        self.react(self.cluster.end_nomination(pod.uid))

    def report_unschedulable(self, pod: Pod, decision: Decision) -> None:
        """Report to a pod's owner why it waits, unless the last report had the same message."""
        queued = self.queue.get(pod.uid)
        if queued is not None:
            if queued.told == decision.message:
                return
            queued.told = decision.message
        self.do(ReportUnschedulable(pod, decision))

    def plugin_raised(self, pod: Pod | None, plugin: str, point: str, status: Status) -> None:
        """Report to the operator that a plugin raised outside of a pod's attempt."""
        self.do(ReportPluginError(plugin, point, status.message, pod))

    def _fact_raised(self, fact: str, method: str, error: Exception) -> None:
        self.plugin_raised(None, fact, method, raised(error))

    def _give_up(self, cycle: BindingCycle, status: Status) -> None:
        """Requeue a pod whose binding cycle failed."""
        queued, pod = cycle.queued, cycle.queued.pod
        stale = self.changes > cycle.changes
        if cycle.latest is not None:
            queued.pod = cycle.latest
            queued.sign()
        self.cluster.forget(pod)
        # The other pods first: what this pod releases must not wake the pod itself.
        self.react([ClusterChange(ChangeKind.POD_REMOVED, self.cluster.row(cycle.node), pod=pod)])
        broke = status.code is Code.ERROR
        refused_by = frozenset([status.plugin]) if status.plugin and not broke else frozenset[str]()
        self.queue.put_back(queued, refused_by, broke=broke, stale=stale, alone=True)
        # As kube-scheduler: the message mentions one node, the chosen one.
        message = status.message if broke else pending_message(1, dict.fromkeys(status.reasons, 1))
        self.report_unschedulable(
            pod,
            msgspec.structs.replace(
                cycle.decision, at=self.now, outcome="failed" if broke else "unschedulable", message=message
            ),
        )
