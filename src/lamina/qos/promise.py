"""
What a controller promises: its SLO, its importance, and how its availability is measured.

`lamina.qos.promise_sources` reads promises from pods; the engine (`lamina.qos.engine`) stores one for each controller.
Nothing here reads clocks or changes anything.
"""

import math
from enum import StrEnum
from typing import Final

import msgspec

DEFAULT_SLO: Final = 0.8
"""The SLO of pods that state none, as in the original plugin."""


class QosApproach(StrEnum):
    """How the times of a controller's pods are combined into one QoS."""

    INDEPENDENT = "independent"
    """Each replica has its own QoS."""
    AVERAGE = "average"
    """The times of all replicas are added."""
    CONCURRENT = "concurrent"
    """Running time counts only while all replicas run."""
    AGGREGATE = "aggregate"
    """Running time counts only if the pod's work is not lost: the pod runs, or it succeeded."""


class RunningFrom(StrEnum):
    """The moment from which a pod counts as running."""

    BINDING = "binding"
    """The pod was bound, as in the original plugin."""
    RUNNING = "running"
    """The pod's containers run."""
    READY = "ready"
    """The pod is ready. Later times without readiness are discarded time."""


class ControllerKey(msgspec.Struct, frozen=True, order=True):
    """The identity of a controller, also across the ReplicaSets or Jobs that it creates."""

    namespace: str
    kind: str
    """Kind of the topmost owner, ``Pod`` for a pod without an owner, empty if an annotation names the controller."""
    name: str

    def __str__(self) -> str:
        """Return the name, with the namespace unless it is ``default``."""
        return self.name if self.namespace == "default" else f"{self.namespace}/{self.name}"


class Promise(msgspec.Struct, frozen=True):
    """The promise of one controller."""

    slo: float = DEFAULT_SLO
    """Promised availability, from 0 to 1."""
    importance: float = DEFAULT_SLO
    """Among controllers below the safety margin, a higher importance goes first."""
    approach: QosApproach = QosApproach.AVERAGE
    overhead_limit: float = 1 - DEFAULT_SLO
    """Largest preemption overhead at which its pods may be preempted: a share from 0 to 1."""


class QosSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the engine; durations in seconds."""

    safety_margin: float = 0.0
    """Below this QoS metric a controller is in danger, and its importance decides."""
    hopeless_after: float = math.inf
    """A controller whose metric is further below 0 goes after the others of its importance."""
    running_from: RunningFrom = RunningFrom.BINDING
    window: float = 0.0
    """QoS covers at least this many seconds before now (at most 1/32 more); 0: the whole lifetime."""
    ignored_namespaces: tuple[str, ...] = ("kube-system",)
    retention: float = 3600.0
    """How long a controller without pods is remembered."""
    most_idle: int = 10_000
    """At most this many controllers without pods are remembered, those that were active last."""
