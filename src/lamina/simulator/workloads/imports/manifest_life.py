"""
How a pod in a manifest behaves: what its spec says, and the annotation ``simSpec``.

    metadata: {annotations: {simSpec: "- {seconds: 5, resourceUsage: {cpu: 1, memory: 2Gi}}"}}

The annotation is a YAML list of stretches, one after the other, as k8s-cluster-simulator has it. A pod with one runs
once and ends; without one it runs until it is removed.
"""

from typing import Annotated

import msgspec

from lamina.model.errors import InputError
from lamina.simulator.cluster.life import Life, Restart, Stage
from lamina.simulator.workloads.imports.manifest_objects import Found
from lamina.simulator.workloads.sim_spec import ANNOTATION, stages_of
from lamina.simulator.workloads.units import LONGEST

Seconds = Annotated[float, msgspec.Meta(ge=0, le=LONGEST)]


class _Meta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    restart_policy: Restart | None = None
    active_deadline_seconds: Seconds | None = None
    termination_grace_period_seconds: Seconds | None = None


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


def life_of(found: Found, where: str, data: bytes | None = None) -> Life:
    """Return how a pod behaves; *data* is the pod where it is only a part of what was *found*, and stands *where*."""
    try:
        pod = msgspec.json.decode(found.data if data is None else data, type=_Pod)
    except (ValueError, RecursionError) as error:
        raise found.wrong(f"cannot be read: {error}", where) from error
    spec = pod.spec
    life = Life(
        restart=spec.restart_policy or "Always",
        deadline=spec.active_deadline_seconds,
        grace=30.0 if spec.termination_grace_period_seconds is None else spec.termination_grace_period_seconds,
    )
    text = (pod.metadata.annotations or {}).get(ANNOTATION)
    if text is None:
        return life
    stages = _stages(found, text)
    return msgspec.structs.replace(life, stages=stages, seconds=sum(stage.seconds for stage in stages), restart="Never")


def _stages(found: Found, text: str) -> tuple[Stage, ...]:
    try:
        return stages_of(text)
    except InputError as error:
        first = error.mistakes[0]
        told = f"{first.message} ({first.path})" if first.path else first.message
        raise found.wrong(told, f"metadata.annotations.{ANNOTATION}") from error
