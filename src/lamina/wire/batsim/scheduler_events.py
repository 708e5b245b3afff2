"""Events that the decision process sends, and those that both sides send."""

import msgspec

from lamina.wire.batsim.simulator_events import ABSENT, BatsimEvent


class ExecuteJobData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job and the resources that it gets."""

    job_id: str
    alloc: str
    mapping: dict[str, int | str] | None = None
    """Executor → position in the allocation; unset: one executor for each resource."""
    storage_mapping: msgspec.Raw = ABSENT
    additional_io_job: msgspec.Raw = ABSENT


class ExecuteJob(BatsimEvent, frozen=True, kw_only=True, tag="EXECUTE_JOB"):
    """Start a job that was submitted."""

    data: ExecuteJobData


class JobIdData(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    job_id: str


class RejectJob(BatsimEvent, frozen=True, kw_only=True, tag="REJECT_JOB"):
    """Refuse a job that was submitted and not executed."""

    data: JobIdData


class JobIdsData(msgspec.Struct, frozen=True, kw_only=True):
    """Several jobs."""

    job_ids: tuple[str, ...]


class KillJob(BatsimEvent, frozen=True, kw_only=True, tag="KILL_JOB"):
    """End jobs that run; answered with one JOB_KILLED."""

    data: JobIdsData


class CallTimeData(msgspec.Struct, frozen=True, kw_only=True):
    """When the decision process wants to be called."""

    timestamp: float


class CallMeLater(BatsimEvent, frozen=True, kw_only=True, tag="CALL_ME_LATER"):
    """Ask for a REQUESTED_CALL."""

    data: CallTimeData


class RegisterJobData(msgspec.Struct, frozen=True, kw_only=True):
    """A new job."""

    job_id: str
    job: msgspec.Raw


class RegisterJob(BatsimEvent, frozen=True, kw_only=True, tag="REGISTER_JOB"):
    """Submit a job of the decision process's own."""

    data: RegisterJobData


class RegisterProfileData(msgspec.Struct, frozen=True, kw_only=True):
    """A new profile."""

    workload_name: str
    profile_name: str
    profile: msgspec.Raw


class RegisterProfile(BatsimEvent, frozen=True, kw_only=True, tag="REGISTER_PROFILE"):
    """Add a profile for jobs that are registered later."""

    data: RegisterProfileData


class SetResourceStateData(msgspec.Struct, frozen=True, kw_only=True):
    """Resources and the state that they should have."""

    resources: str
    state: str


class SetResourceState(BatsimEvent, frozen=True, kw_only=True, tag="SET_RESOURCE_STATE"):
    """Change the power state of resources."""

    data: SetResourceStateData


class JobMetadataData(msgspec.Struct, frozen=True, kw_only=True):
    """A text for the table of jobs."""

    job_id: str
    metadata: str


class SetJobMetadata(BatsimEvent, frozen=True, kw_only=True, tag="SET_JOB_METADATA"):
    """Set the column ``metadata`` of a job."""

    data: JobMetadataData


class JobStateData(msgspec.Struct, frozen=True, kw_only=True):
    """A job and its new state."""

    job_id: str
    job_state: str
    kill_reason: str = ""


class ChangeJobState(BatsimEvent, frozen=True, kw_only=True, tag="CHANGE_JOB_STATE"):
    """Set the state of a job without executing it."""

    data: JobStateData


class NotifyEvent(BatsimEvent, frozen=True, kw_only=True, tag="NOTIFY"):
    """A message without an answer, from either side; the data's field ``type`` says about what."""

    data: msgspec.Raw


class NoticeData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of the notifications that Batsim defines."""

    type: str
    resources: str = ""


class QueryData(msgspec.Struct, frozen=True, kw_only=True):
    """Questions by name, each with its arguments."""

    requests: dict[str, msgspec.Raw]


class QueryEvent(BatsimEvent, frozen=True, kw_only=True, tag="QUERY"):
    """A question of either side."""

    data: QueryData


class AnswerEvent(BatsimEvent, frozen=True, kw_only=True, tag="ANSWER"):
    """The answers to a QUERY, by its name."""

    data: dict[str, msgspec.Raw]
