"""
Preemption with an agent that filters, and binding, which no extender here does.

Two nodes of 4000m are full of a pod each that asks for 2400m. One with a higher priority comes and asks for as much: 60 % of
a node. The stock scheduler evicts from a, whose pod has the lower priority. What the nodes are used for is annotated:

    RISKY (.85, .10)   risk .371595, more than .3: nobody is evicted for a place that would be refused
    LIVELY (.70, .15)  risk .073385: stays
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from tests.e2e._agent_cases import CPU_REASON, LIVELY, RISKY, At, Case, SetUp
from tests.e2e._agent_stage import STOCK, Stage, check_answers, pod, start
from tests.e2e._live import node_of, until
from tests.integration.extender.processes import PODS, Extender, Scheduler, changed

CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
VALUES: Final = {"lowest": 1, "low": 10, "high": 1000}
ASKED: Final = (2400, 160)
SCHEDULER: Final = "my-scheduler-preempts"
SAFE: Final = SetUp("safe", ["safe"], [])

# Where the pod goes; "" nowhere, and then nobody is evicted.
CASES: Final[dict[str, tuple[At, At, str]]] = {
    "both stay candidates": (At(cpu=LIVELY), At(cpu=LIVELY), "a"),
    "one is dropped": (At(cpu=RISKY), At(cpu=LIVELY), "b"),
    "both are dropped": (At(cpu=RISKY), At(cpu=RISKY), ""),
}


def preempting(stage: Stage) -> list[str]:
    """Try the cases, and list what did not hold."""
    for name, value in VALUES.items():
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
        stage.bed.api("POST", CLASSES, {**body, "metadata": {"name": name}})
    wrong: list[str] = []
    with ExitStack() as stack:
        (extender,), config = start(stage.bed, stack, SAFE, SCHEDULER)
        stack.enter_context(Scheduler(stage.bed, SCHEDULER, config))
        full = changed({**config, "profiles": [{"schedulerName": SCHEDULER + "-full"}]}, nodeCacheCapable=False)
        stack.enter_context(Scheduler(stage.bed, SCHEDULER + "-full", full))
        stock = evicted_from(stage, "one is dropped", STOCK)
        if stock != "a":
            wrong.append(f"stock evicts from {stock!r} instead of a")
        for name, (_, _, expected) in CASES.items():
            for scheduler in (SCHEDULER, SCHEDULER + "-full"):
                stage_case(stage, name)
                check_answers([extender], answers(name))
                ours = evicted_from(stage, name, scheduler, fresh=False)
                print(f"  safe preempts       {name}: stock evicts from {stock}, with the agent {ours or 'nowhere'}")
                if ours != expected:
                    wrong.append(f"{name}, {scheduler}: evicts from {ours!r} instead of {expected!r}")
        if not extender.metric('lamina_extender_answers_total{result="answered",verb="preemption/safe-overload"}'):
            wrong.append("nobody asked about preemption")
        wrong += [f"complains: {one}" for one in extender.complaints()]
    return wrong


def answers(name: str) -> Case:
    """What the extender says before anybody is evicted."""
    nodes: Mapping[str, At] = dict(zip("ab", CASES[name][:2], strict=True))
    refused = {node: CPU_REASON for node, state in nodes.items() if state.cpu == RISKY}
    return Case(name, nodes, stock="a", ours="", refused=refused, pod=ASKED)


def stage_case(stage: Stage, name: str, *, annotated: bool = True) -> None:
    """Set the nodes up, and fill them."""
    case = answers(name)
    stage.set_up(case if annotated else replace(case, nodes=dict.fromkeys(case.nodes, At())))
    for node, priority in (("a", "lowest"), ("b", "low")):
        stage.bed.api("POST", PODS, pod(f"victim-{node}", ASKED, nodeName=node, priorityClassName=priority))


def evicted_from(stage: Stage, name: str, scheduler: str, *, fresh: bool = True) -> str:
    """Let the pod come; return from which node somebody had to go, which has to be the node it gets."""
    if fresh:
        stage_case(stage, name)
    first = stage.bed.api("POST", PODS, pod("first", ASKED, schedulerName=scheduler, priorityClassName="high"))

    def ended() -> dict[str, Any] | None:
        node = node_of(stage.bed, "first")
        said = stage.event(first["metadata"]["uid"])
        # Without a candidate nothing more happens than an event that says so.
        return {"node": node} if node is not None or (said and "preemption:" in said and not evicted(stage)) else None

    node = until(f"{name}: the pod is placed or told why not", ended)["node"] or ""
    gone = evicted(stage)
    if gone != ([node] if node else []):
        raise AssertionError(f"{name}: the pod is on {node!r}, and pods were evicted from {gone}")
    return node


def evicted(stage: Stage) -> list[str]:
    """The nodes whose victims are gone."""
    return [node for node in "ab" if stage.is_gone(f"victim-{node}")]


def binding_is_refused(stage: Stage) -> list[str]:
    """Ask for a binding by hand: it is refused in words, and nothing is bound."""
    asked = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}
    with Extender(stage.bed, "foo", "binds") as extender:
        said = extender.ask("bind", asked)
    print(f"  binding             {said['Error']}")
    return [] if "does not bind" in said["Error"] else [f"bind answers {said}"]
