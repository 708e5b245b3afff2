"""SchedulingGates: pods that are not to be looked at yet."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod import Pod
from lamina.scheduling.contract.status import Status, unresolvable
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.bench import Bench


def gated(*gates: str, name: str = "p1") -> Pod:
    """Build a pod with gates."""
    return msgspec.structs.replace(a_pod(name), gates=gates)


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        pytest.param((), None, id="none"),
        pytest.param(("quota",), unresolvable("waiting for scheduling gates: [quota]"), id="one"),
        pytest.param(("b", "a"), unresolvable("waiting for scheduling gates: [b a]"), id="two, in their order"),
        pytest.param(("",), unresolvable("waiting for scheduling gates: []"), id="one without a name is one"),
    ],
)
def test_a_pod_with_gates_is_kept_out_in_upstreams_words(gates: tuple[str, ...], want: Status | None):
    assert want == Bench().make("SchedulingGates").pre_enqueue(gated(*gates))


def test_a_gated_pod_is_neither_tried_nor_talked_about_until_its_last_gate_is_gone():
    """That it is gated stands in its status already: the API server writes that."""
    desk = LoopHarness(a_loop(["SchedulingGates", "PrioritySort", "NodeResourcesFit", "DefaultBinder"]))
    desk.see(gated("one", "two"))
    desk.tell(events.NodeSeen(a_node("n1")))
    desk.see(gated("two"))
    assert ({}, {}, {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}) == (
        desk.bound,
        desk.pending,
        desk.loop.queue.counts(),
    )

    desk.see(gated())

    assert {"p1": "n1"} == desk.bound
