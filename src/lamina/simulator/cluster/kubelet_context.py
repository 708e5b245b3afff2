"""What all kubelets of a cluster share, and where they hand in what happened to their pods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lamina.simulator.cluster.lag import DrawLag
from lamina.simulator.cluster.virtual_node import Delays
from lamina.simulator.cluster.virtual_pod import VirtualPod
from lamina.simulator.engine import Environment, Network
from lamina.trace.trace_records import TraceRecord


class PodEventSink(Protocol):
    """Where a kubelet hands in what happened on its node."""

    def pod_started(self, pod: VirtualPod) -> None:
        """The pod runs, so everything it needs is on its node."""
        ...

    def pod_ended(self, pod: VirtualPod) -> None:
        """The pod does not run any more, and its room is free."""
        ...

    def pod_stopped(self, pod: VirtualPod) -> None:
        """The pod has stopped because it is to be removed."""
        ...


@dataclass(frozen=True, slots=True)
class KubeletContext:
    """What all kubelets of a cluster share."""

    environment: Environment
    network: Network
    delays: Delays
    draw: DrawLag
    note: Callable[[TraceRecord], None]
    """Writes down what happened."""
    office: PodEventSink
