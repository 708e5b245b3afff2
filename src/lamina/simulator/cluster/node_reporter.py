"""
What a scheduler gets to know of a node, and when.

A change of the node's images travels two ways: as a layer report of its agent, `Delays.report` later and never sooner
than `Delays.report_gap` after the one before; and in the list of the node's status, `Delays.status` later. What changes
while one of them is on its way travels with it: each shows the node as it is when it is told. A node that is there at
the beginning is known at once with all it holds, since the cluster was there before the run; of one that joins later the
status is known at once, and the first report of its agent comes as late as any other. Told through the same events as a
live service tells them.
"""

from collections.abc import Callable

from lamina.model.events import Event, LayersReported, NodeGone, NodeSeen
from lamina.simulator.cluster.lag import DrawLag
from lamina.simulator.cluster.virtual_node import Delays, VirtualNode
from lamina.simulator.engine import Environment, Timer
from lamina.simulator.engine.environment import INFINITY


class VirtualNodeReporter:
    """Speaks for one node."""

    __slots__ = (
        "_changed",
        "_delays",
        "_draw",
        "_environment",
        "_gone",
        "_node",
        "_reported_at",
        "_reporting",
        "_reports",
        "_status",
        "_tell",
    )

    def __init__(
        self, environment: Environment, node: VirtualNode, delays: Delays, tell: Callable[[Event], None], draw: DrawLag
    ) -> None:
        """Tell *tell* about *node*."""
        self._environment = environment
        self._node = node
        self._delays = delays
        self._tell = tell
        self._draw = draw
        self._reporting: Timer | None = None
        self._status: Timer | None = None
        self._reported_at = -INFINITY
        self._reports = 0
        self._changed = False
        self._gone = False

    def join(self) -> None:
        """Introduce the node."""
        self._tell(NodeSeen(self._node.seen()))
        if self._environment.now > 0.0:
            self._plan_report()
        else:
            self._report()

    def images_changed(self) -> None:
        """Let the news travel, or keep them until the node works again."""
        if self._node.failed:
            self._changed = True
            return
        if self._reporting is None:
            self._plan_report()
        if self._status is None:
            seconds = self._delays.status
            if isinstance(seconds, tuple):
                seconds = self._draw(seconds, "status", f"{self._node.name}/{self._reports}")
            self._status = self._environment.after(seconds, self._publish)

    def node_changed(self) -> None:
        """Show the node as it is now; its list of images stays as it was published last."""
        if not self._gone:
            self._tell(NodeSeen(self._node.seen()))

    def fall_silent(self) -> None:
        """Neither report nor publish: the node has failed. What others say about it is still told."""
        self._changed = self._changed or self._reporting is not None or self._status is not None
        self._cancel()

    def speak_again(self) -> None:
        """Catch up on what was not told."""
        if self._changed:
            self._changed = False
            self.images_changed()

    def leave(self) -> None:
        """Say goodbye; what is still on its way is not told any more."""
        self._cancel()
        self._gone = True
        self._tell(NodeGone(self._node.name))

    def _plan_report(self) -> None:
        self._reports += 1
        seconds = self._delays.report
        if isinstance(seconds, tuple):
            seconds = self._draw(seconds, "report", f"{self._node.name}/{self._reports}")
        due = max(self._environment.now + seconds, self._reported_at + self._delays.report_gap)
        self._reporting = self._environment.at(due, self._report)

    def _report(self) -> None:
        self._reporting, self._reported_at = None, self._environment.now
        self._tell(LayersReported(self._node.report(self._reported_at)))

    def _publish(self) -> None:
        self._status = None
        self._node.listed = self._node.images_to_list()
        self.node_changed()

    def _cancel(self) -> None:
        for timer in (self._reporting, self._status):
            if timer is not None:
                self._environment.cancel(timer)
        self._reporting = self._status = None
