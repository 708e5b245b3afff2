"""
Every agent behind a real kube-scheduler, against what its formula says by hand.

One control plane; for each set-up of `_agent_cases` there are `lamina extender` processes with the rights of deploy/ and a
stock kube-scheduler with the configuration they print. Each case is a state of the cluster: first a scheduler without
extenders places a pod, then one with them, and the second has to choose what was worked out by hand. Preemption and
binding are tried at the end.
"""

import shutil
import time
from contextlib import ExitStack
from typing import Any, Final

from testbed import Testbed
from tests.e2e._agent_cases import PACKS, SET_UPS, SPREADS, Case, SetUp
from tests.e2e._agent_measured import measured
from tests.e2e._agent_preempting import binding_is_refused, preempting
from tests.e2e._agent_stage import STOCK, Stage, check_answers, pod, start
from tests.integration.extender.processes import Extender, Scheduler, changed, install

NAME = "agents"
SUMMARY = "Each scheduling agent behind a real kube-scheduler: placements as worked out by hand, and not as without it."
NEEDS = ()

BINPACK: Final = SetUp("pigeon", ["pigeon"], [], {"POLICY_OBJECTIVE": "A_BINPACK", "NUM_RESOURCES": "1"})


def main() -> dict[str, Any]:
    """Try everything; what does not hold is told together at the end."""
    began = time.monotonic()
    wrong: dict[str, list[str]] = {}
    with Testbed.start(parts=("kube-scheduler",)) as bed:
        install(bed)
        stage = Stage(bed)
        for number, wanted in enumerate(SET_UPS):
            wrong.setdefault(wanted.name, []).extend(tried(stage, wanted, f"my-scheduler-{number}"))
        wrong["pigeon"] += adaptive(stage)
        wrong["safe"] += preempting(stage)
        measures = shutil.which("prometheus") is not None
        if measures:
            wrong["safe"] += measured(stage)
        else:
            print("  safe                not tried with measurements: there is no prometheus on the PATH")
        wrong["foo"] += binding_is_refused(stage)
    held = {name: not found for name, found in wrong.items()}
    if not all(held.values()):
        raise AssertionError("\n".join(f"{name}: {one}" for name, found in wrong.items() for one in found))
    return {"agents": held, "measured": measures, "seconds": round(time.monotonic() - began, 1)}


def tried(stage: Stage, wanted: SetUp, name: str) -> list[str]:
    """Try the cases of a set-up, and list what did not hold."""
    wrong: list[str] = []
    with ExitStack() as stack:
        extenders, config = start(stage.bed, stack, wanted, name)
        stack.enter_context(Scheduler(stage.bed, name, config))
        for case in wanted.cases:
            wrong += played(stage, extenders, case, name)
        if wanted.full_too:
            wrong += with_whole_nodes(stage, extenders, wanted.cases[0], config)
        wrong += [f"complains: {one}" for extender in extenders for one in extender.complaints()]
        wrong += [
            f"{extender.bound(answered=False)} pods were bound without an answer"
            for extender in extenders
            if extender.bound(answered=False)
        ]
    return wrong


def played(stage: Stage, extenders: list[Extender], case: Case, scheduler: str) -> list[str]:
    """Let a pod come in a state of the cluster, without extenders and with them."""
    stage.set_up(case)
    stock = stage.place("stock", case.pod, STOCK)
    check_answers(extenders, case)
    agents = " and ".join(one.agents for one in extenders)
    if not case.ours:
        said = stage.waits("waits", case.pod, scheduler)
        print(f"  {agents:<18} {case.name}: stock takes {stock}, with the agents it waits: {said}")
        unsaid = [reason for reason in case.refused.values() if f"1 {reason}" not in said]
        return [f"{case.name}: {said!r} does not say {unsaid}"] if unsaid else []
    ours = stage.place("ours", case.pod, scheduler)
    print(f"  {agents:<18} {case.name}: stock takes {stock}, with the agents it is {ours}")
    if (stock, ours) == (case.stock, case.ours):
        return []
    return [f"{agents}: {case.name}: stock {stock} and ours {ours}, should be {case.stock} and {case.ours}"]


def with_whole_nodes(stage: Stage, extenders: list[Extender], case: Case, config: dict[str, Any]) -> list[str]:
    """Let a pod come whose scheduler sends whole nodes with every question."""
    name = extenders[0].scheduler + "-full"
    full = changed(
        {**config, "profiles": [{**one, "schedulerName": name} for one in config["profiles"]]}, nodeCacheCapable=False
    )
    stage.set_up(case)
    check_answers(extenders, case)
    before = [one.metric("lamina_extender_full_node_requests_total") for one in extenders]
    with Scheduler(stage.bed, name, full):
        ours = stage.place("full", case.pod, name)
    unasked = [
        one.agents
        for one, count in zip(extenders, before, strict=True)
        if one.metric("lamina_extender_full_node_requests_total") <= count
    ]
    wrong = [f"{one} was not sent whole nodes" for one in unasked]
    if ours != case.ours:
        wrong.append(f"{case.name}, whole nodes: {ours} instead of {case.ours}")
    return wrong


def adaptive(stage: Stage) -> list[str]:
    """Adaptive packing: the same state, the same pod, and another choice once small pods have been asked for."""
    wrong: list[str] = []
    with ExitStack() as stack:
        (extender,), config = start(stage.bed, stack, BINPACK, "my-scheduler-binpack")
        stack.enter_context(Scheduler(stage.bed, "my-scheduler-binpack", config))
        wrong += played(stage, [extender], SPREADS, "my-scheduler-binpack")
        for number in range(3):
            extender.levels("pigeon-holing", pod(f"small-{number}", (10, 16)), ["a", "b"])
        wrong += played(stage, [extender], PACKS, "my-scheduler-binpack")
    return wrong
