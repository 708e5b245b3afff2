"""
The annotation ``simSpec`` of k8s-cluster-simulator: what a pod uses while it runs, as YAML inside a text.

    metadata: {annotations: {simSpec: "- {seconds: 5, resourceUsage: {cpu: 1, memory: 2Gi}}"}}
"""

from collections.abc import Mapping
from typing import Final

from lamina.model import resources
from lamina.model.conversion import convert
from lamina.model.errors import InputError
from lamina.model.yaml_document import read_yaml
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage
from lamina.simulator.workloads import units
from lamina.simulator.workloads.pod_schema import PhaseEntry

ANNOTATION: Final = "simSpec"
MOST_PHASES: Final = 10_000
LONGEST_TEXT: Final = 1024**2


def stages_of(text: str) -> tuple[LifecycleStage, ...]:
    """Read the annotation's text. Raises InputError with every mistake."""
    if len(text) > LONGEST_TEXT:
        raise InputError.one(ANNOTATION, f"is longer than {LONGEST_TEXT} characters")
    phases = convert(read_yaml(text, ANNOTATION), list[PhaseEntry])
    if not 1 <= len(phases) <= MOST_PHASES:
        raise InputError.one(ANNOTATION, f"must have 1 to {MOST_PHASES} phases, found {len(phases)}")
    stages = tuple(stage_of(one.seconds, one.resource_usage) for one in phases)
    if sum(stage.seconds for stage in stages) > units.LONGEST:
        raise InputError.one(ANNOTATION, "is too long; at most ten years are simulated")
    return stages


def stage_of(seconds: str | float, usage: Mapping[str, str | float]) -> LifecycleStage:
    """Return one stretch of a pod's run."""
    return LifecycleStage(units.seconds(seconds), resources.amounts(usage))
