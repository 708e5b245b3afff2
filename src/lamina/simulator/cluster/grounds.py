"""What all kubelets of a cluster share, and where they hand in what happened to their pods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lamina.simulator.cluster.lag import Draw
from lamina.simulator.cluster.node import Delays
from lamina.simulator.cluster.pod import VirtualPod
from lamina.simulator.engine import Environment, Network
from lamina.trace.records import Record


class Office(Protocol):
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
class Grounds:
    """What all kubelets of a cluster share."""

    environment: Environment
    network: Network
    delays: Delays
    draw: Draw
    note: Callable[[Record], None]
    """Writes down what happened."""
    office: Office
