"""Pods with extenders: they are asked between filters and reserve, the answer is an event, and the node is checked again."""

import pytest

from lamina.model.events import ExtendersAnswered, NodeGone, NodeSeen, PodGone, PodSeen, TimePassed
from lamina.model.extender_answer import ExtenderAnswer, ExtenderRefusal, ExtenderScores
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
from lamina.scheduling.loop.extender_waits import MOST_WAITS
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.loop.scheduling_queue import PodBackoff
from lamina.testing import a_loop, a_node, a_pod

CORE = ("PrioritySort", "NodeUnschedulable", "NodeName", "NodeResourcesFit", "DefaultBinder")
A = CalledExtender(name="http://a", filters=True)
GPU = "example.com/gpu"


def loop_with(*extenders: CalledExtender, plugins=CORE, detail="full", **settings) -> Loop:
    return a_loop(plugins, settings=LoopSettings(detail=detail, extenders=extenders or (A,), **settings))


def started(*extenders: CalledExtender, nodes: int = 3, cpu: int = 4, **settings) -> Loop:
    loop = loop_with(*extenders, **settings)
    loop.take(*(NodeSeen(a_node(f"n{number}", cpu=cpu)) for number in range(1, nodes + 1)))
    return loop


def asked(commands: list[Command]) -> AskExtenders:
    (command,) = [one for one in commands if isinstance(one, AskExtenders)]
    return command


def bound(commands: list[Command]) -> dict[str, str]:
    return {one.pod.name: one.node for one in commands if isinstance(one, Bind)}


def messages(commands: list[Command]) -> dict[str, str]:
    return {one.pod.name: one.decision.message for one in commands if isinstance(one, ReportUnschedulable)}


def answer(command: AskExtenders, **answer) -> ExtendersAnswered:
    return ExtendersAnswered(command.pod.uid, command.number, ExtenderAnswer(**answer))


def refusal(*nodes: str, reason: str | None = "no license", final: bool = False) -> ExtenderRefusal:
    return ExtenderRefusal(nodes, () if reason is None else (reason,), final)


# -- asking ---------------------------------------------------------------------------------------------------------


def test_extenders_are_asked_about_the_feasible_nodes_and_the_pod_is_not_bound_yet():
    loop = started(nodes=2)
    loop.take(NodeSeen(a_node("full", cpu=0)))

    commands = loop.feed(PodSeen(a_pod("p", cpu=1)))

    assert ("n1", "n2") == asked(commands).nodes
    assert ("http://a",) == asked(commands).extenders
    assert {} == bound(commands)


def test_no_extender_is_asked_if_no_node_is_feasible():
    """As upstream; the message is the ordinary one."""
    commands = started(nodes=2).feed(PodSeen(a_pod("p", cpu=9)))

    assert {"p": "0/2 nodes are available: 2 Insufficient cpu."} == messages(commands)
    assert not any(isinstance(one, AskExtenders) for one in commands)


@pytest.mark.parametrize(
    ("extender", "nodes", "pod", "wants"),
    [
        pytest.param(CalledExtender(name="x", filters=True), 1, a_pod("p"), True, id="a filter about one node"),
        pytest.param(CalledExtender(name="x", prioritizes=True), 1, a_pod("p"), False, id="scores of one node"),
        pytest.param(CalledExtender(name="x", prioritizes=True), 2, a_pod("p"), True, id="scores of two nodes"),
        pytest.param(CalledExtender(name="x", binds=True), 2, a_pod("p"), False, id="only a bind verb"),
        pytest.param(
            CalledExtender(name="x", filters=True, managed=frozenset({GPU})),
            2,
            a_pod("p", cpu=1),
            False,
            id="not managed",
        ),
        pytest.param(
            CalledExtender(name="x", filters=True, managed=frozenset({GPU})),
            2,
            a_pod("p", limits={GPU: 1}),
            True,
            id="a limit on a managed resource",
        ),
    ],
)
def test_an_extender_is_asked_only_if_it_has_a_verb_for_the_case_and_is_interested_in_the_pod(
    extender, nodes, pod, wants
):
    commands = started(extender, nodes=nodes).feed(PodSeen(pod))

    assert wants is any(isinstance(one, AskExtenders) for one in commands)
    assert wants is not ("p" in bound(commands))


def test_ignorable_extenders_come_last():
    first, second = CalledExtender(name="a", filters=True, ignorable=True), CalledExtender(name="b", filters=True)

    assert ("b", "a") == asked(started(first, second).feed(PodSeen(a_pod()))).extenders


def test_other_pods_are_decided_while_one_waits():
    managed = CalledExtender(name="x", filters=True, managed=frozenset({"cpu"}))
    loop = started(managed, cpu=9)
    asked(loop.feed(PodSeen(a_pod("slow", cpu=1))))

    assert {"quick": "n1"} == bound(loop.feed(PodSeen(a_pod("quick"))))


def test_at_most_so_many_pods_wait_and_the_next_is_asked_about_after_an_answer():
    loop = started(cpu=1000)
    commands = loop.feed(*(PodSeen(a_pod(f"p{number}", cpu=1)) for number in range(MOST_WAITS + 2)))
    waiting = [one for one in commands if isinstance(one, AskExtenders)]
    assert MOST_WAITS == len(waiting) == len(loop.waits)
    assert not loop.unfinished

    commands = loop.feed(answer(waiting[3]))

    assert {"p3": "n1"} == bound(commands)
    assert f"p{MOST_WAITS}" == asked(commands).pod.name


# -- answers --------------------------------------------------------------------------------------------------------


def test_a_pod_is_bound_to_a_node_that_the_extender_left():
    loop = started()
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1))))

    assert {"p": "n3"} == bound(loop.feed(answer(command, refusals=(refusal("n1", "n2"),))))


def test_refusals_of_extenders_are_counted_in_the_message_with_those_of_plugins():
    """Nodes that an extender leaves out without a reason are not mentioned, as upstream."""
    loop = started(nodes=4)
    loop.take(NodeSeen(a_node("small", cpu=0)))
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1))))

    commands = loop.feed(
        answer(
            command,
            refusals=(refusal("n1", "n2"), refusal("n3", reason="broken", final=True), refusal("n4", reason=None)),
        )
    )

    assert {"p": "0/5 nodes are available: 1 Insufficient cpu, 1 broken, 2 no license."} == messages(commands)


def test_an_error_fails_the_attempt_with_its_text_and_the_pod_is_tried_again_after_its_back_off():
    loop = started(backoff=PodBackoff(1.0, 10.0))
    command = asked(loop.feed(PodSeen(a_pod("p"))))

    commands = loop.feed(answer(command, error="failed filter with extender at URL http://a/filter, code 500"))

    assert {"p": "failed filter with extender at URL http://a/filter, code 500"} == messages(commands)
    assert not any(isinstance(one, AskExtenders) for one in loop.feed(TimePassed(0.9)))
    assert "p" == asked(loop.feed(TimePassed(1.0))).pod.name


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(PodGone(a_pod("other").uid), id="a pod that is gone"),
        pytest.param(NodeSeen(a_node("n1", labels={"new": "label"})), id="a label"),
        pytest.param(NodeSeen(a_node("new")), id="a node"),
    ],
)
def test_a_pod_that_an_extender_refused_is_tried_again_after_any_change(change):
    """An extender cannot say which changes would help."""
    loop = started(nodes=1)
    loop.feed(PodSeen(a_pod("other", on="n1")))
    loop.feed(answer(asked(loop.feed(PodSeen(a_pod("p")))), refusals=(refusal("n1"),)))
    assert not any(isinstance(one, AskExtenders) for one in loop.feed(TimePassed(60.0)))

    assert "p" == asked(loop.feed(change)).pod.name


def test_scores_of_extenders_are_added_to_those_of_plugins_with_the_extenders_weight():
    """Weight 2 on the extenders' scale of ten is 20 points for each: 3 · 20 = 60."""
    extender = CalledExtender(name="x", prioritizes=True, weight=2)
    loop = started(extender, nodes=3)
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1))))

    commands = loop.feed(answer(command, scores=(ExtenderScores("x", extender.scale, {"n2": 3, "n3": -1}),)))

    (bind,) = [one for one in commands if isinstance(one, Bind)]
    assert "n2" == bind.node
    assert bind.decision is not None
    assert bind.decision.chosen is not None
    plugins = sum(one.points for one in bind.decision.chosen.scores if one.plugin != "x")
    assert ("x", 3, 20) == next((o.plugin, o.score, o.weight) for o in bind.decision.chosen.scores if o.plugin == "x")
    assert plugins + 60 == bind.decision.chosen.total
    totals = {one.node: one.total for one in bind.decision.verdicts}
    assert {"n1": plugins, "n2": plugins + 60, "n3": plugins - 20} == totals


def test_a_node_with_a_negative_total_is_chosen_if_all_have_one():
    loop = started(CalledExtender(name="x", prioritizes=True, weight=1), nodes=2)
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1))))

    worst = {"n1": -(2**63), "n2": -1000}
    assert {"p": "n2"} == bound(loop.feed(answer(command, scores=(ExtenderScores("x", 10, worst),))))


# -- the node is checked again --------------------------------------------------------------------------------------


def test_another_answered_node_is_taken_if_the_best_one_is_full_by_now():
    loop = started(nodes=2, cpu=1)
    scores = (ExtenderScores("x", 10, {"n1": 10}),)
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1))))

    commands = loop.feed(PodSeen(a_pod("first", cpu=1, on="n1")), answer(command, scores=scores))

    assert {"p": "n2"} == bound(commands)


def test_the_extenders_are_asked_again_if_only_nodes_fit_that_they_were_not_asked_about():
    loop = started(nodes=1, cpu=1)
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1))))

    commands = loop.feed(PodSeen(a_pod("first", cpu=1, on="n1")), NodeSeen(a_node("new")), answer(command))

    assert {} == bound(commands)
    assert ("new",) == asked(commands).nodes
    assert {"p": "new"} == bound(loop.feed(answer(asked(commands))))


def test_a_pod_whose_answered_nodes_are_all_full_is_refused_with_the_current_reasons():
    loop = started(nodes=2, cpu=1)
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1))))

    commands = loop.feed(PodSeen(a_pod("first", cpu=1, on="n1")), answer(command, refusals=(refusal("n2"),)))

    assert {"p": "0/2 nodes are available: 1 Insufficient cpu, 1 no license."} == messages(commands)


def test_a_node_that_left_meanwhile_is_not_taken():
    loop = started(nodes=2)
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1))))

    assert {"p": "n2"} == bound(loop.feed(NodeGone("n1"), answer(command)))


def test_two_waiting_pods_do_not_get_the_same_room():
    loop = started(nodes=2, cpu=1)
    commands = loop.feed(PodSeen(a_pod("a", cpu=1)), PodSeen(a_pod("b", cpu=1)))
    first, second = [one for one in commands if isinstance(one, AskExtenders)]

    assert {"b": "n1", "a": "n2"} == bound(loop.feed(answer(second), answer(first)))


# -- ends of a wait -------------------------------------------------------------------------------------------------


def test_the_loop_asks_to_be_woken_at_the_deadline_and_then_fails_the_attempt():
    loop = started(A)
    commands = loop.feed(PodSeen(a_pod("p")))
    (wake,) = [one.at for one in commands if isinstance(one, WakeAt)]
    assert A.timeout + GRACE == wake

    commands = loop.feed(TimePassed(wake))

    assert {"p": "the extenders did not answer within 35 seconds"} == messages(commands)
    assert 0 == len(loop.waits)


@pytest.mark.parametrize(
    ("happened", "waits"),
    [
        pytest.param(PodGone(a_pod("p").uid), False, id="deleted"),
        pytest.param(PodSeen(a_pod("p", on="n2")), False, id="bound by another component"),
        pytest.param(PodSeen(a_pod("p")), True, id="seen again unchanged"),
    ],
)
def test_a_pod_stops_waiting_when_it_leaves_and_its_answer_is_ignored(happened, waits):
    loop = started()
    command = asked(loop.feed(PodSeen(a_pod("p"))))
    loop.feed(happened)
    assert waits is (len(loop.waits) == 1)

    assert waits is ("p" in bound(loop.feed(answer(command))))


def test_the_extenders_are_asked_again_about_a_pod_that_changed():
    loop = started()
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1))))
    changed = a_pod("p", cpu=1, labels={"tier": "gold"})

    commands = loop.feed(PodSeen(changed), answer(command))

    assert {} == bound(commands)
    assert changed == asked(commands).pod
    assert {"p": "n1"} == bound(loop.feed(answer(asked(commands))))


def test_answers_with_another_number_and_second_answers_are_ignored():
    loop = started()
    command = asked(loop.feed(PodSeen(a_pod("p"))))

    early = ExtendersAnswered(command.pod.uid, command.number - 1, ExtenderAnswer())
    assert {} == bound(loop.feed(early))
    refused = answer(command, refusals=(refusal("n1", "n2"),))
    assert {"p": "n3"} == bound(loop.feed(refused, answer(command)))


def test_answers_that_arrive_while_another_instance_leads_are_used_until_the_deadline():
    """An instance that does not lead takes events, and decides nothing."""
    loop = started()
    first = asked(loop.feed(PodSeen(a_pod("p"))))
    loop.take(TimePassed(3.0), answer(first))
    assert {"p": "n1"} == bound(loop.feed(TimePassed(4.0)))

    second = asked(loop.feed(PodSeen(a_pod("q"))))
    loop.take(TimePassed(5.0), answer(second), TimePassed(500.0))
    commands = loop.feed(TimePassed(501.0), TimePassed(502.0))
    assert {} == bound(commands)
    assert "q" == asked(commands).pod.name


def test_a_pod_that_leaves_while_it_waits_wakes_the_next_one_of_its_group():
    """Room for one pod wakes one pod of a group; if that pod leaves, the room is for the next one."""
    loop = started(nodes=1, cpu=1)
    loop.feed(PodSeen(a_pod("big", cpu=1, on="n1")))
    loop.feed(PodSeen(a_pod("a", cpu=1)), PodSeen(a_pod("b", cpu=1)))
    first = asked(loop.feed(TimePassed(20.0), PodGone(a_pod("big").uid)))

    second = asked(loop.feed(PodGone(first.pod.uid)))

    assert {"a", "b"} == {first.pod.name, second.pod.name}


# -- binding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("managed", "extender"),
    [
        pytest.param(frozenset({"cpu"}), "x", id="interested"),
        pytest.param(frozenset({GPU}), "", id="not interested"),
    ],
)
def test_the_command_names_the_extender_that_binds_the_pod(managed, extender):
    loop = started(CalledExtender(name="x", binds=True, managed=managed))

    (bind,) = [one for one in loop.feed(PodSeen(a_pod("p", cpu=1))) if isinstance(one, Bind)]

    assert extender == bind.extender


def test_no_pod_is_evicted_from_a_node_that_only_an_extender_refused():
    """As upstream: with all pods kept the filters pass, so that there is no victim."""
    loop = started(nodes=2, plugins=(*CORE, "DefaultPreemption"))
    loop.feed(PodSeen(a_pod("small", cpu=1, on="n1")), PodSeen(a_pod("other", cpu=1, on="n2")))
    command = asked(loop.feed(PodSeen(a_pod("p", cpu=1, priority=10))))

    commands = loop.feed(answer(command, refusals=(refusal("n1"), refusal("n2", final=True))))

    assert not any(isinstance(one, Evict | Nominate) for one in commands)
    assert messages(commands)["p"].startswith("0/2 nodes are available: 2 no license.")
