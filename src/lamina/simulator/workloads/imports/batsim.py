"""
Batsim workloads (version 4, and the profile names of version 5): jobs become pods.

    subtime      when the pods arrive
    res          how many pods: one for each resource, or with `wholeNodes` as few as fill whole nodes
    profile      how long they run, and their application: all jobs of a profile run one image
    walltime     their deadline, counted from their start on a node, so it includes the image pull
    ret          other than 0: they fail

The pods of a job have one owner and are placed one by one, as Kubernetes does without a gang scheduler, so the first
may run before the last is placed. Batsim would start them together. A job that the nodes could never hold at once is
rejected.

How long a profile runs:

    delay                                    seconds
    parallel, parallel_homogeneous(_total)   operations of the busiest host, divided by the speed of a host
    composed                                 its parts in order, repeated; ends with the first part that fails

The reader also accepts the names of version 5 and the older ``msg_par`` names. Communication is not simulated and takes
no time. Other profile types are rejected by name, because a wrong duration is worse than none.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec

from lamina.model import resources
from lamina.model.conversion import suggest
from lamina.model.duration import LONGEST
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.model.pod import Owner
from lamina.model.resources import CPU, MEMORY, PODS, Amounts
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.imports import import_files, pod_drafts
from lamina.simulator.workloads.imports.import_files import JsonFile
from lamina.simulator.workloads.imports.import_schema import MOST_PODS, ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.imports.pod_drafts import ImageChooser, PodDraft
from lamina.simulator.workloads.imports.simgrid import read_platform

JOB_ANNOTATION: Final = "lamina.dev/batsim-job"


class BatsimJob(msgspec.Struct, frozen=True):
    """The Batsim job of a pod, kept as an annotation so that results can be written in Batsim's format."""

    workload: str
    job: str
    profile: str
    res: int
    walltime: float = -1.0
    """Seconds; -1: no limit."""

    def written(self) -> dict[str, str]:
        """Return the annotations for its pods."""
        return {JOB_ANNOTATION: msgspec.json.encode(self).decode()}


_DECODER: Final = msgspec.json.Decoder(BatsimJob)


def job_of(annotations: dict[str, str]) -> BatsimJob | None:
    """Return the job of a pod from its annotations; None without a readable one."""
    text = annotations.get(JOB_ANNOTATION)
    if text is None:
        return None
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


DEEPEST: Final = 50
"""Largest depth of nested profiles."""

KINDS: Final = {
    "delay": "delay",
    "DelayProfile": "delay",
    "parallel": "parallel",
    "msg_par": "parallel",
    "ParallelTaskProfile": "parallel",
    "parallel_homogeneous": "homogeneous",
    "msg_par_hg": "homogeneous",
    "ParallelTaskHomogeneousProfile": "homogeneous",
    "parallel_homogeneous_total": "total",
    "msg_par_hg_tot": "total",
    "composed": "composed",
    "SequentialCompositionProfile": "composed",
}
"""Names of profile types in all versions, and how their duration is calculated."""

BatsimAmount = Annotated[float, msgspec.Meta(ge=0)]


class BatsimProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a profile that are used here; Batsim allows others."""

    type: str
    delay: BatsimAmount | None = None
    cpu: BatsimAmount | str | tuple[BatsimAmount, ...] | None = None
    """Operations; in a delay profile of batkube, the cores that a pod requests."""
    com: BatsimAmount | tuple[BatsimAmount, ...] | None = None
    memory: BatsimAmount | str | None = None
    seq: tuple[str, ...] | None = None
    repeat: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    nb: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    """Older name of `repeat`."""
    generation_strategy: str = ""
    ret: int = 0
    """The exit code."""


class ProfileRun(msgspec.Struct, frozen=True):
    """Duration and outcome of a profile."""

    seconds: float
    fails: bool = False
    talks: bool = False
    """Whether it has communication, which is not simulated."""


class BatsimProfiles:
    """Profiles of one workload."""

    def __init__(self, file: JsonFile, written: Mapping[str, msgspec.Raw], speed: float | None) -> None:
        """Keep the *written* profiles; each is read when a job needs it."""
        self._file, self._written, self._speed = file, written, speed
        self._start = max(file.data.find(b'"profiles"'), 0)
        self._read: dict[str, BatsimProfile] = {}
        self._runs: dict[tuple[str, int], ProfileRun] = {}

    def get(self, name: str) -> BatsimProfile:
        """Return one profile."""
        if name not in self._read:
            self._read[name] = self._file.decode(BatsimProfile, self._written[name], self._start, f"profiles.{name}")
        return self._read[name]

    def run_of(self, name: str, res: int, above: tuple[str, ...] = ()) -> ProfileRun:
        """Return how a job with *res* resources runs; *above* are the profiles that contain it."""
        if (name, res) not in self._runs:
            self._runs[name, res] = self._work_out(name, res, above)
        return self._runs[name, res]

    def _work_out(self, name: str, res: int, above: tuple[str, ...]) -> ProfileRun:
        if name in above:
            raise self._wrong(above[-1], f"the profiles contain each other: {' → '.join((*above, name))}")
        if len(above) > DEEPEST:
            raise self._wrong(above[-1], f"profiles inside profiles; at most {DEEPEST} levels are read")
        profile = self.get(name)
        kind = KINDS.get(profile.type)
        if kind is None:
            message = f"profile type {shown(profile.type)} is not simulated; {_instead(profile.type)}"
            raise self._wrong(name, message)
        if kind == "composed":
            run = self._composed(name, profile, res, above)
        elif kind == "delay":
            if profile.delay is None:
                raise self._wrong(name, "a delay says how many seconds; add the field delay")
            run = ProfileRun(profile.delay)
        else:
            run = self._computing(name, profile, res, kind)
        if not run.seconds <= LONGEST:
            raise self._wrong(name, f"{run.seconds:g} seconds are too long; at most ten years are simulated")
        return msgspec.structs.replace(run, fails=run.fails or profile.ret != 0)

    def _composed(self, name: str, profile: BatsimProfile, res: int, above: tuple[str, ...]) -> ProfileRun:
        if not profile.seq:
            raise self._wrong(name, "has no parts; list profiles under seq")
        once, talks = 0.0, False
        for part in profile.seq:
            if part not in self._written:
                raise self._wrong(name, f"there is no profile {shown(part)}; {suggest(part, self._written)}")
            run = self.run_of(part, res, (*above, name))
            once, talks = once + run.seconds, talks or run.talks
            if run.fails:
                return ProfileRun(once, True, talks)
        return ProfileRun(once * (profile.repeat or profile.nb or 1), False, talks)

    def _computing(self, name: str, profile: BatsimProfile, res: int, kind: str) -> ProfileRun:
        work, talks = profile.cpu, bool(profile.com) and profile.com != (0.0,) * len(_listed(profile.com))
        if kind == "parallel":
            if not isinstance(work, tuple) or len(work) != res:
                raise self._wrong(name, f"cpu must list operations for each of the {res} resources of the job")
            most = max(work, default=0.0)
        elif isinstance(work, int | float):
            spread = kind == "total" or "spread" in profile.generation_strategy.lower()
            most = work / res if spread else float(work)
        else:
            raise self._wrong(name, "cpu must be a number of operations")
        if self._speed is None:
            raise self._wrong(name, "counts in operations; say speed, or name a platform, whose hosts have one")
        seconds = most / self._speed
        return ProfileRun(seconds if math.isfinite(seconds) else math.inf, talks=talks)

    def _wrong(self, name: str, message: str) -> InputError:
        return InputError([self._file.mistake(message, self._written[name], self._start, f"profiles.{name}")])


def _listed(value: float | tuple[float, ...] | None) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else ()


def _instead(kind: str) -> str:
    known = suggest(kind, KINDS)
    return known if known.startswith("did you mean") else "write a delay with the seconds it took"


Time = Annotated[float, msgspec.Meta(ge=0, le=LONGEST)]
WORKLOAD = "w0"
"""Batsim's name for the first workload; the default name of an imported workload."""


class BatsimWorkloadJob(msgspec.Struct, frozen=True):
    """The fields of a job that are used here; Batsim allows others."""

    id: str | int
    subtime: Time
    res: Annotated[int, msgspec.Meta(ge=1, le=MOST_PODS)]
    profile: str
    walltime: float | None = None


class BatsimWorkload(msgspec.Struct, frozen=True):
    """A workload file; jobs and profiles are decoded one by one, so that all of their mistakes are reported."""

    nb_res: Annotated[int, msgspec.Meta(ge=1)]
    jobs: list[msgspec.Raw]
    profiles: dict[str, msgspec.Raw]


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read the workload that an entry names, and its platform if it names one."""
    assert entry.batsim is not None, "the entry is of this kind"
    nodes, speed = pod_drafts.equal_nodes(entry, context), entry.speed
    if entry.platform is not None:
        if entry.nodes is not None:
            raise InputError([context.entry.mistake("say nodes or platform, not both", "platform")])
        platform = read_platform(import_files.located(context, folder, entry.platform, "platform"), context)
        nodes, speed = platform.nodes, speed or platform.speed
    file = JsonFile(import_files.located(context, folder, entry.batsim, "batsim"))
    reader = _Jobs(file, entry, (*context.nodes, *nodes), speed)
    if entry.whole_nodes and not reader.nodes:
        raise InputError([context.entry.mistake("needs nodes to fill; say nodes or platform", "wholeNodes")])
    drafts = pod_drafts.select_drafts(reader.drafts(), entry)
    pod_drafts.check_room(file.source, drafts, nodes, context, "job")
    images = ImageChooser(entry, folder, context).choose(pod_drafts.applications(drafts))
    return Imported(nodes=nodes, arrivals=pod_drafts.arrivals(drafts, images, entry), notes=tuple(reader.notes()))


class _Jobs:
    """Converts the jobs of a file to drafts of pods."""

    def __init__(
        self, file: JsonFile, entry: ImportEntry, nodes: tuple[VirtualNodeSpec, ...], speed: float | None
    ) -> None:
        self.nodes = nodes
        self._file, self._entry = file, entry
        self._workload = file.decode(BatsimWorkload)
        self._profiles = BatsimProfiles(file, self._workload.profiles, speed)
        self._window = pod_drafts.TraceWindow(entry)
        self._names = pod_drafts.UniqueNames()
        self._name = entry.name or WORKLOAD
        self._room: dict[Amounts, int] = {}
        self._common: dict[str, tuple[Amounts, dict[str, str]]] = {}
        self._talking: set[str] = set()
        self._pods = 0

    def drafts(self) -> list[PodDraft]:
        """Return the drafts of all jobs. Raises InputError with the mistakes of all of them."""
        found: list[PodDraft] = []
        mistakes: dict[Mistake, None] = {}
        seen: dict[str, int] = {}
        jobs = self._workload.jobs
        for index, (raw, (start, line)) in enumerate(zip(jobs, self._file.places(jobs), strict=True)):
            path = f"jobs[{index}]"
            try:
                job = self._file.decode(BatsimWorkloadJob, raw, start, path)
                if str(job.id) in seen:
                    message = f"there is a second job {shown(str(job.id))}, the first is on line {seen[str(job.id)]}"
                    raise InputError.one(self._file.source, message, path=f"{path}.id", line=line)
                seen[str(job.id)] = line
                found += self._pods_of(job, path, line)
            except InputError as error:
                mistakes.update(dict.fromkeys(error.mistakes))
                if len(mistakes) >= import_files.MOST_MISTAKES:
                    break
        if mistakes:
            raise InputError(list(mistakes)[: import_files.MOST_MISTAKES])
        return found

    def notes(self) -> Iterator[str]:
        """Yield sentences about profiles that were simplified."""
        if self._talking:
            names = ", ".join(sorted(self._talking)[:5])
            yield f"{self._file.source}: communication takes no time here (profiles {names})"

    def _pods_of(self, job: BatsimWorkloadJob, path: str, line: int) -> Iterator[PodDraft]:
        def wrong(message: str, field: str) -> InputError:
            return InputError.one(self._file.source, message, path=f"{path}.{field}", line=line)

        if job.profile not in self._workload.profiles:
            hint = suggest(job.profile, self._workload.profiles)
            raise wrong(f"there is no profile {shown(job.profile)}; {hint}", "profile")
        if job.walltime is not None and job.walltime != -1 and not 0 < job.walltime <= LONGEST:
            raise wrong(f"{job.walltime:g} is no walltime; write seconds above 0, or -1 for none", "walltime")
        run = self._profiles.run_of(job.profile, job.res)
        if run.talks:
            self._talking.add(job.profile)
        try:
            each, labels = self._alike(job.profile)
        except ValueError as error:
            raise wrong(str(error), "profile") from error
        asked, count = self._filled(each, job.res) if self._entry.whole_nodes else (each, job.res)
        # `check_room` reports a pod that fits on no node at all, with the missing resource.
        if self.nodes and count > (room := self._slots(asked)) > 0:
            raise wrong(f"the job needs {count} pods at once, and all nodes together have room for {room}", "res")
        if not self.nodes and job.res > self._workload.nb_res:
            raise wrong(f"the job needs {job.res} resources, and nb_res says there are {self._workload.nb_res}", "res")
        placed = self._window.place(job.subtime, run.seconds)
        if placed is None:
            return
        self._pods += count
        pod_drafts.check_count(self._file.source, self._pods, line)
        walltime = None if job.walltime is None or job.walltime == -1 else job.walltime
        life = PodLifecycle(seconds=placed[1], deadline=walltime, failures=-1 if run.fails else 0)
        known = BatsimJob(self._name, str(job.id), job.profile, job.res, -1.0 if walltime is None else walltime)
        name = self._names.fresh(f"{self._name}-{job.id}")
        owner, annotations = Owner("Job", name, name), known.written()
        for number in range(1, count + 1):
            yield PodDraft(
                at=placed[0],
                application=job.profile,
                name=name if count == 1 else self._names.fresh(f"{name}-{number}"),
                owner=owner,
                asked=asked,
                life=life,
                labels=labels,
                annotations=annotations,
                line=line,
            )

    def _alike(self, profile: str) -> tuple[Amounts, dict[str, str]]:
        """Return the requests and labels that all jobs of a profile share."""
        if profile not in self._common:
            asked = self._asked(self._profiles.get(profile))
            self._common[profile] = asked, {"app": pod_drafts.plain_name(profile)}
        return self._common[profile]

    def _asked(self, profile: BatsimProfile) -> Amounts:
        """Return the requests of one resource of a job: those of the entry, or of a batkube delay profile."""
        cpu, memory = self._entry.cpu, self._entry.memory
        if KINDS[profile.type] == "delay":
            if cpu is None and isinstance(profile.cpu, str | int | float):
                cpu = profile.cpu
            memory = profile.memory if memory is None else memory
        wanted: dict[str, str | float] = {CPU: 1 if cpu is None else cpu}
        if memory is not None:
            wanted[MEMORY] = memory
        asked = resources.amounts(wanted)
        if any(amount < 0 for _, amount in asked):
            raise ValueError("its profile asks for less than nothing; write cpu and memory of 0 or more")
        return asked

    def _filled(self, each: Amounts, res: int) -> tuple[Amounts, int]:
        """Return the requests of pods that fill the smallest node, and how many of them make up *res* resources."""
        full = max(1, min(_times(dict(node.allocatable), each) for node in self.nodes))
        return tuple((name, amount * full) for name, amount in each), math.ceil(res / full)

    def _slots(self, asked: Amounts) -> int:
        if asked not in self._room:
            self._room[asked] = sum(_times(dict(node.allocatable), asked) for node in self.nodes)
        return self._room[asked]


def _times(has: dict[str, int], asked: Amounts) -> int:
    """Return how many pods with these requests fit."""
    return min((has.get(name, 0) // amount for name, amount in (*asked, (PODS, 1)) if amount > 0), default=0)
