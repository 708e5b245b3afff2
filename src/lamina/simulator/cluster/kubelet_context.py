"""Objects that all kubelets of a cluster share, and the protocol through which kubelets report pod events."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lamina.simulator.cluster.lag import DrawLag
from lamina.simulator.cluster.virtual_node import Delays
from lamina.simulator.cluster.virtual_pod import VirtualPod
from lamina.simulator.engine import Environment, Network
from lamina.trace.trace_records import TraceRecord


class PodEventSink(Protocol):
    """Receives the pod events of all kubelets."""

    def pod_started(self, pod: VirtualPod) -> None:
        """Called when a pod runs for the first time."""
        ...

    def pod_ended(self, pod: VirtualPod) -> None:
        """Called when a pod has ended and its resources are free."""
        ...

    def pod_stopped(self, pod: VirtualPod) -> None:
        """Called when a pod that is being deleted has stopped."""
        ...


@dataclass(frozen=True, slots=True)
class KubeletContext:
    """Shared objects of all kubelets of a cluster."""

    environment: Environment
    network: Network
    delays: Delays
    draw: DrawLag
    note: Callable[[TraceRecord], None]
    """Writes a trace record."""
    sink: PodEventSink
