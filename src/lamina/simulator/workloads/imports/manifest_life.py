"""
How a pod in a manifest behaves: what its spec says, and the annotation ``simSpec``.

    metadata: {annotations: {simSpec: "- {seconds: 5, resourceUsage: {cpu: 1, memory: 2Gi}}"}}

The annotation is a YAML list of stretches, one after the other, as k8s-cluster-simulator has it. A pod with one runs
once and ends; without one it runs until it is removed.
"""

from typing import Annotated, Final

import msgspec

from lamina.model import resources, schema
from lamina.model.document import read_yaml
from lamina.model.errors import InputError
from lamina.model.plain import shown
from lamina.simulator.cluster.life import Life, Restart, Stage
from lamina.simulator.workloads.fields import Quantity
from lamina.simulator.workloads.imports.manifest_objects import Found
from lamina.simulator.workloads.units import LONGEST

ANNOTATION: Final = "simSpec"
MOST_STAGES: Final = 10_000
LONGEST_TEXT: Final = 1024**2

Seconds = Annotated[float, msgspec.Meta(ge=0, le=LONGEST)]


class _StageEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One stretch."""

    seconds: Seconds
    resource_usage: dict[str, Quantity] = {}


class _Stages(msgspec.Struct, frozen=True):
    """The annotation, under a name of its own, so that a mistake in it can be placed."""

    stages: tuple[_StageEntry, ...] = msgspec.field(name=ANNOTATION)


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
    where = f"metadata.annotations.{ANNOTATION}"
    if len(text) > LONGEST_TEXT:
        raise found.wrong(f"is longer than {LONGEST_TEXT} characters", where)
    indented = "\n".join(f"  {line}" for line in text.splitlines())
    try:
        read = schema.convert(read_yaml(f"{ANNOTATION}:\n{indented}\n", found.source), _Stages)
    except InputError as error:
        first = error.mistakes[0]
        raise found.wrong(f"{first.message} ({first.path})" if first.path else first.message, where) from error
    if not read.stages or len(read.stages) > MOST_STAGES:
        raise found.wrong(f"{shown(text)} has no stretch, or more than {MOST_STAGES}", where)
    if sum(stage.seconds for stage in read.stages) > LONGEST:
        raise found.wrong("is too long: at most ten years are simulated", where)
    return tuple(Stage(stage.seconds, resources.amounts(stage.resource_usage)) for stage in read.stages)
