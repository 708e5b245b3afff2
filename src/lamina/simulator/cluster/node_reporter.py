"""
Events about a node that the scheduler receives, and their delays.

A change of the node's images causes two events, which are the same as those of a live cluster:

    layer report of the node agent   after `Delays.report`, and at least `Delays.report_gap` after the previous report
    image list in the node's status  after `Delays.status`

Each event shows the node as it is when the event is sent, so it includes changes made during the delay. Nodes present
at time 0 are reported at once with everything they hold. If a node joins later, its status is sent at once and its
first layer report after the usual delay.
"""

from collections.abc import Callable

from lamina.model.events import Event, LayersReported, NodeGone, NodeSeen
from lamina.simulator.cluster.lag import DrawLag
from lamina.simulator.cluster.virtual_node import Delays, VirtualNode
from lamina.simulator.engine import Environment, Timer
from lamina.simulator.engine.environment import INFINITY


class VirtualNodeReporter:
    """Sends the events about one node."""

    __slots__ = (
        "_changed",
        "_delays",
        "_draw",
        "_environment",
        "_gone",
        "_node",
        "_publish",
        "_reported_at",
        "_reporting",
        "_reports",
        "_status",
    )

    def __init__(
        self,
        environment: Environment,
        node: VirtualNode,
        delays: Delays,
        publish: Callable[[Event], None],
        draw: DrawLag,
    ) -> None:
        """Send events about *node* to *publish*."""
        self._environment = environment
        self._node = node
        self._delays = delays
        self._publish = publish
        self._draw = draw
        self._reporting: Timer | None = None
        self._status: Timer | None = None
        self._reported_at = -INFINITY
        self._reports = 0
        self._changed = False
        self._gone = False

    def join(self) -> None:
        """Send the first events of the node."""
        self._publish(NodeSeen(self._node.seen()))
        if self._environment.now > 0.0:
            self._plan_report()
        else:
            self._report()

    def images_changed(self) -> None:
        """Schedule a report and a status update, or remember to do so when the node has recovered."""
        if self._node.failed:
            self._changed = True
            return
        if self._reporting is None:
            self._plan_report()
        if self._status is None:
            seconds = self._delays.status
            if isinstance(seconds, tuple):
                seconds = self._draw(seconds, "status", f"{self._node.name}/{self._reports}")
            self._status = self._environment.after(seconds, self._publish_status)

    def node_changed(self) -> None:
        """Send the node's current state, with the image list that was published last."""
        if not self._gone:
            self._publish(NodeSeen(self._node.seen()))

    def pause(self) -> None:
        """Cancel reports and status updates, because the node failed. Changes by the control plane are still sent."""
        self._changed = self._changed or self._reporting is not None or self._status is not None
        self._cancel()

    def resume(self) -> None:
        """Schedule the reports that were cancelled during the failure."""
        if self._changed:
            self._changed = False
            self.images_changed()

    def leave(self) -> None:
        """Cancel pending reports and send that the node is gone."""
        self._cancel()
        self._gone = True
        self._publish(NodeGone(self._node.name))

    def _plan_report(self) -> None:
        self._reports += 1
        seconds = self._delays.report
        if isinstance(seconds, tuple):
            seconds = self._draw(seconds, "report", f"{self._node.name}/{self._reports}")
        due = max(self._environment.now + seconds, self._reported_at + self._delays.report_gap)
        self._reporting = self._environment.at(due, self._report)

    def _report(self) -> None:
        self._reporting, self._reported_at = None, self._environment.now
        self._publish(LayersReported(self._node.report(self._reported_at)))

    def _publish_status(self) -> None:
        self._status = None
        self._node.listed = self._node.images_to_list()
        self.node_changed()

    def _cancel(self) -> None:
        for timer in (self._reporting, self._status):
            if timer is not None:
                self._environment.cancel(timer)
        self._reporting = self._status = None
