"""When an idle run ends: not while time alone changes something, and not for the sake of a safety flush."""

import random
from collections.abc import Sequence
from typing import ClassVar

import pytest

from lamina.model.events import Event, NodeSeen, PodGone, PodSeen, TimePassed
from lamina.model.pod import Pod
from lamina.scheduling.config.loader import load
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind, Command, WakeAt
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Wait
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.scheduling_queue import SchedulingQueue
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.simulator.decider import LoopDecider
from lamina.simulator.run import simulate
from lamina.simulator.run.simulation_host import STALL_SECONDS
from lamina.testing import a_node, a_pod
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving, placed

FLUSH = 300.0


class Patient:
    """Binds the pod at *at*, is woken every *every* seconds meanwhile, and says until when it was asked to be."""

    names = ("patient",)
    attempts = 0

    def __init__(self, at: float, every: float, *, trying: bool = True, promises: bool = True) -> None:
        self.at, self.every, self.trying, self.promises = at, every, trying, promises
        self.now = 0.0
        self.pods: list[Pod] = []
        self.woken: list[float] = []
        self.asked = 0

    @property
    def asked_until(self) -> float | None:
        self.asked += 1
        return self.at if self.promises else None

    def feed(self, *happened: Event) -> Sequence[Command]:
        for event in happened:
            if isinstance(event, TimePassed):
                self.now = event.now
                self.woken.append(event.now)
            elif isinstance(event, PodSeen) and not event.pod.node_name:
                self.pods.append(event.pod)
        if self.pods and self.now >= self.at:
            return [Bind(self.pods.pop(), "n1")]
        return [WakeAt(min(self.now + self.every, self.at))] if self.now < self.at else []


ONE_POD = a_scenario([a_node_spec("n1", holds=["web"])], [arriving(0.0, "p", duration=1.0)])


@pytest.mark.parametrize(
    "every",
    [
        pytest.param(1e9, id="that nothing comes before"),
        pytest.param(FLUSH, id="behind wake-ups for other reasons"),
        pytest.param(10.0, id="behind a pod that fails again and again"),
    ],
)
def test_a_run_waits_for_a_time_that_a_plugin_asked_for_however_far_it_is(every):
    decider = Patient(3 * STALL_SECONDS, every)
    result = simulate(ONE_POD, decider=decider)

    assert {"p": "n1"} == placed(result)
    assert 3 * STALL_SECONDS == result.pods[0].bound
    # Not once for each wake-up: it may have to look through all pods that wait.
    assert 1 == decider.asked


def test_wake_ups_that_are_only_a_safety_flush_do_not_keep_a_run_going():
    decider = Patient(3 * STALL_SECONDS, FLUSH, trying=False)
    result = simulate(ONE_POD, decider=decider)

    assert (None, [0.0]) == (result.pods[0].bound, decider.woken)


def test_pods_that_keep_failing_are_given_up_after_an_hour():
    decider = Patient(3 * STALL_SECONDS, FLUSH, promises=False)
    result = simulate(ONE_POD, decider=decider)

    assert (None, STALL_SECONDS) == (result.pods[0].bound, decider.woken[-1])


def test_a_plugin_that_always_asks_for_another_time_does_not_keep_a_run_going():
    class Putting(Patient):
        @property
        def asked_until(self) -> float | None:
            return self.now + 2 * FLUSH

    decider = Putting(1e9, FLUSH)
    simulate(ONE_POD, decider=decider)

    assert STALL_SECONDS == decider.woken[-1]


class Holding:
    """Holds every pod back for ten minutes: twice as long as the queue's flush."""

    name: ClassVar = "Holding"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        pass

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait:
        return Wait(600.0)


def test_a_run_waits_for_the_end_of_a_permit_wait():
    known = registry(entry_points=False)
    known.register(Holding)
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {permit: {enabled: [{name: Holding}]}}
"""
    # The other one fits nowhere, and its flush comes first.
    pods = [arriving(0.0, "held"), arriving(0.0, "large", cpu=9)]
    result = simulate(a_scenario([a_node_spec("n1")], pods), load(text, "test", known))

    assert "10m0s at plugin Holding" in result.pods[0].message
    assert 600.0 == result.seconds


# ----------------------------------------------------------------------------------------------------- what a loop says


def a_loop() -> Loop:
    return Loop(named("kube-default", registry()).profiles, random.Random(0).randrange)


def waiting_pod(name: str, cpu: int = 9) -> Pod:
    return a_pod(name, cpu, scheduler="default-scheduler")


def said(decider: LoopDecider) -> bool:
    # A call, because what a property said once holds for mypy until the end.
    return decider.trying


def test_a_loop_tries_while_a_pod_is_ready_or_backs_off_and_not_while_pods_only_wait(monkeypatch):
    """
    And it can say so without walking through the pods.
    """
    loop = a_loop()
    decider = LoopDecider(loop)
    decider.feed(TimePassed(0.0), NodeSeen(a_node("n1", 4)))
    loop.take(*(PodSeen(waiting_pod(f"p{number}")) for number in range(50)))

    def refuse(queue: SchedulingQueue) -> None:
        pytest.fail("walked through all pods")

    monkeypatch.setattr(SchedulingQueue, "counts", refuse)
    monkeypatch.setattr(SchedulingQueue, "__iter__", refuse)
    assert said(decider)
    decider.feed()
    assert not said(decider)
    # A node with room wakes one of them, which still backs off.
    loop.take(TimePassed(0.1), NodeSeen(a_node("n2", 9)))
    assert said(decider)
    for number in range(50):
        loop.take(PodGone(waiting_pod(f"p{number}").uid))
    assert (False, None) == (said(decider), decider.asked_until)
