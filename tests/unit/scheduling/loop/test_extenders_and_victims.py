"""Preemption with extenders: they are asked about victims, the pod waits, and nothing is evicted that they did not allow."""

import pytest

from lamina.model import events
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.extender_answer import AllowedVictims, ExtenderAnswer, ExtenderRefusal
from lamina.model.pod import Pod, PodUid
from lamina.model.selectors import LabelSelector
from lamina.scheduling.contract.commands import (
    AskExtenders,
    Bind,
    Command,
    Evict,
    Nominate,
    ReportUnschedulable,
    WakeAt,
)
from lamina.scheduling.contract.extender_chain import GRACE, CalledExtender
from lamina.scheduling.loop.evictions import EVICTIONS_OFF
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.loop.scheduling_queue import PodBackoff
from lamina.testing import a_loop, a_node, a_pod

PLUGINS = ("PrioritySort", "NodeResourcesFit", "DefaultPreemption", "DefaultBinder")
E = CalledExtender(name="e", preempts=True)
FILTERS = CalledExtender(name="e", preempts=True, filters=True)
GPU = "example.com/gpu"
HIGH = a_pod("high", cpu=4, priority=9)
FITS_NOWHERE = "0/2 nodes are available: 2 Insufficient cpu."


def full(*extenders: CalledExtender, plugins=PLUGINS) -> Loop:
    """Two nodes of 4 cores: on n1 a pod of priority 0, on n2 two pods of priority 1."""
    loop = a_loop(plugins, settings=LoopSettings(PodBackoff(1.0, 10.0), extenders=extenders or (E,)))
    loop.feed(
        *(events.NodeSeen(a_node(name, cpu=4)) for name in ("n1", "n2")),
        events.PodSeen(a_pod("low", cpu=4, on="n1")),
        events.PodSeen(a_pod("left", cpu=2, priority=1, on="n2")),
        events.PodSeen(a_pod("right", cpu=2, priority=1, on="n2")),
    )
    return loop


def brief(commands: list[Command]) -> list[str]:
    """Write commands as lines; without those that only concern time, and without messages if something is done."""
    lines = []
    for one in commands:
        match one:
            case Bind(pod, node):
                lines.append(f"bind {pod.name} to {node}")
            case Evict(pod):
                lines.append(f"evict {pod.name}")
            case Nominate(pod, node):
                lines.append(f"nominate {node or 'nothing'} for {pod.name}")
            case ReportUnschedulable(pod, decision) if not any(isinstance(other, Nominate) for other in commands):
                lines.append(f"{pod.name}: {decision.message}")
            case AskExtenders(pod, _, _, nodes, _, proposed):
                victims = [f"{victim.name} on {on.node}" for on in proposed for victim in on.victims]
                lines.append(f"ask about {pod.name}: {', '.join(victims or nodes)}")
            case WakeAt() | ReportUnschedulable():
                pass
            case _:
                lines.append(type(one).__name__)
    return lines


def asked(commands: list[Command]) -> AskExtenders:
    (command,) = [one for one in commands if isinstance(one, AskExtenders)]
    return command


def allow(command: AskExtenders, *, error: str = "", violations: int = 0, **nodes: str) -> events.Event:
    """Answer: the names of allowed victims, separated by blanks, by node."""
    victims = tuple(AllowedVictims(node, tuple(map(PodUid, uids.split())), violations) for node, uids in nodes.items())
    return events.ExtendersAnswered(command.pod.uid, command.number, ExtenderAnswer(victims=victims, error=error))


def test_extenders_are_asked_about_all_candidates_the_cheapest_first_and_nothing_is_evicted_yet():
    command = asked(commands := full().feed(events.PodSeen(HIGH)))

    assert ["ask about high: low on n1, left on n2, right on n2"] == brief(commands)
    assert ("n1", "n2") == command.nodes
    assert ("e",) == command.extenders


def test_the_cheapest_of_the_candidates_that_are_left_is_nominated():
    loop = full()
    both = asked(loop.feed(events.PodSeen(HIGH)))

    assert ["nominate n1 for high", "evict low"] == brief(loop.feed(allow(both, n1="low", n2="left right")))


def test_a_node_that_an_extender_drops_is_not_chosen():
    loop = full()
    command = asked(loop.feed(events.PodSeen(HIGH)))

    answered = loop.feed(allow(command, n2="left right"))
    gone = loop.feed(events.PodGone("left"), events.PodGone("right"), events.TimePassed(1.0))

    assert ["nominate n2 for high", "evict left", "evict right"] == brief(answered)
    assert ["bind high to n2"] == brief(gone)


def test_extenders_can_name_other_victims_of_a_node():
    """`small` needs one of the two pods on n2, and the extender prefers the other one."""
    loop = full()
    small = a_pod("small", cpu=2, priority=9)
    command = asked(loop.feed(events.PodSeen(small)))
    assert ("left", "right") not in {tuple(victim.name for victim in one.victims) for one in command.proposed}
    (proposed,) = [one.victims[0].name for one in command.proposed if one.node == "n2"]
    other = {"left": "right", "right": "left"}[proposed]

    assert ["nominate n2 for small", f"evict {other}"] == brief(loop.feed(allow(command, n2=other)))


def test_extenders_can_ask_for_more_victims_than_needed():
    loop = full()
    command = asked(loop.feed(events.PodSeen(a_pod("small", cpu=2, priority=9))))

    commands = brief(loop.feed(allow(command, n2="left right")))

    assert ["nominate n2 for small", "evict left", "evict right"] == commands


def test_the_number_of_violated_budgets_is_the_extenders():
    """n1 would be cheaper, but the extender says that it violates a budget."""
    loop = full()
    command = asked(loop.feed(events.PodSeen(HIGH)))
    cheap = AllowedVictims("n1", (PodUid("low"),), 1)
    dear = AllowedVictims("n2", (PodUid("left"), PodUid("right")), 0)

    answer = events.ExtendersAnswered("high", command.number, ExtenderAnswer(victims=(cheap, dear)))

    assert ["nominate n2 for high", "evict left", "evict right"] == brief(loop.feed(answer))


def test_the_extenders_learn_how_many_budgets_would_be_violated():
    loop = full()
    everything = LabelSelector()
    loop.feed(events.ObjectSeen(PodDisruptionBudget(namespace="default", name="b", selector=everything)))

    command = asked(loop.feed(events.PodSeen(a_pod("high", cpu=4, priority=9))))

    assert {"n1": 0, "n2": 0} == {one.node: one.violations for one in command.proposed}


def test_without_a_candidate_no_extender_is_asked():
    commands = full().feed(events.PodSeen(a_pod("plain", cpu=4)))

    assert [
        f"plain: {FITS_NOWHERE} preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    ] == brief(commands)


@pytest.mark.parametrize(
    ("extender", "pod", "wants"),
    [
        pytest.param(CalledExtender(name="e", preempts=True, managed=frozenset({GPU})), HIGH, False, id="not managed"),
        pytest.param(
            CalledExtender(name="e", preempts=True, managed=frozenset({"cpu"})), HIGH, True, id="a managed resource"
        ),
        pytest.param(CalledExtender(name="e", binds=True), HIGH, False, id="no preempt verb"),
    ],
)
def test_only_extenders_with_a_preempt_verb_that_are_interested_in_the_pod_are_asked(extender, pod, wants):
    commands = brief(full(extender).feed(events.PodSeen(pod)))

    want = ["ask about high: low on n1, left on n2, right on n2"] if wants else ["nominate n1 for high", "evict low"]
    assert want == commands


def test_ignorable_extenders_are_asked_last():
    first = CalledExtender(name="lenient", preempts=True, ignorable=True)
    loop = full(first, CalledExtender(name="no", binds=True), CalledExtender(name="strict", preempts=True))

    assert ("strict", "lenient") == asked(loop.feed(events.PodSeen(HIGH))).extenders


# -- answers without an eviction ------------------------------------------------------------------------------------


def test_a_pod_for_which_the_extenders_leave_no_node_stays_pending_as_upstream():
    loop = full()
    command = asked(loop.feed(events.PodSeen(HIGH)))

    refused = brief(loop.feed(allow(command)))
    later = brief(loop.feed(events.TimePassed(60.0)))
    changed = brief(loop.feed(events.PodGone("low")))

    assert [f"high: {FITS_NOWHERE} preemption: no candidate node for preemption"] == refused
    assert [] == later
    assert ["bind high to n1"] == changed


def test_an_error_ends_the_attempt_and_the_pod_tries_again_after_its_back_off():
    loop = full()
    command = asked(loop.feed(events.PodSeen(HIGH)))

    failed = brief(loop.feed(allow(command, error="the extender is broken")))

    assert [f"high: {FITS_NOWHERE} preemption: the extender is broken"] == failed
    assert [] == brief(loop.feed(events.TimePassed(0.9)))
    assert ["ask about high: low on n1, left on n2, right on n2"] == brief(loop.feed(events.TimePassed(1.0)))


def test_without_an_answer_the_attempt_ends_after_all_timeouts():
    loop = full(CalledExtender(name="e", preempts=True, timeout=2.0))
    (wake,) = [one.at for one in loop.feed(events.PodSeen(HIGH)) if isinstance(one, WakeAt)]
    assert 2.0 + GRACE == wake

    assert ["high: the extenders did not answer within 32 seconds"] == brief(loop.feed(events.TimePassed(wake)))
    assert 0 == len(loop.waits)


# -- the cluster changes while the pod waits ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("happened", "want"),
    [
        pytest.param(events.NodeGone("n1"), ["nominate n2 for high", "evict left", "evict right"], id="the node left"),
        pytest.param(
            events.PodGone("left"),
            ["nominate n1 for high", "evict low"],
            id="a victim of another node left",
        ),
        pytest.param(events.PodGone("low"), ["bind high to n1"], id="the victim left, so that the pod fits"),
        pytest.param(events.NodeSeen(a_node("new", cpu=4)), ["bind high to new"], id="a node where the pod fits"),
        pytest.param(events.PodGone("high"), [], id="the pod itself was deleted"),
        pytest.param(
            events.PodSeen(a_pod("high", cpu=4, priority=9, on="n3")), [], id="the pod was bound by another component"
        ),
        pytest.param(
            events.PodSeen(a_pod("high", cpu=4, priority=9, labels={"new": "label"})),
            ["ask about high: low on n1, left on n2, right on n2"],
            id="the pod changed",
        ),
        pytest.param(
            events.NodeSeen(a_node("n1", cpu=3)),
            ["nominate n2 for high", "evict left", "evict right"],
            id="the node became too small",
        ),
        pytest.param(
            events.PodSeen(a_pod("low", cpu=4, on="n1", deleting=True)),
            ["nominate n1 for high"],
            id="the victim leaves already",
        ),
    ],
)
def test_the_answer_is_checked_against_the_cluster_as_it_is(happened, want):
    loop = full()
    command = asked(loop.feed(events.PodSeen(HIGH)))

    assert want == brief(loop.feed(happened, allow(command, n1="low", n2="left right")))


def test_a_node_is_dropped_if_one_of_its_victims_left():
    """The eviction of the others may not be needed any more; the next attempt asks again."""
    loop = full()
    command = asked(loop.feed(events.PodSeen(HIGH)))

    dropped = brief(loop.feed(events.PodGone("left"), allow(command, n2="left right")))
    again = brief(loop.feed(events.TimePassed(1.0)))

    assert [f"high: {FITS_NOWHERE} preemption: no candidate node for preemption"] == dropped
    assert ["ask about high: low on n1, right on n2"] == again


@pytest.mark.parametrize(
    ("nodes", "pod"),
    [
        pytest.param({"n2": "left right"}, a_pod("peer", cpu=4, priority=1), id="a victim of the same priority"),
        pytest.param({"n2": "left"}, HIGH, id="too few victims"),
        pytest.param({"n1": ""}, HIGH, id="no victim"),
        pytest.param({"n3": "low"}, HIGH, id="an unknown node"),
        pytest.param({"n2": "low"}, HIGH, id="a victim that is elsewhere"),
    ],
)
def test_nothing_is_evicted_that_does_not_help_or_must_not_be_evicted(nodes, pod):
    """The host rejects some of these answers already; the loop does not depend on that."""
    loop = full()
    command = asked(loop.feed(events.PodSeen(pod)))

    assert [f"{pod.name}: {FITS_NOWHERE} preemption: no candidate node for preemption"] == brief(
        loop.feed(allow(command, **nodes))
    )
    # No change of the cluster shows when another question would help.
    assert [] == brief(loop.feed(events.TimePassed(0.9)))
    assert f"ask about {pod.name}" in brief(loop.feed(events.TimePassed(1.0)))[0]


def test_two_pods_do_not_evict_the_same_pod_twice():
    loop = full()
    commands = loop.feed(events.PodSeen(HIGH), events.PodSeen(a_pod("next", cpu=4, priority=9)))
    first, second = [one for one in commands if isinstance(one, AskExtenders)]

    assert ["nominate n1 for high", "evict low"] == brief(loop.feed(allow(first, n1="low")))
    assert [f"next: {FITS_NOWHERE} preemption: no candidate node for preemption"] == brief(
        loop.feed(allow(second, n1="low"))
    )
    assert ["ask about next: left on n2, right on n2"] == brief(loop.feed(events.TimePassed(1.0)))


def test_no_pod_is_evicted_after_the_permission_was_lost_meanwhile():
    loop = full()
    command = asked(loop.feed(events.PodSeen(HIGH)))

    commands = loop.feed(events.EvictFailed("other", "other", "forbidden", True), allow(command, n1="low"))

    assert [f"high: {FITS_NOWHERE} {EVICTIONS_OFF}"] == brief(commands)


def test_a_second_answer_is_ignored():
    loop = full()
    command = asked(loop.feed(events.PodSeen(HIGH)))
    loop.feed(allow(command, n1="low"))

    assert [] == brief(loop.feed(allow(command, n2="left right")))


# -- together with filters ------------------------------------------------------------------------------------------


def refuse(command: AskExtenders, *nodes: str, final: bool = False) -> events.Event:
    answer = ExtenderAnswer(refusals=(ExtenderRefusal(nodes, ("no license",), final),))
    return events.ExtendersAnswered(command.pod.uid, command.number, answer)


def with_room() -> Loop:
    """As `full`, and n3, which is free."""
    loop = full(FILTERS)
    loop.feed(events.NodeSeen(a_node("n3", cpu=4)))
    return loop


def test_nodes_that_an_extender_refused_stay_refused_while_it_is_asked_about_victims():
    loop = with_room()
    nodes = loop.feed(events.PodSeen(HIGH))
    victims = loop.feed(refuse(asked(nodes), "n3"))

    evicted = loop.feed(allow(asked(victims), n1="low"))
    freed = loop.feed(events.PodGone("low"), events.TimePassed(1.0))

    assert ["ask about high: n3"] == brief(nodes)
    assert ["ask about high: low on n1, left on n2, right on n2"] == brief(victims)
    assert ["nominate n1 for high", "evict low"] == brief(evicted)
    assert ["0/3 nodes are available: 1 no license, 2 Insufficient cpu."] == [
        one.decision.message for one in evicted if isinstance(one, ReportUnschedulable)
    ]
    assert ["ask about high: n1, n3"] == brief(freed)
    assert ["bind high to n1"] == brief(loop.feed(refuse(asked(freed), "n3")))


def test_a_node_that_becomes_free_meanwhile_is_asked_about_first():
    loop = with_room()
    victims = asked(loop.feed(refuse(asked(loop.feed(events.PodSeen(HIGH))), "n3")))

    assert ["ask about high: n1, n3"] == brief(loop.feed(events.PodGone("low"), allow(victims, n2="left right")))


def test_victims_on_a_node_that_an_extender_refused_for_good_are_not_evicted():
    loop = with_room()
    loop.feed(events.PodSeen(a_pod("tiny", cpu=1, on="n3")))
    small = a_pod("small", cpu=3, priority=9)
    nodes = asked(loop.feed(events.PodSeen(small)))
    victims = asked(loop.feed(refuse(nodes, "n3", final=True)))

    commands = brief(loop.feed(allow(victims, n3="tiny")))

    assert not any(one.startswith(("evict", "nominate")) for one in commands)


# -- snapshots ------------------------------------------------------------------------------------------------------


def test_a_wait_for_victims_survives_a_snapshot():
    loop, twin = with_room(), with_room()
    victims = asked(loop.feed(refuse(asked(loop.feed(events.PodSeen(HIGH))), "n3")))
    twin = a_loop(PLUGINS, settings=LoopSettings(PodBackoff(1.0, 10.0), extenders=(FILTERS,)))
    twin.restore(loop.snapshot())

    answer = allow(victims, n1="low")
    assert brief(loop.feed(answer)) == brief(twin.feed(answer))
    assert "evict low" not in brief(loop.feed(answer))


def victims_of(pod: Pod, loop: Loop) -> list[str]:
    return brief(loop.feed(events.PodSeen(pod)))


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(HIGH, id="a whole node"),
        pytest.param(a_pod("small", cpu=2, priority=9), id="half a node"),
        pytest.param(a_pod("middle", cpu=4, priority=1), id="one node only"),
    ],
)
def test_extenders_that_agree_change_nothing(pod):
    loop = full()
    command = asked(loop.feed(events.PodSeen(pod)))
    agreed = {one.node: " ".join(victim.uid for victim in one.victims) for one in command.proposed}

    without = victims_of(pod, full(CalledExtender(name="other", binds=True)))

    assert without == brief(loop.feed(allow(command, **agreed)))
