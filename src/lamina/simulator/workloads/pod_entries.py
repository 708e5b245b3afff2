"""
Pods of a scenario: the shape of their entries, their lifecycle and the pods made from them.

An entry describes what a pod uses while it runs as `stages`, or in the annotation ``simSpec`` of k8s-cluster-simulator,
which is YAML inside a string:

    metadata: {annotations: {simSpec: "- {seconds: 5, resourceUsage: {cpu: 1, memory: 2Gi}}"}}
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec

from lamina.model import duration, resources
from lamina.model.conversion import convert
from lamina.model.errors import InputError, Mistake
from lamina.model.image import Image
from lamina.model.pod import Container, Owner, Pod, PodUid, SpreadConstraint, total_limits, total_requests
from lamina.model.pod_groups import gang_annotations
from lamina.model.pod_volumes import CLAIM, PodVolume
from lamina.model.resources import CPU, MEMORY, Amounts
from lamina.model.selectors import LabelSelector
from lamina.model.taints import Toleration
from lamina.model.yaml_document import read_yaml
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage, PodLifecycle, Restart
from lamina.simulator.workloads.arrival_times import ArrivalTimes
from lamina.simulator.workloads.capacity import (
    OWN_FIELDS,
    DiskCapacityCheck,
    NodeCapacityCheck,
    format_amount,
    misplaced_resources,
)
from lamina.simulator.workloads.field_types import Duration, EntryStruct, Name, Period, Quantity, Reference
from lamina.simulator.workloads.qos_entries import QosEntry, with_promise
from lamina.simulator.workloads.scenario import CONTROLLER, PodArrival
from lamina.simulator.workloads.scenario_catalog import ScenarioCatalog
from lamina.simulator.workloads.scenario_files import AssemblyState, ScenarioEntry

MOST_PODS: Final = 1_000_000
"""Largest number of pods of a scenario; a typing error is then reported instead of simulated."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_PODS)]
Copies = Annotated[int, msgspec.Meta(ge=1, le=MOST_PODS)]


class TolerationEntry(EntryStruct, frozen=True, kw_only=True):
    """A toleration, as in a pod's spec."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""

    def toleration(self) -> Toleration:
        """Return it in the model of the scheduler."""
        return Toleration(self.key, self.operator, self.value, self.effect)


class SpreadEntry(EntryStruct, frozen=True, kw_only=True):
    """A topology spread constraint, as in a pod's spec; it counts pods with *labels*, or else the pod's own."""

    key: str
    max_skew: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1
    when: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    labels: dict[str, str] | None = None

    def constraint(self, own: dict[str, str]) -> SpreadConstraint:
        """Return it in the model of the scheduler, for a pod with its *own* labels."""
        counted = own if self.labels is None else self.labels
        return SpreadConstraint(self.max_skew, self.key, self.when, LabelSelector(tuple(sorted(counted.items()))))


class LimitsEntry(EntryStruct, frozen=True, kw_only=True):
    """Resource limits of a pod, as in a container's resources."""

    cpu: Quantity | None = None
    memory: Quantity | None = None


class StageEntry(EntryStruct, frozen=True, kw_only=True):
    """A stage of a pod's run, and the resources that the pod uses in it."""

    seconds: Period
    usage: dict[str, Quantity] = {}


class PhaseEntry(EntryStruct, frozen=True, kw_only=True):
    """A stage as k8s-cluster-simulator writes it in the annotation ``simSpec``."""

    seconds: Period
    resource_usage: dict[str, Quantity] = {}


class TemplateEntry(EntryStruct, frozen=True, kw_only=True):
    """Fields that pods and the pod templates of controllers share."""

    name: Name
    count: Copies = 1
    at: Duration = 0.0
    every: Duration = 0.0
    image: Reference | None = None
    images: tuple[Reference, ...] = ()
    init: tuple[Reference, ...] = ()
    cpu: Quantity | None = None
    memory: Quantity | None = None
    resources: dict[str, Quantity] = {}
    limits: LimitsEntry = LimitsEntry()
    """Resource limits; a limit without a request is also the request."""
    duration: Duration | None = None
    """How long it runs; unset: until it is removed or the run ends."""
    stages: Annotated[tuple[StageEntry, ...], msgspec.Meta(max_length=1000)] = ()
    """How long it runs and what it uses, one stage after the other."""
    restart: Literal["Always", "OnFailure", "Never"] | None = None
    failures: Annotated[int, msgspec.Meta(ge=-1, le=MOST_PODS)] = 0
    """How often it fails before it succeeds; -1: always."""
    deadline: Duration | None = None
    grace: Duration = 30.0
    stopping: Duration = 0.0
    unreachable: Duration | None = None
    """How long it stays on a failed node; unset: the `evictAfter` of the defaults."""
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 0
    scheduler: str = ""
    """Name of the scheduler profile that places it; empty: the first profile."""
    tolerations: tuple[TolerationEntry, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spread: tuple[SpreadEntry, ...] = ()
    claims: tuple[Name, ...] = ()
    """Names of the PersistentVolumeClaims that it uses."""
    qos: QosEntry | None = None
    """The availability that its controller promises; it becomes annotations and a label of the pods."""
    mix: Name | None = None
    """Name of a mix: the copies of all entries of the mix arrive one by one, in an order drawn from the seed."""


class NamedClaim(msgspec.Struct, frozen=True):
    """A claim that an entry names, and its position in the entry's list."""

    entry: ScenarioEntry
    position: int
    name: str


class GangEntry(EntryStruct, frozen=True, kw_only=True):
    """The copies of an entry are gangs of *size* pods, of which *min* must start together (all of them if unset)."""

    size: Annotated[int, msgspec.Meta(ge=1, le=MOST_PODS)] | None = None
    """Unset: all copies are one gang."""
    min: Annotated[int, msgspec.Meta(ge=1, le=MOST_PODS)] | None = None
    timeout: Duration | None = None
    """How long some pods may hold resources while others wait; unset: as the profile says."""
    queue: Name | None = None


class PodEntry(TemplateEntry, frozen=True, kw_only=True):
    """One pod, or *count* equal pods called name1, name2 and so on, with *every* between their arrivals."""

    gang: GangEntry | None = None
    owner: Name | None = None
    """Name of their controller; pods with the same owner belong together."""


class PodChecks(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a scenario that pods are checked against."""

    catalog: ScenarioCatalog
    capacity: NodeCapacityCheck | None
    """None if not all nodes are known; resources are then not checked."""
    disk_capacity: DiskCapacityCheck
    ends: bool
    """Whether the scenario sets `until`."""


class PodBuilder:
    """Makes pods from the entries of pods and controllers."""

    def __init__(self, state: AssemblyState, checks: PodChecks, times: ArrivalTimes) -> None:
        """Take names from *state*; check pods against *checks*; *times* has the time of each copy."""
        self._state = state
        self._checks = checks
        self.times = times
        self.named_claims: list[NamedClaim] = []
        """The claims that entries name."""

    def arrivals(self, entry: ScenarioEntry) -> Iterator[tuple[str, PodArrival]]:
        """Yield the pods that an entry stands for, each with its name."""
        given: PodEntry = entry.value
        plain, life = self.template(entry, "")
        if given.owner is not None:
            plain = msgspec.structs.replace(plain, owner=Owner(CONTROLLER, given.owner, given.owner))
        for number, name in enumerate(self._state.names(entry, "pod")):
            arrives = self.times.of(entry, number)
            copy = msgspec.structs.replace(plain, uid=PodUid(name), name=name, created_at=arrives)
            if given.qos is not None:
                copy = with_promise(copy, given.owner or name, given.qos)
            if given.gang is not None:
                copy = in_gang(copy, given, number)
            yield name, PodArrival(arrives, copy, life)

    def template(self, entry: ScenarioEntry, kind: str) -> tuple[Pod, PodLifecycle]:
        """Return the pod that an entry describes, and its lifecycle; *kind* is that of its controller, or empty."""
        given: TemplateEntry = entry.value
        self._state.mistakes += misplaced_resources(entry, given.resources)
        asked, most = requests_and_limits(given)
        images = list(self._images(entry, given))
        for step, message in (
            self._checks.capacity.missing_resources(asked) if self._checks.capacity is not None else ()
        ):
            own_field = (step,) if step in OWN_FIELDS else ("resources", step)
            self._state.wrong(entry, message, *(own_field if step else ()))
        names = (given.image,) if given.image is not None else given.images
        containers = tuple(
            Container(image, asked, limits=most) if index == 0 else Container(image)
            for index, image in enumerate(names)
        )
        first = tuple(Container(image) for image in given.init)
        requests, ranked = total_requests(containers, first)
        self.named_claims += (NamedClaim(entry, position, name) for position, name in enumerate(given.claims))
        pod = Pod(
            uid=PodUid(given.name),
            name=given.name,
            containers=containers,
            init_containers=first,
            requests=requests,
            scoring_requests=ranked,
            limits=total_limits(containers, first) if most else (),
            priority=given.priority,
            scheduler_name=given.scheduler,
            tolerations=tuple(one.toleration() for one in given.tolerations),
            labels=given.labels,
            annotations=given.annotations,
            spread=tuple(one.constraint(given.labels) for one in given.spread),
            volumes=tuple(PodVolume(CLAIM, name) for name in given.claims),
        )
        for steps, image in images:
            if problem := self._checks.disk_capacity.too_small(pod, image):
                self._state.wrong(entry, problem, *steps)
        life = self._life(entry, kind)
        self._state.mistakes += broken_limits(entry, asked, most, life)
        return pod, life

    def _life(self, entry: ScenarioEntry, kind: str) -> PodLifecycle:
        life, mistakes = entry_lifecycle(entry, kind)
        self._state.mistakes += mistakes
        if not mistakes and is_endless(life, kind) and not self._checks.ends:
            self._state.wrong(entry, "is restarted for ever; say until when the scenario runs, or leave duration out")
        return life

    def _images(self, entry: ScenarioEntry, given: TemplateEntry) -> Iterator[tuple[tuple[str | int, ...], Image]]:
        """Yield the images that the scenario has, each with its position in the entry."""
        if given.image is not None and given.images:
            self._state.wrong(entry, "say image or images, not both", "images")
        elif given.image is None and not given.images:
            self._state.wrong(entry, "say which image the pod runs", "image")
        named: list[tuple[tuple[str | int, ...], str]] = []
        if given.image is not None:
            named.append((("image",), given.image))
        for field, names in (("images", given.images), ("init", given.init)):
            named += (((field, index), name) for index, name in enumerate(names))
        for steps, name in named:
            if (image := self._checks.catalog.find(entry, name, *steps)) is not None:
                yield steps, image


def in_gang(pod: Pod, given: PodEntry, number: int) -> Pod:
    """Return copy *number* of an entry as a member of its gang. The last gang has the copies that are left."""
    assert given.gang is not None, "the entry has gangs"
    size = given.gang.size or given.count
    gang = number // size
    members = min(size, given.count - gang * size)
    name = given.name if size >= given.count else f"{given.name}-gang{gang + 1}"
    written = gang_annotations(
        name, min(given.gang.min or members, members), given.gang.timeout, given.gang.queue or ""
    )
    return msgspec.structs.replace(pod, annotations={**pod.annotations, **written})


def requests_and_limits(given: TemplateEntry) -> tuple[Amounts, Amounts]:
    """Return requests and limits. As in the API server, a limit without a request is also the request."""
    own = {name: value for name, value in ((CPU, given.cpu), (MEMORY, given.memory)) if value is not None}
    limits = {
        name: value for name, value in ((CPU, given.limits.cpu), (MEMORY, given.limits.memory)) if value is not None
    }
    return resources.amounts({**given.resources, **limits, **own}), resources.amounts(limits)


def broken_limits(entry: ScenarioEntry, asked: Amounts, limits: Amounts, life: PodLifecycle) -> Iterator[Mistake]:
    """Yield mistakes: limits below requests, and the first stage above each limit. Usage is never throttled."""
    requests = dict(asked)
    for name, most in limits:
        if requests[name] > most:
            message = f"is below the request of {format_amount(name, requests[name])}: a limit is at least as much"
            yield entry.mistake(message, "limits", name)
        for number, stage in enumerate(life.stages):
            uses = dict(stage.usage).get(name, 0)
            if uses > most:
                where = ("stages", number, "usage", name) if entry.value.stages else ("limits", name)
                message = (
                    f"a stage uses {format_amount(name, uses)} {name}, but the limit is {format_amount(name, most)}"
                )
                yield entry.mistake(f"{message}; raise the limit, or lower the usage", *where)
                break


ALWAYS_RESTARTED: Final = ("Deployment", "StatefulSet", "DaemonSet")

_DECIMALS: Final = 9
"""Rounds to nanoseconds: 0.1 s + 0.2 s is 0.3 s, not 0.30000000000000004."""


def entry_lifecycle(entry: ScenarioEntry, kind: str) -> tuple[PodLifecycle, list[Mistake]]:
    """Return the lifecycle of an entry's pods, and its mistakes; *kind* is that of their controller, or empty."""
    given: TemplateEntry = entry.value
    stages, mistakes = _stages(entry, given)
    seconds = given.duration
    if stages:
        if seconds is not None:
            mistakes.append(entry.mistake("the stages say how long it runs; leave duration out", "duration"))
        seconds = round(sum(stage.seconds for stage in stages), _DECIMALS)
    if given.failures and seconds is None:
        mistakes.append(
            entry.mistake("a pod fails when it ends, and this one never does; say its duration", "failures")
        )
    mistakes += _of_restart(entry, given, kind)
    life = PodLifecycle(
        seconds=seconds,
        stages=stages,
        failures=given.failures,
        restart=given.restart or _usual_restart(kind),
        deadline=given.deadline,
        grace=given.grace,
        stopping=given.stopping,
        unreachable=given.unreachable,
    )
    return life, mistakes


def is_endless(life: PodLifecycle, kind: str) -> bool:
    """Return whether pods restart without end; *kind* is that of their controller, or empty."""
    if life.seconds is None:
        return False
    if kind in ALWAYS_RESTARTED:
        # The controller replaces a pod that ends.
        return True
    return life.deadline is None and (life.restart == "Always" or (life.restart == "OnFailure" and life.failures == -1))


def _usual_restart(kind: str) -> Restart:
    return "Always" if kind in ALWAYS_RESTARTED else "Never"


def _of_restart(entry: ScenarioEntry, given: TemplateEntry, kind: str) -> Iterable[Mistake]:
    if kind in ALWAYS_RESTARTED and given.restart not in (None, "Always"):
        yield entry.mistake(f"the pods of a {kind} are always restarted; leave restart out", "restart")
    if kind in ALWAYS_RESTARTED and given.deadline is not None:
        yield entry.mistake(f"the pods of a {kind} have no deadline; leave it out", "deadline")
    if kind == "Job" and given.restart == "Always":
        yield entry.mistake("the pods of a Job have to end; write OnFailure or Never", "restart")


def _stages(entry: ScenarioEntry, given: TemplateEntry) -> tuple[tuple[LifecycleStage, ...], list[Mistake]]:
    stages = tuple(stage_of(one.seconds, one.usage) for one in given.stages)
    if SIM_SPEC not in given.annotations:
        return stages, []
    if stages:
        return stages, [entry.mistake(f"say stages or the annotation {SIM_SPEC}, not both", "stages")]
    try:
        return stages_of(given.annotations[SIM_SPEC]), []
    except InputError as error:
        # Lines inside the annotation are not lines of the file.
        problems = (
            f"{mistake.path}: {mistake.message}" if mistake.path else mistake.message for mistake in error.mistakes
        )
        return (), [entry.mistake(one, "annotations", SIM_SPEC) for one in problems]


SIM_SPEC: Final = "simSpec"
MOST_PHASES: Final = 10_000
LONGEST_TEXT: Final = 1024**2


def stages_of(text: str) -> tuple[LifecycleStage, ...]:
    """Return the stages in the text of the annotation. Raises InputError with every mistake."""
    if len(text) > LONGEST_TEXT:
        raise InputError.one(SIM_SPEC, f"is longer than {LONGEST_TEXT} characters")
    phases = convert(read_yaml(text, SIM_SPEC), list[PhaseEntry])
    if not 1 <= len(phases) <= MOST_PHASES:
        raise InputError.one(SIM_SPEC, f"must have 1 to {MOST_PHASES} phases, found {len(phases)}")
    stages = tuple(stage_of(one.seconds, one.resource_usage) for one in phases)
    if sum(stage.seconds for stage in stages) > duration.LONGEST:
        raise InputError.one(SIM_SPEC, "is too long; at most ten years are simulated")
    return stages


def stage_of(seconds: float, usage: Mapping[str, str | float]) -> LifecycleStage:
    """Return one stage of a pod's run."""
    return LifecycleStage(seconds, resources.amounts(usage))
