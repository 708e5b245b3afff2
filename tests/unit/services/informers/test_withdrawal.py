"""A report that is taken back: the node counts again as one that never reported anything."""

import msgspec
import pytest

from lamina.model.events import ImagesLearned, LayersReported, LayersWithdrawn, NodeGone, NodeSeen, PodSeen
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.testing import LoopHarness, a_loop, a_node, a_pod, an_image, held

APP = an_image("app:1", {"base": 500_000_000, "app": 100_000_000})


def a_desk() -> LoopHarness:
    desk = LoopHarness(a_loop(settings=LoopSettings(detail="savings")))
    desk.tell(NodeSeen(a_node("n1")), NodeSeen(a_node("n2")), ImagesLearned((APP,)))
    return desk


def test_layers_attract_and_layers_that_were_taken_back_do_not():
    desk = a_desk()
    desk.tell(LayersReported(held("n1")), LayersReported(held("n2", APP)))
    desk.see(a_pod("before"))
    desk.tell(LayersWithdrawn("n2"))
    desk.see(a_pod("after"))

    assert {"before": "n2", "after": "n1"} == desk.bound
    assert desk.loop.cluster.inventory.index.reported.sum() == 1


def test_a_report_and_its_withdrawal_leave_nothing_behind():
    plain, told = a_desk(), a_desk()
    told.tell(LayersReported(held("n2", APP)))
    told.tell(LayersWithdrawn("n2"))
    for desk in (plain, told):
        desk.see(a_pod("p"))

    assert plain.decisions["p"].chosen == told.decisions["p"].chosen
    assert plain.decisions["p"].locality is told.decisions["p"].locality is None


@pytest.mark.parametrize("node", ["n1", "nobody"], ids=["that reported nothing", "that is not there"])
def test_taking_back_what_was_never_said_changes_nothing(node):
    desk = a_desk()

    assert [] == desk.loop.cluster.inventory.withdraw(node)
    desk.see(a_pod("p"))
    assert {"p": "n1"} == desk.bound


def test_a_report_that_was_taken_back_before_its_node_came_does_not_count():
    desk = a_desk()
    desk.tell(LayersReported(held("n3", APP)), LayersWithdrawn("n3"), NodeSeen(a_node("n3")))
    desk.see(a_pod("p"))

    assert {"p": "n1"} == desk.bound


def test_the_next_report_counts_even_with_a_lower_number():
    """The object was deleted and made anew, and its agent counts from one again."""
    desk = a_desk()
    desk.tell(LayersReported(held("n1")), LayersReported(held("n2", sequence=9)))
    desk.tell(LayersWithdrawn("n2"), LayersReported(held("n2", APP, sequence=1)))
    desk.see(a_pod("p"))

    assert {"p": "n2"} == desk.bound


def test_what_was_wrong_with_it_is_forgotten_too():
    desk = a_desk()
    inventory = desk.loop.cluster.inventory
    desk.tell(LayersReported(msgspec.structs.replace(held("n2", APP), download_rate=-1.0)))
    assert "n2" in inventory.conditions

    desk.tell(LayersWithdrawn("n2"))
    assert "n2" not in inventory.conditions


def test_a_node_may_leave_before_or_after_its_report():
    desk = a_desk()
    desk.tell(LayersReported(held("n2", APP)), NodeGone("n2"), LayersWithdrawn("n2"), NodeSeen(a_node("n2")))
    desk.see(a_pod("p"))

    assert {"p": "n1"} == desk.bound


def test_pods_that_wait_are_looked_at_again_when_layers_are_taken_back():
    """Whatever the plugins make of it: nothing breaks, and the pod still waits."""
    desk = a_desk()
    desk.tell(LayersReported(held("n2", APP)))
    desk.see(a_pod("huge", cpu=64))
    desk.tell(LayersWithdrawn("n2"))

    assert "huge" in desk.pending


def test_savings_are_told_without_the_layers_of_the_full_story():
    desk = a_desk()
    desk.tell(LayersReported(held("n1")), LayersReported(held("n2", APP)), PodSeen(a_pod("p")))
    story = desk.decisions["p"].locality

    assert story is not None
    assert ((), 0, 0.0) == (story.layers, story.download, story.seconds)
    assert 600_000_000 == story.against_runner_up.bytes
    assert 300_000_000 == story.against_mean.bytes
    assert () == desk.decisions["p"].verdicts
