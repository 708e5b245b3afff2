"""A job of the simulator, as the decision process knows it, and the pods that stand for it."""

from typing import Any, Final

import msgspec

from lamina.model import resources
from lamina.model.errors import InputError
from lamina.model.pod import PodUid
from lamina.model.quantity import QuantityError
from lamina.model.resources import CPU, Amounts
from lamina.simulator.workloads.batsim_profiles import BatsimProfile, ResourceRequests
from lamina.simulator.workloads.imports.batsim_job import BatsimJob
from lamina.simulator.workloads.imports.pod_drafts import plain_name
from lamina.wire.batsim.job_fields import NO_WALLTIME, JobFields, job_name, workload_name
from lamina.wire.batsim.job_states import SUBMITTED
from lamina.wire.batsim.messages import ProtocolError
from lamina.wire.batsim.simulator_events import JobSubmittedData

ONE_CPU: Final[Amounts] = ((CPU, 1000),)


class KubernetesFields(msgspec.Struct, frozen=True):
    """The field ``kubernetes`` of a job: what one of its pods requests and runs."""

    requests: dict[str, Any] = {}  # Any: quantities
    images: tuple[str, ...] = ()


class _Described(msgspec.Struct, frozen=True):
    kubernetes: KubernetesFields | None = None


class FollowedJob:
    """One job."""

    __slots__ = ("image", "known", "name", "numbers", "pod_names", "pods", "requests", "started_at", "state", "tries")

    def __init__(self, name: str, known: BatsimJob, requests: Amounts, image: str) -> None:
        """Describe a job that was submitted; each of its pods has these *requests* and runs *image*."""
        self.name = name
        self.known = known
        self.requests = requests
        self.image = image
        self.state = SUBMITTED
        self.pods: list[PodUid] = []
        self.pod_names: list[str] = []
        self.tries = 0
        """Number of times that its pods were created."""
        self.numbers: list[int] = []
        """The resources of its pods, in order, once all of them are bound."""
        self.started_at = 0.0
        """When it was executed."""

    @property
    def is_gang(self) -> bool:
        """Whether it needs several resources at once."""
        return self.known.res > 1


def followed_job(data: JobSubmittedData, profiles: dict[str, dict[str, msgspec.Raw]]) -> FollowedJob:
    """Return the job of a message; *profiles* are those of the workloads. Raises ProtocolError."""
    if not data.job:
        raise ProtocolError("data: has no job; start Batsim without Redis")
    try:
        fields = msgspec.json.decode(data.job, type=JobFields)
        described = msgspec.json.decode(data.job, type=_Described)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"data.job: {error}") from error
    walltime = NO_WALLTIME if fields.walltime is None else fields.walltime
    workload = workload_name(data.job_id)
    known = BatsimJob(workload, job_name(data.job_id), fields.profile, fields.res, walltime)
    profile = data.profile or profiles.get(workload, {}).get(fields.profile)
    kubernetes = described.kubernetes or KubernetesFields()
    image = kubernetes.images[0] if kubernetes.images else f"batsim/{plain_name(fields.profile)}"
    return FollowedJob(data.job_id, known, _requests(kubernetes, profile), image)


def _requests(kubernetes: KubernetesFields, profile: msgspec.Raw | None) -> Amounts:
    """Return the requests of a pod: those of the message, or of a batkube delay profile, or one cpu."""
    try:
        if kubernetes.requests:
            return resources.amounts(kubernetes.requests)
        if profile:
            return ResourceRequests().of(msgspec.json.decode(profile, type=BatsimProfile))
    except msgspec.ValidationError:
        # A profile that Lamina cannot simulate; the simulator can.
        return ONE_CPU
    except (QuantityError, ValueError, TypeError, InputError) as error:
        raise ProtocolError(f"data.job: requests: {error}") from error
    return ONE_CPU
