"""What the loop and its cycle share: time, beliefs, pods that wait and pods on their way, and the commands so far."""

from collections.abc import Callable, Mapping

import msgspec

from lamina.layers.inventory import Inventory
from lamina.model.decision import Decision, pending_message
from lamina.model.pod import Pod
from lamina.scheduling.framework.changes import Change, Changed
from lamina.scheduling.framework.columns import NodeColumns
from lamina.scheduling.framework.commands import Command, TellPending
from lamina.scheduling.framework.context import Context
from lamina.scheduling.framework.explain import Detail
from lamina.scheduling.framework.profile import Profile
from lamina.scheduling.framework.rowlog import Facet
from lamina.scheduling.framework.status import Code, Status
from lamina.scheduling.loop.binding import Bindings, Underway
from lamina.scheduling.loop.cache import Cache
from lamina.scheduling.loop.queue import Backoff, SchedulingQueue

MakeProfiles = Callable[[Context], Mapping[str, Profile]]


class Settings(msgspec.Struct, frozen=True):
    """How the loop runs, apart from its profiles."""

    backoff: Backoff = Backoff()
    detail: Detail = "brief"
    cycles_per_feed: int = 0
    """Decide at most this many pods before returning (0: as many as there are); the rest follows at the next feed."""


class LoopState:
    """Everything the loop knows."""

    def __init__(self, make_profiles: MakeProfiles, settings: Settings) -> None:
        """Start at time 0 with an empty cluster."""
        self.settings = settings
        self.now = 0.0
        self.columns = NodeColumns()
        self.inventory = Inventory()
        self.queue = SchedulingQueue(settings.backoff)
        self.bindings = Bindings(self._give_up)
        self.context = Context(self.columns, self.inventory)
        self.cache = Cache(self.columns, self.context.usage)
        self.profiles = dict(make_profiles(self.context))
        self.changes = 0
        """How many changes there were so far."""
        self.commands: list[Command] = []

    def do(self, *commands: Command) -> None:
        """Ask the host to perform commands."""
        self.commands.extend(commands)

    def changed(self, change: Changed) -> None:
        """Let waiting pods profit from a change."""
        self.changes += 1
        self.queue.react(change)

    def assume(self, pod: Pod, node: str) -> None:
        """Count a pod on the node that was chosen for it, and expect its images there."""
        self.cache.assume(pod, node)
        self.context.load.note(pod)
        self.pulls_changed(self.inventory.expect(pod.uid, node, pod.images))

    def follow(self, pod: Pod, before: str | None) -> None:
        """Expect the images of a pod on the node it was seen on, until it runs; *before* is where it was believed to be."""
        if before is None:
            self.context.load.note(pod)
            if pod.node_name not in self.columns.rows:
                # It tells what size is usual, and there is no row whose change would tell that.
                self.columns.touch(Facet.CATALOG, 0)
        if pod.started:
            self.pulls_changed(self.inventory.ran(pod.uid))
        elif before != pod.node_name:
            self.pulls_changed(self.inventory.expect(pod.uid, pod.node_name, pod.images))

    def forget(self, pod: Pod) -> None:
        """Take an assumption back."""
        self.cache.forget(pod.uid)
        self.pulls_changed(self.inventory.gone(pod.uid))

    def pulls_changed(self, rows: list[int]) -> None:
        """Note that what is on its way to rows has changed."""
        for row in rows:
            self.columns.touch(Facet.PULLS, row)

    def row(self, node: str) -> int:
        """Return a node's row; -1 when it is not known."""
        return self.columns.rows.get(node, -1)

    def tell(self, pod: Pod, decision: Decision) -> None:
        """Tell a pod's owner why it waits, unless that is what was told last."""
        queued = self.queue.get(pod.uid)
        if queued is not None:
            if queued.told == decision.message:
                return
            queued.told = decision.message
        self.do(TellPending(pod, decision))

    def _give_up(self, underway: Underway, status: Status) -> None:
        """Take a pod back that had a node and could not be bound to it."""
        queued, pod = underway.queued, underway.queued.pod
        stale = self.changes > underway.changes
        if underway.latest is not None:
            queued.pod = underway.latest
            queued.sign()
        self.forget(pod)
        # The others first: what this pod gives back must not count as news for itself.
        self.changed(Changed(Change.POD_REMOVED, self.row(underway.node), pod=pod))
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
