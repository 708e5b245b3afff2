"""Protocols for observers of a cluster: a recorder, which only receives, and watchers, which may react."""

from typing import Protocol

from lamina.model.events import Event
from lamina.simulator.cluster.virtual_node import VirtualNode
from lamina.simulator.cluster.virtual_pod import VirtualPod
from lamina.trace.trace_records import TraceRecord


class ClusterRecorder(Protocol):
    """Receives everything that happens in a cluster."""

    def note(self, record: TraceRecord) -> None:
        """Receive a record for the trace."""
        ...

    def publish(self, event: Event) -> None:
        """Receive an event for the scheduler."""
        ...


class ClusterWatcher(Protocol):
    """Called after an event was recorded; may submit and remove pods."""

    def pod_started(self, pod: VirtualPod) -> None:
        """Called when the containers of *pod* run for the first time."""
        ...

    def pod_ended(self, pod: VirtualPod) -> None:
        """Called when a pod has finished, failed, or was rejected or removed (see its phase)."""
        ...

    def node_joined(self, node: VirtualNode) -> None:
        """Called when a node has joined."""
        ...

    def node_left(self, node: VirtualNode) -> None:
        """Called when a node has left and its pods have ended."""
        ...
