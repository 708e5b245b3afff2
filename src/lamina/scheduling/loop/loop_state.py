"""What the loop and its cycle share: the cluster, pods that wait, pods in a binding cycle, and the commands so far."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from lamina.model.decision import Decision, pending_message
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind, Command, DoWork, Nominate, ReportPluginError, ReportUnschedulable
from lamina.scheduling.contract.status import Code, Status, raised
from lamina.scheduling.loop.binding_cycle import BindingCycle, BindingCycles
from lamina.scheduling.loop.scheduling_queue import PodBackoff, SchedulingQueue
from lamina.scheduling.runtime.explanation import Detail
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.cluster_state import ClusterState
from lamina.scheduling.state.plugin_context import PluginContext

MakeProfiles = Callable[[PluginContext], Mapping[str, Profile]]


class LoopSettings(msgspec.Struct, frozen=True):
    """How the loop runs, apart from its profiles."""

    backoff: PodBackoff = PodBackoff()
    detail: Detail = "brief"
    cycles_per_feed: int = 0
    """Decide at most this many pods before returning (0: as many as there are); the rest follows at the next feed."""


class LoopState:
    """The parts of one loop."""

    def __init__(self, make_profiles: MakeProfiles, settings: LoopSettings) -> None:
        """Start at time 0 with an empty cluster."""
        self.settings = settings
        self.cluster = ClusterState()
        self.queue = SchedulingQueue(settings.backoff)
        self.bindings = BindingCycles(self._give_up, self.plugin_raised)
        self.cluster.columns.fact_raised = self._fact_raised
        self.profiles = dict(make_profiles(self.cluster.context))
        self.changes = 0
        """How many changes there were so far."""
        self.commands: list[Command] = []

    @property
    def now(self) -> float:
        """The time of the last `TimePassed`."""
        return self.cluster.now

    def do(self, *commands: Command) -> None:
        """Ask the host to perform commands."""
        self.commands.extend(commands)

    def withdraw(self, uid: PodUid) -> bool:
        """
        Take back the pending `Bind` or `DoWork` of a pod, and return whether there was one.

        Commands stay pending while another instance leads: `take` adds them, only `decide` hands them out.
        """
        before = len(self.commands)
        self.commands = [one for one in self.commands if not (isinstance(one, Bind | DoWork) and one.pod.uid == uid)]
        return len(self.commands) < before

    def react(self, changes: Iterable[ClusterChange]) -> None:
        """Wake waiting pods that changes may help."""
        for change in changes:
            self.changes += 1
            self.queue.react(change)

    def nominate(self, pod: Pod, node: str, victims: Iterable[Pod] = ()) -> None:
        """Hold room for a pod on *node*, where *victims* are to go, and give back what was held elsewhere."""
        self.do(Nominate(pod, node))
        before = self.cluster.nominations.node_of(pod.uid)
        if before and before != node:
            self.react(self.cluster.end_nomination(pod.uid))
        self.cluster.nominate(pod, node, victims)

    def end_nomination(self, pod: Pod) -> None:
        """Give back the room that was held for a pod."""
        self.do(Nominate(pod, ""))
        self.react(self.cluster.end_nomination(pod.uid))

    def tell(self, pod: Pod, decision: Decision) -> None:
        """Tell a pod's owner why it waits, unless that is what was told last."""
        queued = self.queue.get(pod.uid)
        if queued is not None:
            if queued.told == decision.message:
                return
            queued.told = decision.message
        self.do(ReportUnschedulable(pod, decision))

    def plugin_raised(self, pod: Pod | None, plugin: str, point: str, status: Status) -> None:
        """Tell the operator that a plugin raised where no attempt could fail for it."""
        self.do(ReportPluginError(plugin, point, status.message, pod))

    def _fact_raised(self, fact: str, method: str, error: Exception) -> None:
        self.plugin_raised(None, fact, method, raised(error))

    def _give_up(self, underway: BindingCycle, status: Status) -> None:
        """Take a pod back that had a node and could not be bound to it."""
        queued, pod = underway.queued, underway.queued.pod
        stale = self.changes > underway.changes
        if underway.latest is not None:
            queued.pod = underway.latest
            queued.sign()
        self.cluster.forget(pod)
        # The others first: what this pod gives back must not count as news for itself.
        self.react([ClusterChange(ChangeKind.POD_REMOVED, self.cluster.row(underway.node), pod=pod)])
        broke = status.code is Code.ERROR
        refused_by = frozenset([status.plugin]) if status.plugin and not broke else frozenset[str]()
        self.queue.put_back(queued, refused_by, broke=broke, stale=stale, alone=True)
        # One node was asked, the chosen one: so says kube-scheduler, too.
        message = status.message if broke else pending_message(1, dict.fromkeys(status.reasons, 1))
        self.tell(
            pod,
            msgspec.structs.replace(
                underway.decision, at=self.now, outcome="failed" if broke else "unschedulable", message=message
            ),
        )
