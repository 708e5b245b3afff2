"""Decoders of Deployments, Jobs and CronJobs, restricted to the number of their pods."""

from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from lamina.model.pod_controllers import CronJob, Deployment, Job, PodController
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta, controller

C = TypeVar("C", bound=PodController)


class PodCountSpec(msgspec.Struct, frozen=True, gc=False):
    """``spec`` of a Deployment, Job or CronJob."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None


class PodControllerObject(msgspec.Struct, frozen=True, gc=False):
    """A Deployment, Job or CronJob."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: PodCountSpec | None = None


_DECODER: Final = msgspec.json.Decoder(PodControllerObject)


def decode_deployment(data: bytes | Raw) -> Deployment:
    """Return a decoded apps/v1 Deployment. Raises WireError."""
    return _decoded(Deployment, data)


def decode_job(data: bytes | Raw) -> Job:
    """Return a decoded batch/v1 Job. Raises WireError."""
    return _decoded(Job, data)


def decode_cron_job(data: bytes | Raw) -> CronJob:
    """Return a decoded batch/v1 CronJob. Raises WireError."""
    return _decoded(CronJob, data)


def _decoded(kind: type[C], data: bytes | Raw) -> C:
    name = kind.__name__
    try:
        found = _DECODER.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError(name, f"{error}; check that a Kubernetes API server sent it") from error
    if found.kind and found.kind != name:
        raise WireError(name, f"this is a {found.kind:.80}; ask for {name.lower()}s")
    spec = found.spec or PodCountSpec()
    return kind(
        namespace=found.metadata.namespace,
        name=found.metadata.name,
        replicas=spec.replicas if kind is Deployment else spec.parallelism,
        completions=spec.completions,
        owner=controller(found.metadata.owner_references),
    )
