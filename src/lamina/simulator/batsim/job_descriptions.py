"""
Jobs and profiles as a decision process reads them.

Jobs of an imported Batsim workload are passed on as written. Every other pod of the run is a job of its own: its number
in the workload ``pods``, and a delay profile with the seconds that it runs. All jobs have the field ``kubernetes``,
with what a Kubernetes scheduler would see.
"""

from typing import Any, Final

import msgspec

from lamina.model.duration import LONGEST
from lamina.model.pod import Pod
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads import Scenario
from lamina.simulator.workloads.imports.batsim_job import BatsimJob, job_of
from lamina.wire.batsim.job_fields import SEPARATOR, v4_profile
from lamina.wire.kube.encoded_values import encode_amounts

PODS: Final = "pods"
"""Workload of pods that are not jobs of an imported workload."""
FIELD: Final = "kubernetes"
"""The field of a job that describes its pods: the name of the first, and the requests and images of each."""

FAILURE: Final = 1
"""Return code of a job that failed, if its profile says none."""


class _Returns(msgspec.Struct, frozen=True):
    ret: int = 0


class JobDescriptions:
    """Describes the jobs of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        """Take the imported workloads of *scenario* as written."""
        self._sources = {one.name: one for one in scenario.batsim}
        self._single = 0
        lives = [one.life for one in scenario.arrivals if job_of(one.pod.annotations) is None]
        lives += [one.life for one in scenario.controllers]
        self.workloads = {name: one.file for name, one in self._sources.items()}
        self.profiles = {
            name: {key: v4_profile(profile) for key, profile in one.profiles.items()}
            for name, one in self._sources.items()
        }
        """Profiles of each workload, in version 4's words."""
        if lives:
            self.workloads[PODS] = scenario.name
            self.profiles[PODS] = {_delay_name(life): _delay(life) for life in lives}

    def name_of(self, pod: Pod) -> tuple[str, BatsimJob]:
        """Return the identifier of a pod's job, and the job; a pod without one becomes a job of its own."""
        job = job_of(pod.annotations)
        if job is None:
            self._single += 1
            job = BatsimJob(PODS, str(self._single), "", 1)
        return f"{job.workload}{SEPARATOR}{job.job}", job

    def described(self, name: str, job: BatsimJob, pods: list[VirtualPod]) -> msgspec.Raw:
        """Return a job as JSON."""
        first = pods[0]
        source = self._sources.get(job.workload)
        raw = None if source is None else source.jobs.get(job.job)
        written: dict[str, Any] = {} if raw is None else msgspec.json.decode(raw)
        described = {
            **written,
            "id": name,
            "profile": job.profile or _delay_name(first.life),
            "res": len(pods),
            "subtime": first.arrived,
        }
        if first.life.deadline is not None:
            described["walltime"] = first.life.deadline
        described[FIELD] = {
            "pod": first.key,
            "requests": encode_amounts(first.pod.requests),
            "images": first.pod.images,
        }
        return msgspec.Raw(msgspec.json.encode(described))

    def profile(self, job: BatsimJob, life: PodLifecycle) -> msgspec.Raw:
        """Return the profile of a job, for a JOB_SUBMITTED that forwards it."""
        known = self.profiles.get(job.workload, {}).get(job.profile)
        return _delay(life) if known is None else known

    def failing_code(self, job: BatsimJob) -> int:
        """Return the exit code of a job if it fails."""
        raw = self.profiles.get(job.workload, {}).get(job.profile)
        return FAILURE if raw is None else msgspec.json.decode(raw, type=_Returns).ret or FAILURE

    def register_profile(self, workload: str, name: str, profile: msgspec.Raw) -> None:
        """Add a profile of the decision process."""
        self.profiles.setdefault(workload, {})[name] = v4_profile(profile)


def _delay_name(life: PodLifecycle) -> str:
    return "endless" if life.length is None else f"delay{life.length!r}"


def _delay(life: PodLifecycle) -> msgspec.Raw:
    """Return a delay profile; a pod that runs until it is removed has the longest delay there is."""
    seconds = float(LONGEST) if life.length is None else life.length
    return msgspec.Raw(msgspec.json.encode({"type": "delay", "delay": seconds}))
