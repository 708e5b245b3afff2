"""
Events that the simulator sends: what happened on the platform.

Reading is lenient about fields that Lamina does not need, because versions of Batsim differ in them.
"""

from typing import Any, Final

import msgspec

ABSENT: Final = msgspec.Raw()
"""An optional part of a message that is not there; it is false."""


class BatsimEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all events: the time in seconds, and the type as a tag."""

    timestamp: float


class NoData(msgspec.Struct, frozen=True):
    """An event's data, if it has none."""


class BatsimHost(msgspec.Struct, frozen=True, kw_only=True):
    """A compute resource."""

    id: int
    name: str
    state: str = "idle"
    properties: dict[str, Any] = {}  # Any: whatever the platform file says
    zone_properties: dict[str, Any] = {}  # Any: likewise


class BatsimConfig(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """How the simulator was started."""

    redis_enabled: bool = False
    redis_hostname: str = "127.0.0.1"
    redis_port: int = 6379
    redis_prefix: str = "default"
    profiles_forwarded_on_submission: bool = False
    dynamic_jobs_enabled: bool = False
    dynamic_jobs_acknowledged: bool = False
    profile_reuse_enabled: bool = False
    sched_config: str = ""
    forward_unknown_events: bool = False


class SimulationBeginsData(msgspec.Struct, frozen=True, kw_only=True):
    """The platform, the workloads and the configuration."""

    nb_resources: int
    nb_compute_resources: int
    nb_storage_resources: int = 0
    allow_compute_sharing: bool = False
    allow_storage_sharing: bool = True
    config: BatsimConfig = BatsimConfig()
    compute_resources: tuple[BatsimHost, ...]
    storage_resources: tuple[BatsimHost, ...] = ()
    workloads: dict[str, str] = {}
    """File of each workload."""
    profiles: dict[str, dict[str, msgspec.Raw]] = {}
    """Profiles of each workload, by name."""


class SimulationBegins(BatsimEvent, frozen=True, kw_only=True, tag="SIMULATION_BEGINS"):
    """The first event, alone in its message."""

    data: SimulationBeginsData


class SimulationEnds(BatsimEvent, frozen=True, kw_only=True, tag="SIMULATION_ENDS"):
    """The last event: all jobs were completed or rejected."""

    data: NoData = NoData()


class JobSubmittedData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job; its profile only if the simulator was told to forward it."""

    job_id: str
    job: msgspec.Raw = ABSENT
    profile: msgspec.Raw = ABSENT


class JobSubmitted(BatsimEvent, frozen=True, kw_only=True, tag="JOB_SUBMITTED"):
    """A job arrived."""

    data: JobSubmittedData


class JobCompletedData(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended, and where it ran."""

    job_id: str
    job_state: str
    return_code: int = 0
    alloc: str = ""


class JobCompleted(BatsimEvent, frozen=True, kw_only=True, tag="JOB_COMPLETED"):
    """A job that was executed has ended, in whatever way."""

    data: JobCompletedData


class JobKilledData(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one request, and how far those had come that the request has ended."""

    job_ids: tuple[str, ...]
    job_progress: dict[str, Any] = {}  # Any: nested for profiles of several parts


class JobKilled(BatsimEvent, frozen=True, kw_only=True, tag="JOB_KILLED"):
    """All jobs of a KILL_JOB have ended; a JOB_COMPLETED for each of them came before."""

    data: JobKilledData


class ResourceStateChangedData(msgspec.Struct, frozen=True, kw_only=True):
    """Resources and their new state."""

    resources: str
    state: str


class ResourceStateChanged(BatsimEvent, frozen=True, kw_only=True, tag="RESOURCE_STATE_CHANGED"):
    """A SET_RESOURCE_STATE was done."""

    data: ResourceStateChangedData


class RequestedCall(BatsimEvent, frozen=True, kw_only=True, tag="REQUESTED_CALL"):
    """The time of a CALL_ME_LATER has come."""

    data: NoData = NoData()
