"""
`safe` with measurements instead of annotations: a real Prometheus server, with fifteen minutes of history in it.

Nodes have 4 cores. Steady use has no deviation, so it is certain which side of the threshold (90 %) it is on.

    placing      a swings by 1.6 around 2.0 cores, b uses 2.4 steadily, c 3.6; a is the emptiest by requests, so stock's choice
                 c: 3.6 and more is 90 %, and the pod comes on top: refused
                 b: at most .64 of a node with everything that may count, no deviation: no risk, level 10; balance
                    1 - .64/2 = .68, level 7: 100 + 700
                 a: .52; a sine of 1.6 deviates by 1.13 cores, of which a rate over 2 of its 5 minutes leaves .76: .21 of a
                    node. Risk (Beta 2.3, 2.1 above .9) some .03, level 7; balance 1 - (.52 + .46)/2 = .51, level 5: 70 + 500
    preempting   the pod asks for 2.4 cores, as a victim of each node does, which is measured there
                 a: 3.8 in use, 1.4 without the victim, 3.8 with the pod: 95 %, dropped
                 b: 2.6 in use, 0.2 without the victim, 2.6 with the pod: 65 %, stays; with the victim it would be refused
                 stock would evict from a, whose victim has the lower priority
"""

import math
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from testbed.prometheus import Prometheus
from tests.e2e._agent_cases import CPU_REASON, At, Case, SetUp, some
from tests.e2e._agent_preempting import evicted_from, stage_case
from tests.e2e._agent_stage import STOCK, Stage, check_answers, start
from tests.e2e._live import run_pod
from tests.integration.extender.processes import Scheduler
from tests.integration.usage.history import Course, history

SCHEDULER: Final = "my-scheduler-measured"
PAST: Final = 1200.0
AHEAD: Final = 240.0
"""Seconds that are written down in advance, for as long as the story goes on asking."""
PLACING: Final = Case(
    "measured",
    {"a": At(), "b": At(some(1)), "c": At(some(2))},
    stock="a",
    ours="b",
    refused={"c": CPU_REASON},
)
PREEMPTING: Final = replace(
    PLACING, name="measured", nodes={"a": At(), "b": At()}, refused=dict.fromkeys("ab", CPU_REASON), pod=(2400, 160)
)


def steady(cores: float) -> tuple[Course, Course]:
    """Always the same, and hardly any memory."""
    return lambda _: cores, lambda _: 1e8


def swinging(cores: float, height: float) -> tuple[Course, Course]:
    """Up and down in five minutes."""
    return lambda at: cores + height * math.sin(2 * math.pi * at / 300), lambda _: 1e8


def measured(stage: Stage) -> list[str]:
    """Try both, and list what did not hold."""
    wrong = placing(stage)
    stage_case(stage, "both stay candidates", annotated=False)
    for node in "ab":
        # It runs, and is measured: only of such a pod is it known what would be free without it.
        run_pod(stage.bed, f"victim-{node}")
    with ExitStack() as stack:
        extenders = asked(stage, stack, {"a": steady(3.8), "b": steady(2.6)})
        check_answers(extenders, PREEMPTING)
        ours = evicted_from(stage, "measured", SCHEDULER, fresh=False)
        print(f"  safe preempts       measured: with the agent it evicts from {ours or 'nowhere'}")
        if ours != "b":
            wrong.append(f"measured: evicts from {ours!r} instead of b")
    return wrong


def placing(stage: Stage) -> list[str]:
    """Let a pod come, without extenders and with them."""
    with ExitStack() as stack:
        extenders = asked(stage, stack, {"a": swinging(2.0, 1.6), "b": steady(2.4), "c": steady(3.6)})
        stage.set_up(PLACING)
        stock = stage.place("stock", PLACING.pod, STOCK)
        check_answers(extenders, PLACING)
        ours = stage.place("ours", PLACING.pod, SCHEDULER)
        print(f"  safe                measured: stock takes {stock}, with the agent it is {ours}")
        found = [f"complains: {one}" for extender in extenders for one in extender.complaints()]
    return found if (stock, ours) == ("a", "b") else [*found, f"measured: stock {stock}, ours {ours}"]


def asked(stage: Stage, stack: ExitStack, uses: dict[str, tuple[Course, Course]]) -> list[Any]:
    """Start a Prometheus with the past of some nodes, an extender that asks it, and a scheduler that asks the extender."""
    now = time.time()
    past = {f"{node}:9100": courses for node, courses in uses.items()}
    server = stack.enter_context(Prometheus(blocks=history(past, now - PAST, now + AHEAD)))
    configuration = {
        "apiVersion": "lamina.dev/v1alpha1",
        "kind": "ExtenderConfiguration",
        "agents": [{"name": "safe"}],
        "usage": {"every": "1s", "prometheus": {"url": server.url}},
    }
    extenders, config = start(stage.bed, stack, SetUp("safe", ["safe"], [], configuration=configuration), SCHEDULER)
    stack.enter_context(Scheduler(stage.bed, SCHEDULER, config))
    return extenders
