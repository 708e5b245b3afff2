"""
What a scheduler gets to know of a node, and when.

A layer report shows the node as it was when it changed, and arrives `Delays.report` later; the list of images in the
node's status likewise, `Delays.status` later. A node that joins is known at once with all it holds: the cluster was
there before the run. Told through the same events as a live service tells them.
"""

from collections.abc import Callable

from lamina.model.events import Event, LayersReported, NodeGone, NodeSeen
from lamina.model.node import NodeImage
from lamina.simulator.cluster.node import Delays, VirtualNode
from lamina.simulator.engine import Environment


class Reporter:
    """Speaks for one node."""

    def __init__(
        self, environment: Environment, node: VirtualNode, delays: Delays, tell: Callable[[Event], None]
    ) -> None:
        """Tell *tell* about *node*."""
        self._environment = environment
        self._node = node
        self._delays = delays
        self._tell = tell
        self._silent = False

    def join(self) -> None:
        """Introduce the node."""
        self._tell(NodeSeen(self._node.seen()))
        self._tell(LayersReported(self._node.report(self._environment.now)))

    def images_changed(self) -> None:
        """Let the news travel."""
        report = LayersReported(self._node.report(self._environment.now))
        self._environment.after(self._delays.report, self._say, report)
        self._environment.after(self._delays.status, self._publish, self._node.images_to_list())

    def node_changed(self) -> None:
        """Show the node as it is now; its list of images stays as it was published last."""
        self._say(NodeSeen(self._node.seen()))

    def leave(self) -> None:
        """Say goodbye; what is still on its way is not told any more."""
        self._say(NodeGone(self._node.name))
        self._silent = True

    def _publish(self, images: tuple[NodeImage, ...]) -> None:
        self._node.listed = images
        self.node_changed()

    def _say(self, event: Event) -> None:
        if not self._silent:
            self._tell(event)
