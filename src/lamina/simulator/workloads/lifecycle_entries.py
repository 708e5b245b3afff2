"""
From what an entry says about a pod's run to a life: how long, what it uses, how it ends and what happens then.

Stages may stand in the entry, or in the annotation ``simSpec`` as k8s-cluster-simulator has it: YAML inside a text.
"""

from collections.abc import Iterable
from typing import Final

from lamina.model.errors import InputError, Mistake
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage, PodLifecycle, Restart
from lamina.simulator.workloads import units
from lamina.simulator.workloads.pod_schema import TemplateEntry
from lamina.simulator.workloads.scenario_files import ScenarioEntry
from lamina.simulator.workloads.sim_spec import ANNOTATION, stage_of, stages_of

ALWAYS_RESTARTED: Final = ("Deployment", "StatefulSet", "DaemonSet")

_DECIMALS: Final = 9
"""To the nanosecond: 0.1 s and 0.2 s are 0.3 s together, not 0.30000000000000004."""


def entry_lifecycle(entry: ScenarioEntry, kind: str) -> tuple[PodLifecycle, list[Mistake]]:
    """Return how the pods of an entry live, which are made by a *kind* of controller, or by none."""
    said: TemplateEntry = entry.value
    stages, mistakes = _stages(entry, said)
    seconds = None if said.duration is None else units.seconds(said.duration)
    if stages:
        if seconds is not None:
            mistakes.append(entry.mistake("the stages say how long it runs; leave duration out", "duration"))
        seconds = round(sum(stage.seconds for stage in stages), _DECIMALS)
    if said.failures and seconds is None:
        mistakes.append(
            entry.mistake("a pod fails when it ends, and this one never does; say its duration", "failures")
        )
    mistakes += _of_restart(entry, said, kind)
    life = PodLifecycle(
        seconds=seconds,
        stages=stages,
        failures=said.failures,
        restart=said.restart or _usual_restart(kind),
        deadline=None if said.deadline is None else units.seconds(said.deadline),
        grace=units.seconds(said.grace),
        stopping=units.seconds(said.stopping),
        unreachable=None if said.unreachable is None else units.seconds(said.unreachable),
    )
    return life, mistakes


def is_endless(life: PodLifecycle, kind: str) -> bool:
    """Whether pods of a *kind* of controller, or of none, begin again and again, so that a run would never end by itself."""
    if life.seconds is None:
        return False
    if kind in ALWAYS_RESTARTED:
        # What is not restarted is replaced.
        return True
    return life.deadline is None and (life.restart == "Always" or (life.restart == "OnFailure" and life.failures == -1))


def _usual_restart(kind: str) -> Restart:
    return "Always" if kind in ALWAYS_RESTARTED else "Never"


def _of_restart(entry: ScenarioEntry, said: TemplateEntry, kind: str) -> Iterable[Mistake]:
    if kind in ALWAYS_RESTARTED and said.restart not in (None, "Always"):
        yield entry.mistake(f"the pods of a {kind} are always restarted; leave restart out", "restart")
    if kind in ALWAYS_RESTARTED and said.deadline is not None:
        yield entry.mistake(f"the pods of a {kind} have no deadline; leave it out", "deadline")
    if kind == "Job" and said.restart == "Always":
        yield entry.mistake("the pods of a Job have to end; write OnFailure or Never", "restart")


def _stages(entry: ScenarioEntry, said: TemplateEntry) -> tuple[tuple[LifecycleStage, ...], list[Mistake]]:
    stages = tuple(stage_of(one.seconds, one.usage) for one in said.stages)
    if ANNOTATION not in said.annotations:
        return stages, []
    if stages:
        return stages, [entry.mistake(f"say stages or the annotation {ANNOTATION}, not both", "stages")]
    try:
        return stages_of(said.annotations[ANNOTATION]), []
    except InputError as error:
        # Lines inside of the text are not lines of the file.
        told = (f"{mistake.path}: {mistake.message}" if mistake.path else mistake.message for mistake in error.mistakes)
        return (), [entry.mistake(one, "annotations", ANNOTATION) for one in told]
