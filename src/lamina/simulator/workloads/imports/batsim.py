"""
Batsim workloads (version 4, and the profile names of version 5): jobs become pods.

    subtime      when the pods arrive
    res          how many pods: one for each resource, or with `wholeNodes` as few as fill whole nodes
    profile      how long they run (`batsim_profiles`), and their application: all jobs of a profile run one image
    walltime     their deadline, counted from their start on a node, so it includes the image pull
    ret          other than 0: they fail

The pods of a job have one owner and are placed one by one, as Kubernetes does without a gang scheduler, so the first
may run before the last is placed. Batsim would start them together. A job that the nodes could never hold at once is
rejected. Jobs and profiles are also kept as they are written, for runs with a decision process of Batsim's.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from lamina.model.conversion import suggest
from lamina.model.duration import LONGEST
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.model.resources import Amounts
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.batsim_profiles import BatsimProfiles, ResourceRequests
from lamina.simulator.workloads.batsim_source import BatsimSource
from lamina.simulator.workloads.imports import batsim_events, import_files, pod_drafts
from lamina.simulator.workloads.imports.batsim_job import BatsimJob
from lamina.simulator.workloads.imports.import_files import JsonFile
from lamina.simulator.workloads.imports.import_schema import MOST_PODS, ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.imports.job_pods import JobPods
from lamina.simulator.workloads.imports.pod_drafts import ImageChooser, PodDraft
from lamina.simulator.workloads.imports.simgrid import read_platform

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
    events = None
    if entry.external_events is not None:
        path = import_files.located(context, folder, entry.external_events, "externalEvents")
        events = batsim_events.read_events(path, pod_drafts.TraceWindow(entry))
    return Imported(
        nodes=nodes,
        arrivals=pod_drafts.arrivals(drafts, images, entry),
        notes=tuple(reader.notes()),
        availability=() if events is None else events.hosts,
        batsim=reader.source(images, events),
    )


class _Jobs:
    """Converts the jobs of a file to drafts of pods."""

    def __init__(
        self, file: JsonFile, entry: ImportEntry, nodes: tuple[VirtualNodeSpec, ...], speed: float | None
    ) -> None:
        self.nodes = nodes
        self._file = file
        self._workload = file.decode(BatsimWorkload)
        start = max(file.data.find(b'"profiles"'), 0)
        self._profiles = BatsimProfiles(file, self._workload.profiles, speed, start)
        self._speed, self._requests = speed, ResourceRequests(entry.cpu, entry.memory)
        self._window = pod_drafts.TraceWindow(entry)
        self._job_pods = JobPods(file.source, nodes, whole_nodes=entry.whole_nodes)
        self._name = entry.name or WORKLOAD
        self._requested: dict[str, Amounts] = {}
        self._talking: set[str] = set()
        self._written: dict[str, msgspec.Raw] = {}

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
                self._written[str(job.id)] = raw
            except InputError as error:
                mistakes.update(dict.fromkeys(error.mistakes))
                if len(mistakes) >= import_files.MOST_MISTAKES:
                    break
        if mistakes:
            raise InputError(list(mistakes)[: import_files.MOST_MISTAKES])
        return found

    def source(self, images: dict[str, str], events: batsim_events.ExternalEvents | None) -> BatsimSource:
        """Return the jobs and profiles as written; *images* has the image of each profile."""
        return BatsimSource(
            name=self._name,
            file=self._file.source,
            jobs=self._written,
            profiles=self._workload.profiles,
            images=images,
            requests=self._requests,
            speed=self._speed,
            notices=() if events is None else events.notices,
            last_event=None if events is None else events.last,
        )

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
            each = self._asked(job.profile)
        except ValueError as error:
            raise wrong(str(error), "profile") from error
        try:
            shape = self._job_pods.shape(each, job.res)
        except ValueError as error:
            raise wrong(str(error), "res") from error
        if not self.nodes and job.res > self._workload.nb_res:
            raise wrong(f"the job needs {job.res} resources, and nb_res says there are {self._workload.nb_res}", "res")
        placed = self._window.place(job.subtime, run.seconds)
        if placed is None:
            return
        walltime = None if job.walltime is None or job.walltime == -1 else job.walltime
        life = PodLifecycle(seconds=placed[1], deadline=walltime, failures=-1 if run.fails else 0)
        known = BatsimJob(self._name, str(job.id), job.profile, job.res, -1.0 if walltime is None else walltime)
        yield from self._job_pods.drafts(known, shape, placed[0], life, job.profile, line)

    def _asked(self, profile: str) -> Amounts:
        """Return the requests that all jobs of a profile share. Raises ValueError."""
        if profile not in self._requested:
            self._requested[profile] = self._requests.of(self._profiles.get(profile))
        return self._requested[profile]
