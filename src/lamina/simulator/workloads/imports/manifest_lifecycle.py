"""
How a pod in a manifest behaves: what its spec says, and the annotation ``simSpec``.

    metadata: {annotations: {simSpec: "- {seconds: 5, resourceUsage: {cpu: 1, memory: 2Gi}}"}}

The annotation is a YAML list of stretches, one after the other, as k8s-cluster-simulator has it. A pod with one runs
once and ends; without one it runs until it is removed.
"""

from typing import Annotated

import msgspec

from lamina.model.errors import InputError
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage, PodLifecycle, Restart
from lamina.simulator.workloads.imports.manifest_objects import ManifestObject
from lamina.simulator.workloads.sim_spec import ANNOTATION, stages_of
from lamina.simulator.workloads.units import LONGEST

ManifestSeconds = Annotated[float, msgspec.Meta(ge=0, le=LONGEST)]


class _PodMetaFields(msgspec.Struct, frozen=True):
    annotations: dict[str, str] | None = None


class _PodSpecFields(msgspec.Struct, frozen=True, rename="camel"):
    restart_policy: Restart | None = None
    active_deadline_seconds: ManifestSeconds | None = None
    termination_grace_period_seconds: ManifestSeconds | None = None


class _PodFields(msgspec.Struct, frozen=True):
    metadata: _PodMetaFields = _PodMetaFields()
    spec: _PodSpecFields = _PodSpecFields()


def manifest_lifecycle_of(found: ManifestObject, where: str, data: bytes | None = None) -> PodLifecycle:
    """Return how a pod behaves; *data* is the pod where it is only a part of what was *found*, and stands *where*."""
    try:
        pod = msgspec.json.decode(found.data if data is None else data, type=_PodFields)
    except (ValueError, RecursionError) as error:
        raise found.wrong(f"cannot be read: {error}", where) from error
    spec = pod.spec
    life = PodLifecycle(
        restart=spec.restart_policy or "Always",
        deadline=spec.active_deadline_seconds,
        grace=30.0 if spec.termination_grace_period_seconds is None else spec.termination_grace_period_seconds,
    )
    text = (pod.metadata.annotations or {}).get(ANNOTATION)
    if text is None:
        return life
    stages = _stages(found, text)
    return msgspec.structs.replace(life, stages=stages, seconds=sum(stage.seconds for stage in stages), restart="Never")


def _stages(found: ManifestObject, text: str) -> tuple[LifecycleStage, ...]:
    try:
        return stages_of(text)
    except InputError as error:
        first = error.mistakes[0]
        told = f"{first.message} ({first.path})" if first.path else first.message
        raise found.wrong(told, f"metadata.annotations.{ANNOTATION}") from error
