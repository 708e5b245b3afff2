"""What a pod asks for and what it may use at most, and whether the two, and its life, go together."""

from collections.abc import Iterator

from lamina.model import resources
from lamina.model.errors import Mistake
from lamina.model.resources import CPU, MEMORY, Amounts
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.node_capacity import shown
from lamina.simulator.workloads.pod_schema import TemplateEntry
from lamina.simulator.workloads.scenario_files import ScenarioEntry


def requests_and_limits(said: TemplateEntry) -> tuple[Amounts, Amounts]:
    """Return requests and limits; as the API server does it, a limit without a request is the request as well."""
    own = {name: value for name, value in ((CPU, said.cpu), (MEMORY, said.memory)) if value is not None}
    limits = {
        name: value for name, value in ((CPU, said.limits.cpu), (MEMORY, said.limits.memory)) if value is not None
    }
    return resources.amounts({**said.resources, **limits, **own}), resources.amounts(limits)


def broken_limits(entry: ScenarioEntry, asked: Amounts, limits: Amounts, life: PodLifecycle) -> Iterator[Mistake]:
    """Tell of limits below what is asked for, and of the first stage above each: nothing is throttled or killed here."""
    requests = dict(asked)
    for name, most in limits:
        if requests[name] > most:
            message = f"is below the request of {shown(name, requests[name])}: a limit is at least as much"
            yield entry.mistake(message, "limits", name)
        for number, stage in enumerate(life.stages):
            uses = dict(stage.usage).get(name, 0)
            if uses > most:
                where = ("stages", number, "usage", name) if entry.value.stages else ("limits", name)
                message = f"a stage uses {shown(name, uses)} {name}, but the limit is {shown(name, most)}"
                yield entry.mistake(f"{message}: nobody uses more than that", *where)
                break
