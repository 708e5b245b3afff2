"""QosAware preempts by promises: whom it takes, whom it spares, and when it waits instead."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Evict, WakeAt
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.qos_aware.args import QosAwareArgs
from lamina.scheduling.plugins.qos_aware.plugin import QosAware
from lamina.testing import a_loop, a_node, a_pod

PLUGINS = ("QosAware", "NodeResourcesFit", "DefaultBinder")


def promising(name: str, slo: float, created: float = 1.0, **more: Any) -> Pod:
    of = name.split("-", maxsplit=1)[0]
    pod = a_pod(name, cpu=1, annotations={"slo": f"{slo:g}", "controller": of, "qosMeasuring": "average"}, **more)
    return msgspec.structs.replace(pod, created_at=created)


def running(name: str, slo: float, since: float, created: float = 1.0, on: str = "n1", **more: Any) -> Pod:
    return msgspec.structs.replace(promising(name, slo, created, **more), node_name=on, bound_at=since, started=True)


def full(now: float, *pods: Pod, **args: Any) -> Loop:
    """Return a loop at a time, with pods that fill their nodes."""
    loop = a_loop(PLUGINS, args={"QosAware": QosAwareArgs(**{"safety_margin": 30, "minimum_running_time": 60, **args})})
    slots: Mapping[str, int] = {name: sum(pod.node_name == name for pod in pods) for name in ("n1", "n2")}
    loop.feed(*[events.NodeSeen(a_node(name, cpu=count)) for name, count in slots.items() if count])
    loop.feed(events.TimePassed(now), *[events.PodSeen(pod) for pod in pods])
    return loop


def evicted(loop: Loop, pod: Pod) -> list[str]:
    return [command.pod.name for command in loop.feed(events.PodSeen(pod)) if isinstance(command, Evict)]


def test_the_pod_with_the_most_slack_goes():
    loop = full(500.0, running("a-1", 0.5, 1.0), running("b-1", 0.5, 200.0, on="n2"))

    assert evicted(loop, promising("c-1", 0.5, 480.0)) == ["a-1"]


@pytest.mark.parametrize("mode", ["original", "lamina"])
@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(running("a-1", 1.0, 100.0), id="more important and in danger"),
        pytest.param(running("c-1", 0.5, 1.0), id="a pod of the same controller"),
        pytest.param(running("a-1", 0.5, 490.0, 490.0), id="a pod that has just begun"),
        pytest.param(running("a-1", 0.5, 1.0, namespace="kube-system"), id="a system pod"),
    ],
)
def test_these_pods_are_protected(mode: str, pod: Pod):
    loop = full(500.0, pod, mode=mode)

    assert evicted(loop, promising("c-2", 0.5, 480.0)) == []


@pytest.mark.parametrize("mode", ["original", "lamina"])
def test_an_endangered_important_pod_takes_room_from_less_important_ones(mode: str):
    loop = full(500.0, running("a-1", 0.5, 300.0), mode=mode)

    assert evicted(loop, promising("c-1", 1.0, 499.0)) == ["a-1"]


def test_a_swap_that_would_be_undone_soon_happens_in_the_original_mode_only():
    """Both promise the same; the running pod has 40 s of slack, and would be as urgent as the other one after 20 s."""
    pods = (running("a-1", 0.5, 160.0), promising("c-1", 0.5, 320.0))
    original, ours = (full(400.0, pods[0], mode=mode, cycle=720) for mode in ("original", "lamina"))

    assert evicted(original, pods[1]) == ["a-1"]
    assert evicted(ours, pods[1]) == []


def test_a_refused_pod_is_tried_again_when_a_victim_can_wait():
    """The victim gains a second a second and the waiting pod loses one, so there are 360 s between them after 498 s."""
    loop = full(400.0, running("a-1", 0.5, 160.0), mode="lamina", cycle=720)
    commands = loop.feed(events.PodSeen(promising("c-1", 0.5, 320.0)))
    (wake,) = [command.at for command in commands if isinstance(command, WakeAt)]
    told = loop.feed(events.TimePassed(wake))
    while not any(isinstance(command, Evict) for command in told):
        (wake,) = [command.at for command in told if isinstance(command, WakeAt)]
        told = loop.feed(events.TimePassed(wake))

    assert wake == pytest.approx(498.3, abs=1.5)
    plugin = loop.profiles["default-scheduler"].plugins["QosAware"]
    assert isinstance(plugin, QosAware)
    assert plugin.retry_at(promising("c-1", 0.5), wake) is None, "it has a node now"


def test_the_replacement_of_a_victim_does_not_take_the_room_back():
    victim = running("a-1", 0.5, 1.0, priority=9)
    loop = full(500.0, victim)
    assert evicted(loop, promising("c-1", 0.5, 480.0)) == ["a-1"]
    loop.feed(events.TimePassed(501.0), events.PodGone(PodUid("a-1")), events.PodSeen(promising("a-2", 0.5, 501.0)))
    loop.feed(events.TimePassed(510.0))

    assert [cycle.queued.pod.name for cycle in loop.bindings] == ["c-1"]


def test_a_hopeless_controller_goes_last_and_is_told_why():
    loop = full(2000.0, running("a-1", 0.9, 1995.0, 1990.0), mode="lamina", hopeless_after=300)
    told = loop.feed(events.PodSeen(promising("b-1", 0.9, 1000.0)), events.PodSeen(promising("c-1", 0.9, 1950.0)))
    messages = {one.pod.name: one.decision.message for one in told if type(one).__name__ == "ReportUnschedulable"}

    assert "1002 s below its promise" in messages["b-1"]
    assert "below its promise" not in messages.get("c-1", "")
