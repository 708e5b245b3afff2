"""Arguments of QosAware: those of the original plugin, and Lamina's own."""

import math
from typing import Annotated, Final, Literal

import msgspec

from lamina.model.duration import seconds
from lamina.qos.promise import DEFAULT_SLO, QosApproach, QosSettings, RunningFrom
from lamina.qos.promise_sources import MOST_IMPORTANT, PromiseDefaults
from lamina.scheduling.contract.plugin_registry import PluginArgs

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Duration = str | float
"""``20s``, ``10m``, or a number of seconds."""

DURATIONS: Final = {
    "safety_margin": "safetyMargin",
    "minimum_running_time": "minimumRunningTime",
    "window": "window",
    "retention": "retention",
    "cycle": "cycle",
    "hopeless_after": "hopelessAfter",
}
"""Fields with a duration, as configurations name them."""


class QosAwareArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of QosAware. All profiles of a process must give it the same ones, because they share a queue."""

    mode: Literal["original", "lamina"] = "original"
    """*original* takes victims by the original plugin's rules, *lamina* evicts only where that is worth its cost."""
    safety_margin: Duration = 0.0
    """Below this time to violation a controller is in danger, and its importance decides."""
    minimum_running_time: Duration = 0.0
    """A pod that has run for less is a victim only in favour of a more important pod."""
    cycle: Duration = 720.0
    """In mode *lamina*: the shortest time from one preemption of a controller to the next that is worth its cost."""
    hopeless_after: Duration = 300.0
    """In mode *lamina*: a controller that is this far below its promise goes after the others of its importance."""
    acceptable_preemption_overhead: Share = 1.0
    """Largest preemption overhead of controllers that state none."""
    slo: Share = DEFAULT_SLO
    """The SLO of controllers that state none."""
    importance: Annotated[float, msgspec.Meta(ge=-MOST_IMPORTANT, le=MOST_IMPORTANT)] | None = None
    """The importance of controllers that state none; unset: their SLO."""
    measuring: QosApproach | None = None
    """How controllers that do not state it are measured; unset: by the kind of the owner."""
    slo_label: str = PromiseDefaults().slo_label
    importance_label: str = PromiseDefaults().importance_label
    running_from: RunningFrom = RunningFrom.BINDING
    window: Duration = 0.0
    """QoS covers this time before now; 0: the whole lifetime."""
    ignored_namespaces: tuple[str, ...] = ("kube-system",)
    retention: Duration = 3600.0
    """How long a controller without pods is remembered."""
    most_idle: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 10_000
    """Number of controllers without pods that are remembered."""

    def __post_init__(self) -> None:
        """Check the durations."""
        for field, written in DURATIONS.items():
            try:
                seconds(getattr(self, field))
            except ValueError as error:
                raise ValueError(f"{written}: {error}") from None

    @property
    def settings(self) -> QosSettings:
        """Settings of the engine."""
        return QosSettings(
            safety_margin=seconds(self.safety_margin),
            hopeless_after=seconds(self.hopeless_after) if self.mode == "lamina" else math.inf,
            running_from=self.running_from,
            window=seconds(self.window),
            ignored_namespaces=self.ignored_namespaces,
            retention=seconds(self.retention),
            most_idle=self.most_idle,
        )

    @property
    def defaults(self) -> PromiseDefaults:
        """Promises of pods that state none."""
        return PromiseDefaults(
            slo=self.slo,
            importance=self.importance,
            approach=self.measuring,
            overhead_limit=self.acceptable_preemption_overhead,
            slo_label=self.slo_label,
            importance_label=self.importance_label,
        )
