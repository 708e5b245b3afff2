"""The shape of pods in a scenario file, and of the controllers that make them."""

from typing import Annotated, Final, Literal

import msgspec

from lamina.model.pod import SpreadConstraint
from lamina.model.selectors import LabelSelector
from lamina.model.taints import Toleration
from lamina.simulator.workloads.field_types import Duration, Name, Period, Portion, Quantity, Reference

MOST_PODS: Final = 1_000_000
"""A bound on what one line of a scenario can ask for, so that a slip of the finger is told and not tried."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_PODS)]
Copies = Annotated[int, msgspec.Meta(ge=1, le=MOST_PODS)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all parts have in common."""


class TolerationEntry(_Part, frozen=True, kw_only=True):
    """A toleration, as in a pod's spec."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""

    def toleration(self) -> Toleration:
        """Return it as the scheduler knows it."""
        return Toleration(self.key, self.operator, self.value, self.effect)


class SpreadEntry(_Part, frozen=True, kw_only=True):
    """A topology spread constraint, as in a pod's spec; pods with these *labels* are counted, or with the pod's own."""

    key: str
    max_skew: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1
    when: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    labels: dict[str, str] | None = None

    def constraint(self, own: dict[str, str]) -> SpreadConstraint:
        """Return it as the scheduler knows it, on a pod with its *own* labels."""
        counted = own if self.labels is None else self.labels
        return SpreadConstraint(self.max_skew, self.key, self.when, LabelSelector(tuple(sorted(counted.items()))))


class LimitsEntry(_Part, frozen=True, kw_only=True):
    """What a pod may use at most, as in a container's resources."""

    cpu: Quantity | None = None
    memory: Quantity | None = None


class StageEntry(_Part, frozen=True, kw_only=True):
    """A stretch of a pod's run, and what it really uses meanwhile."""

    seconds: Period
    usage: dict[str, Quantity] = {}


class PhaseEntry(_Part, frozen=True, kw_only=True):
    """The same as k8s-cluster-simulator writes it in the annotation ``simSpec``."""

    seconds: Period
    resource_usage: dict[str, Quantity] = {}


class TemplateEntry(_Part, frozen=True, kw_only=True):
    """What a pod is and does, whoever makes it."""

    name: Name
    count: Copies = 1
    at: Duration = 0
    every: Duration = 0
    image: Reference | None = None
    images: tuple[Reference, ...] = ()
    init: tuple[Reference, ...] = ()
    cpu: Quantity | None = None
    memory: Quantity | None = None
    resources: dict[str, Quantity] = {}
    limits: LimitsEntry = LimitsEntry()
    """What it may use at most; a limit without a request is the request as well."""
    duration: Duration | None = None
    """How long it runs; unset: until the end."""
    stages: Annotated[tuple[StageEntry, ...], msgspec.Meta(max_length=1000)] = ()
    """How long it runs and what it uses then, one stretch after the other."""
    restart: Literal["Always", "OnFailure", "Never"] | None = None
    failures: Annotated[int, msgspec.Meta(ge=-1, le=MOST_PODS)] = 0
    """How often it fails before it ends well; -1: always."""
    deadline: Duration | None = None
    grace: Duration = 30
    stopping: Duration = 0
    unreachable: Duration | None = None
    """How long it is left on a node that failed; unset: as long as the defaults say."""
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 0
    scheduler: str = ""
    """Which of the configuration's profiles places it; empty: the first."""
    tolerations: tuple[TolerationEntry, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spread: tuple[SpreadEntry, ...] = ()


class PodEntry(TemplateEntry, frozen=True, kw_only=True):
    """One pod, or *count* equal ones called name1, name2 and so on, coming *every* so often."""

    owner: Name | None = None
    """Pods with the same owner belong to one controller."""


class DeploymentEntry(TemplateEntry, frozen=True, kw_only=True):
    """Keeps so many pods, and replaces them bit by bit when they change."""

    replicas: Count = 1
    surge: Portion = "25%"
    unavailable: Portion = "25%"
    min_ready: Duration = 0
    """How long a pod has to run before a rollout counts on it."""


class StatefulSetEntry(TemplateEntry, frozen=True, kw_only=True):
    """Keeps so many pods that come and go in order."""

    replicas: Count = 1


class DaemonSetEntry(TemplateEntry, frozen=True, kw_only=True):
    """Keeps one pod on every node."""

    unavailable: Portion = 1


class JobEntry(TemplateEntry, frozen=True, kw_only=True):
    """Makes pods until so many have ended well."""

    completions: Count = 1
    parallelism: Count = 1
    backoff_limit: Count = 6
