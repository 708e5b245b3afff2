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


def crowded() -> tuple[Loop, Pod]:
    """`middle` had `low` evicted from n1, which is leaving; n2 has a pod that could be evicted as well."""
    loop = full()
    loop.feed(events.NodeSeen(a_node("n2", cpu=4)), events.PodSeen(a_pod("other", cpu=4, priority=1, on="n2")))
    assert ["nominate n1 for middle", "evict low"] == brief(loop.feed(events.PodSeen(a_pod("middle", 4, priority=5))))
    leaving = a_pod("low", cpu=4, on="n1", deleting=True, preempted=True)
    loop.feed(events.PodSeen(leaving))
    return loop, leaving


def test_a_preemptor_whose_victims_all_leave_already_ends_no_nomination():
    """As upstream: nothing new is evicted, so pods of lower priority may still find room there."""
    loop, _ = crowded()

    assert ["nominate n1 for high"] == brief(loop.feed(events.PodSeen(HIGH)))
    assert "n1" == loop.cluster.nominations.node_of("middle")


def test_a_preemptor_that_evicts_another_pod_ends_the_nominations_of_lower_priority_there():
    loop, leaving = crowded()
    loop.feed(events.PodGone("other"), events.NodeGone("n2"), events.PodGone(leaving.uid))
    loop.feed(events.PodSeen(a_pod("new", cpu=4, on="n1", scheduler="another")))

    assert ["nominate nothing for middle", "nominate n1 for high", "evict new"] == brief(
        loop.feed(events.PodSeen(HIGH))
    )


def test_a_pod_evicts_no_others_while_its_victims_leave_although_its_node_is_taken():
    """`high` takes the room of `middle`. As upstream, `middle` evicts `other` only once `low` is gone."""
    loop, leaving = crowded()
    loop.feed(events.PodSeen(HIGH))

    retried = loop.feed(events.TimePassed(30.0), events.PodSeen(a_pod("middle", 4, priority=5, labels={"a": "b"})))
    gone = loop.feed(events.TimePassed(60.0), events.PodGone(leaving.uid))

    assert [] == brief(retried)
    assert ["bind high to n1", "nominate n2 for middle", "evict other"] == brief(gone)


def test_a_pod_evicts_others_while_its_victims_leave_if_its_node_can_never_take_it():
    """The node became too small, which no eviction changes."""
    loop, _ = crowded()

    small = loop.feed(events.TimePassed(30.0), events.NodeSeen(a_node("n1", cpu=2)))
    retried = loop.feed(events.TimePassed(360.0), events.PodSeen(a_pod("middle", 4, priority=5, labels={"a": "b"})))

    assert ["nominate n2 for middle", "evict other"] == brief([*small, *retried])


def test_a_pod_that_waited_for_its_victims_in_vain_is_tried_when_the_last_one_is_gone():
    """What is left of n1 does not fit `middle`, so no other change would wake it."""
    loop = a_loop(PLUGINS)
    lows = [a_pod(name, cpu=1, on="n1") for name in ("low-1", "low-2")]
    loop.feed(events.NodeSeen(a_node("n1", cpu=2)), *map(events.PodSeen, lows))
    loop.feed(events.PodSeen(a_pod("middle", cpu=2, priority=5)))
    loop.feed(*[events.PodSeen(msgspec.structs.replace(one, deleting=True, preempted=True)) for one in lows])

    first = loop.feed(events.PodSeen(a_pod("high", cpu=1, priority=9)))
    second = loop.feed(events.TimePassed(30.0), events.PodGone("low-1"))
    last = loop.feed(events.TimePassed(60.0), events.PodGone("low-2"))

    assert ["nominate n1 for high", "bind high to n1"] == brief([*first, *second])
    assert ["nominate nothing for middle"] == brief(last)
