"""Pods that are resized while they run: what they hold is not given away, and what they give back is used."""

import msgspec
import pytest

from lamina.model.events import NodeSeen, TimePassed
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from lamina.wire.kube.codec import decode_pod

PLUGINS = ("PrioritySort", "NodeUnschedulable", "TaintToleration", "NodeResourcesFit", "DefaultBinder")
PENDING = "PodResizePending"


def running(asked, held, *, reason=""):
    """A pod on node n that asks for so many cpus and holds so many."""
    amounts = {"cpu": str(held)}
    status = {"name": "c", "allocatedResources": amounts, "resources": {"requests": amounts}}
    conditions = [{"type": PENDING, "status": "True", "reason": reason}] if reason else []
    return decode_pod(
        msgspec.json.encode(
            {
                "metadata": {"name": "resized", "uid": "resized"},
                "spec": {
                    "nodeName": "n",
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": str(asked)}}}],
                },
                "status": {"phase": "Running", "conditions": conditions, "containerStatuses": [status]},
            }
        )
    )


def a_desk(*pods):
    """A desk with a node of 4 cpus and these pods."""
    desk = LoopHarness(a_loop(PLUGINS))
    desk.tell(TimePassed(1.0), NodeSeen(a_node("n", cpu=4)))
    desk.see(*pods)
    return desk


@pytest.mark.parametrize(
    ("pod", "bound"),
    [
        pytest.param(running(1, 3), {}, id="a smaller size that is not done yet holds its room"),
        pytest.param(running(3, 1), {}, id="a larger size that is not done yet has its room kept"),
        pytest.param(running(8, 1, reason="Deferred"), {}, id="so has one that is put off"),
        pytest.param(running(8, 1, reason="Infeasible"), {"new": "n"}, id="one that is infeasible has not"),
        pytest.param(running(1, 1), {"new": "n"}, id="a smaller size that is done has given its room back"),
    ],
)
def test_a_pod_takes_the_larger_of_what_it_asks_for_and_what_it_holds(pod, bound):
    desk = a_desk(pod)
    desk.see(a_pod("new", cpu=2))

    assert bound == desk.bound


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(running(1, 3), running(1, 1), id="a smaller size is done"),
        pytest.param(running(3, 1), running(3, 1, reason="Infeasible"), id="a larger size turns out infeasible"),
        pytest.param(running(3, 1), running(1, 1), id="a larger size is taken back"),
    ],
)
def test_a_resize_that_frees_room_wakes_the_pods_that_wait_for_it(before, after):
    desk = a_desk(before)
    desk.see(a_pod("new", cpu=2))
    assert {"new": "0/1 nodes are available: 1 Insufficient cpu."} == desk.pending

    desk.at(20.0)
    assert not desk.bound
    desk.see(after)

    assert {"new": "n"} == desk.bound


def test_a_resize_that_frees_too_little_wakes_no_pod():
    desk = a_desk(running(1, 4))
    desk.see(a_pod("new", cpu=2))
    desk.at(20.0)
    attempts = len(desk.commands)
    desk.see(running(1, 3))

    assert attempts == len(desk.commands)
    assert not desk.bound
