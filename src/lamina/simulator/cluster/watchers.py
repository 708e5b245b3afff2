"""Who is told what happens in a cluster: a witness, who only takes note, and watchers, who may act on it."""

from typing import Protocol

from lamina.model.events import Event
from lamina.simulator.cluster.virtual_node import VirtualNode
from lamina.simulator.cluster.virtual_pod import VirtualPod
from lamina.trace.trace_records import TraceRecord


class ClusterRecorder(Protocol):
    """Told everything that happens."""

    def note(self, record: TraceRecord) -> None:
        """Take down what happened."""
        ...

    def tell(self, event: Event) -> None:
        """Take note of what a scheduler would see happening."""
        ...


class ClusterWatcher(Protocol):
    """Called when something has happened and was written down; may submit and remove pods."""

    def pod_started(self, pod: VirtualPod) -> None:
        """The containers of *pod* run, for the first time."""
        ...

    def pod_ended(self, pod: VirtualPod) -> None:
        """The pod has finished, failed, was refused or removed: its phase says which."""
        ...

    def node_joined(self, node: VirtualNode) -> None:
        """A node is part of the cluster."""
        ...

    def node_left(self, node: VirtualNode) -> None:
        """A node is not part of the cluster any more, and its pods have ended."""
        ...
