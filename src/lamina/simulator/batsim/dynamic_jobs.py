"""
Jobs that the decision process registers during the run: profiles and jobs from messages become pods.

A job of an imported workload's profile runs its image and requests what its pods request. Other jobs run the image of
the scenario's first job, and request one cpu, or what their delay profile names.
"""

from typing import Final, TypeVar

import msgspec

from lamina.model.duration import LONGEST
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.model.pod import Container, Owner, Pod, PodUid, total_requests
from lamina.simulator.batsim.job_descriptions import JobDescriptions
from lamina.simulator.batsim.job_table import RunJob
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads import Scenario
from lamina.simulator.workloads.batsim_profiles import KINDS, BatsimProfile, BatsimProfiles
from lamina.simulator.workloads.batsim_source import BatsimSource
from lamina.simulator.workloads.imports.batsim_job import BatsimJob
from lamina.simulator.workloads.imports.pod_drafts import UniqueNames, plain_name
from lamina.wire.batsim.job_fields import NO_WALLTIME, JobFields, job_name, workload_name
from lamina.wire.batsim.messages import ProtocolError
from lamina.wire.batsim.scheduler_events import RegisterJobData, RegisterProfileData

T = TypeVar("T")

NO_IMAGE: Final = "batsim/job"
"""Image of jobs in a scenario without pods; it has no layers."""
MOST_RESOURCES: Final = 100_000
"""Most pods of one registered job."""


class _MessageText:
    """The text of profiles that came in messages, as `ProfileText`."""

    def decode(self, kind: type[T], part: bytes | msgspec.Raw | None = None, start: int = 0, path: str = "") -> T:
        try:
            return msgspec.json.decode(part or b"", type=kind)
        except (ValueError, RecursionError) as error:
            raise InputError.one("profile", str(error), path=path) from error

    def mistake(self, message: str, part: bytes | msgspec.Raw, start: int = 0, path: str = "") -> Mistake:
        return Mistake("profile", message, path)


class DynamicJobs:
    """Submits jobs of the decision process to the cluster."""

    def __init__(
        self, scenario: Scenario, cluster: VirtualCluster, descriptions: JobDescriptions, scheduler: str
    ) -> None:
        """Submit to *cluster*, for the scheduler name *scheduler*."""
        self._cluster = cluster
        self._descriptions = descriptions
        self._scheduler = scheduler
        self._names = UniqueNames()
        self._sources = {one.name: one for one in scenario.batsim}
        self._written = {one.name: dict(one.profiles) for one in scenario.batsim}
        self._profiles: dict[str, BatsimProfiles] = {}
        self._image = next((image for one in scenario.arrivals for image in one.pod.images), NO_IMAGE)
        self.registered: dict[str, BatsimJob] = {}
        """The jobs of registered pods, by the key of the pod."""

    def add_profile(self, data: RegisterProfileData) -> None:
        """Add a profile. Raises ProtocolError if it exists, or cannot be simulated."""
        written = self._written.setdefault(data.workload_name, {})
        if data.profile_name in written:
            where = f"workload {shown(data.workload_name)}"
            raise ProtocolError(f"{where} has a profile {shown(data.profile_name)} already")
        try:
            kind = msgspec.json.decode(data.profile, type=BatsimProfile).type
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"profile: {error}") from error
        if kind not in KINDS:
            raise ProtocolError(f"profile.type: {shown(kind)} is not simulated; use one of {', '.join(KINDS)}")
        written[data.profile_name] = data.profile
        self._descriptions.register_profile(data.workload_name, data.profile_name, data.profile)

    def add_job(self, data: RegisterJobData, now: float) -> RunJob:
        """Submit the pods of a job. Raises ProtocolError."""
        try:
            asked = msgspec.json.decode(data.job, type=JobFields)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"job: {error}") from error
        workload = workload_name(data.job_id)
        if not workload:
            raise ProtocolError(f"job_id: {shown(data.job_id)} names no workload; write WORKLOAD!JOB")
        if asked.res > MOST_RESOURCES:
            raise ProtocolError(f"job.res: {asked.res} resources are too many; at most {MOST_RESOURCES}")
        written = self._written.get(workload, {})
        if asked.profile not in written:
            where = f"workload {shown(workload)} has no profile {shown(asked.profile)}"
            raise ProtocolError(f"job.profile: {where}; send REGISTER_PROFILE before")
        known = BatsimJob(workload, job_name(data.job_id), asked.profile, asked.res, _walltime(asked.walltime))
        try:
            pods = self._pods(known, now)
        except (InputError, ValueError) as error:
            raise ProtocolError(f"job.profile: {error}") from error
        job = RunJob(data.job_id, [pod.uid for pod, _ in pods], known)
        for pod, life in pods:
            self.registered[pod.key] = known
            self._cluster.submit(pod, life)
        return job

    def _pods(self, job: BatsimJob, now: float) -> list[tuple[Pod, PodLifecycle]]:
        source = self._sources.get(job.workload, BatsimSource(name=job.workload, file=""))
        profiles = self._profiles.get(job.workload)
        if profiles is None:
            written = self._written[job.workload]
            profiles = self._profiles[job.workload] = BatsimProfiles(_MessageText(), written, source.speed)
        run = profiles.run_of(job.profile, job.res)
        image = source.images.get(job.profile, self._image)
        containers = (Container(image, source.requests.of(profiles.get(job.profile))),)
        requests, scoring = total_requests(containers)
        life = PodLifecycle(
            seconds=run.seconds,
            deadline=None if job.walltime == NO_WALLTIME else job.walltime,
            failures=-1 if run.fails else 0,
        )
        name = plain_name(f"{job.workload}-{job.job}")
        return [
            (
                Pod(
                    uid=(uid := self._uid(name if job.res == 1 else f"{name}-{number}")),
                    name=uid,
                    containers=containers,
                    requests=requests,
                    scoring_requests=scoring,
                    labels={"app": plain_name(job.profile)},
                    annotations=job.written(),
                    owner=Owner("Job", name, name),
                    scheduler_name=self._scheduler,
                    created_at=now,
                ),
                life,
            )
            for number in range(1, job.res + 1)
        ]

    def _uid(self, name: str) -> PodUid:
        """Return a name that no pod of the cluster has; it is also the uid."""
        while (uid := PodUid(self._names.fresh(name))) in self._cluster.pods:
            continue
        return uid


def _walltime(seconds: float | None) -> float:
    if seconds is None or seconds == NO_WALLTIME:
        return NO_WALLTIME
    if not 0 < seconds <= LONGEST:
        raise ProtocolError(f"job.walltime: {seconds:g} is no walltime; send seconds above 0, or -1 for none")
    return seconds
