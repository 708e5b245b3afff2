"""Evictions of the loop: nominated first, evicted once, and what follows when an eviction fails."""

from typing import ClassVar

import msgspec

from lamina.model import events
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind, Command, Evict, Nominate, ReportUnschedulable
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Wait
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.loop.evictions import EVICTIONS_OFF, OFF_FOR
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.testing import a_loop, a_node, a_pod

PLUGINS = ("PrioritySort", "NodeResourcesFit", "DefaultPreemption", "DefaultBinder")


class Patience:
    """Holds pods of priority 0 before they are bound."""

    name: ClassVar = "Patience"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait | None:
        return None if pod.priority else Wait(100.0)


def full() -> Loop:
    loop = a_loop(PLUGINS)
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(a_pod("low", cpu=4, on="n1")))
    return loop


def brief(commands: list[Command]) -> list[str]:
    lines = []
    for one in commands:
        match one:
            case Bind(pod, node):
                lines.append(f"bind {pod.name} to {node}")
            case Evict(pod):
                lines.append(f"evict {pod.name}")
            case Nominate(pod, node):
                lines.append(f"nominate {node or 'nothing'} for {pod.name}")
    return lines


def messages(commands: list[Command]) -> list[str]:
    return [one.decision.message for one in commands if isinstance(one, ReportUnschedulable)]


HIGH = a_pod("high", cpu=4, priority=9)


def test_the_nomination_comes_before_the_eviction():
    assert ["nominate n1 for high", "evict low"] == brief(full().feed(events.PodSeen(HIGH)))


def test_a_failed_eviction_ends_the_nomination_and_the_pod_tries_again_after_its_back_off():
    loop = full()
    loop.feed(events.PodSeen(HIGH))

    failed = loop.feed(events.EvictFailed("low", "high", "503"))
    again = loop.feed(events.TimePassed(30.0))

    assert ["nominate nothing for high"] == brief(failed)
    assert ["nominate n1 for high", "evict low"] == brief(again)


def test_without_the_permission_preemption_pauses_and_the_pod_says_so():
    loop = full()
    loop.feed(events.PodSeen(HIGH))

    rejected = loop.feed(events.EvictFailed("low", "high", "forbidden", True))
    paused = loop.feed(events.TimePassed(30.0))
    resumed = loop.feed(events.TimePassed(OFF_FOR + 60.0), events.PodSeen(a_pod("next", cpu=4, priority=9)))

    assert ["nominate nothing for high"] == brief(rejected)
    assert [] == brief(paused)
    assert messages(paused)[0].endswith(EVICTIONS_OFF)
    assert "evict low" in brief(resumed)


def test_a_failure_for_a_pod_that_is_gone_changes_nothing():
    loop = full()
    loop.feed(events.PodSeen(HIGH))
    loop.feed(events.PodGone("high"))

    assert [] == brief(loop.feed(events.EvictFailed("low", "high", "503")))
    assert ["nominate n1 for other", "evict low"] == brief(loop.feed(events.PodSeen(a_pod("other", 4, priority=1))))


def test_a_victim_that_is_not_bound_yet_goes_back_into_the_queue():
    """As upstream preempts a waiting pod in memory; the other pod then needs no eviction to end."""
    loop = a_loop((*PLUGINS, Patience))
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(a_pod("low", cpu=4)))

    asked = loop.feed(events.PodSeen(HIGH))
    later = loop.feed(events.TimePassed(20.0))

    assert ["nominate n1 for high"] == brief(asked)
    assert "evict low" not in brief(later)
    assert ["bind high to n1"] == brief(later)
    assert loop.queue.get("low") is not None


def test_a_victim_whose_binding_is_sent_is_deleted():
    loop = a_loop(PLUGINS)
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(a_pod("low", cpu=4)))

    assert ["nominate n1 for high", "evict low"] == brief(loop.feed(events.PodSeen(HIGH)))


def test_the_room_of_victims_of_another_pod_counts_as_leaving():
    """`middle` loses its nomination to `high`, whose victim is the same pod; the nomination of `high` stays."""
    loop = full()
    loop.feed(events.PodSeen(a_pod("middle", cpu=4, priority=5)))
    loop.feed(events.PodSeen(HIGH))
    loop.feed(events.PodSeen(msgspec.structs.replace(HIGH, labels={"a": "b"})))

    assert "n1" == loop.cluster.nominations.node_of("high")


def test_evictions_survive_a_snapshot():
    loop, twin = full(), a_loop(PLUGINS)
    loop.feed(events.PodSeen(HIGH))
    loop.feed(events.EvictFailed("other", "high", "forbidden", True))
    twin.restore(loop.snapshot())

    more = [events.TimePassed(30.0), events.PodSeen(a_pod("next", cpu=4, priority=10))]
    assert loop.snapshot().cluster.evictions == twin.snapshot().cluster.evictions == (("low", "high"),)
    assert brief(loop.feed(*more)) == brief(twin.feed(*more)) == []
