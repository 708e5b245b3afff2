"""Explain: what plugins can add to a decision, apart from scores and refusals."""

from typing import ClassVar

import msgspec
import numpy as np
import pytest

from lamina.model import events
from lamina.model.decision import Decision
from lamina.model.locality_explanation import LayerState, LocalityExplanation
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import points_of
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.runtime.explanation import Detail
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.view import NodeView
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.zoo import Animal


class Teller(Animal):
    """Gives every node the same, and has a story for every choice, unless the pod does not want to hear it."""

    name: ClassVar = "Teller"

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Have nothing to say to the deaf."""
        return SKIP if "deaf" in pod.labels else None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Have no opinion."""
        return np.full(len(nodes), 7, dtype=np.int64)

    def explain(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeView,
        best: tuple[int, int],
        feasible: Bools,
        *,
        full: bool = True,
    ) -> LocalityExplanation | None:
        """Tell what it was asked."""
        if "bored" in pod.labels:
            return None
        chosen, runner_up = best
        asked = (LayerState(f"row {runner_up}", int(np.count_nonzero(feasible)), "missing"),)
        return LocalityExplanation(layers=asked, seconds=float(chosen), download=0)

    def notes(self, pod: Pod) -> str:
        """Complain about odd names."""
        return f"{pod.name} is an odd name" if "odd" in pod.name else ""


class Mood(msgspec.Struct, frozen=True):
    """What Moody has to say."""

    chosen: int
    full: bool


class Moody(Animal):
    """Adds a part of its own, of a kind that only it knows."""

    name: ClassVar = "Moody"

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Have no opinion."""
        return np.zeros(len(nodes), dtype=np.int64)

    def explain(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeView,
        best: tuple[int, int],
        feasible: Bools,
        *,
        full: bool = True,
    ) -> msgspec.Struct | None:
        """Say what it was asked."""
        return None if "bored" in pod.labels else Mood(best[0], full)


class Grumbler(Animal):
    """Complains about every pod."""

    name: ClassVar = "Grumbler"

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Have no opinion."""
        return np.zeros(len(nodes), dtype=np.int64)

    def notes(self, pod: Pod) -> str:
        """Complain."""
        return "pods, always pods"


def a_desk(detail: Detail, *plugins: type, nodes: int = 2) -> LoopHarness:
    desk = LoopHarness(
        a_loop(["PrioritySort", "NodeResourcesFit", *plugins, "DefaultBinder"], settings=LoopSettings(detail=detail))
    )
    desk.tell(*(events.NodeSeen(a_node(f"n{number}", cpu=4 - number)) for number in range(nodes)))
    return desk


def test_telling_is_no_extension_point():
    """Whoever scores may tell; nobody has to name it in a configuration."""
    assert ("preScore", "score") == tuple(points_of(Teller))


def test_in_full_detail_a_plugin_is_asked_for_its_story():
    """n0 in row 0 has most room, n1 in row 1 is the runner-up, and two were feasible."""
    desk = a_desk("full", Teller)
    desk.see(a_pod("p", cpu=1))

    assert (
        LocalityExplanation(layers=(LayerState("row 1", 2, "missing"),), seconds=0.0, download=0)
        == desk.decisions["p"].locality
    )


def test_where_nothing_else_was_feasible_there_is_no_runner_up():
    desk = a_desk("full", Teller)
    desk.see(a_pod("p", cpu=4))

    assert (LayerState("row -1", 1, "missing"),) == desk.decisions["p"].locality.layers


@pytest.mark.parametrize(
    ("detail", "pod"),
    [
        pytest.param("brief", a_pod("p"), id="in brief"),
        pytest.param("none", a_pod("p"), id="nobody wants to know"),
        pytest.param("full", a_pod("p", labels={"deaf": "yes"}), id="it had nothing to say"),
        pytest.param("full", a_pod("p", labels={"bored": "yes"}), id="it has no story"),
        pytest.param("full", a_pod("p", cpu=9), id="no node was chosen"),
    ],
)
def test_otherwise_there_is_no_story(detail, pod):
    desk = a_desk(detail, Teller)
    desk.see(pod)

    assert desk.decisions["p"].locality is None


@pytest.mark.parametrize("detail", ["savings", "full"])
def test_each_plugin_adds_a_part_of_its_own(detail):
    desk = a_desk(detail, Teller, Moody)
    desk.see(a_pod("p", cpu=1))
    decision = desk.decisions["p"]

    assert {"Moody": Mood(0, detail == "full")} == decision.parts
    assert decision.locality is not None


@pytest.mark.parametrize(
    ("detail", "pod"),
    [
        pytest.param("brief", a_pod("p"), id="in brief"),
        pytest.param("full", a_pod("p", labels={"bored": "yes"}), id="it has none"),
        pytest.param("full", a_pod("p", cpu=9), id="no node was chosen"),
    ],
)
def test_a_decision_without_parts_says_nothing_of_them(detail, pod):
    desk = a_desk(detail, Moody)
    desk.see(pod)

    assert msgspec.UNSET is desk.decisions["p"].parts
    assert b"parts" not in msgspec.json.encode(desk.decisions["p"])


def test_a_part_is_written_with_its_decision_and_its_plugin_can_read_it_again():
    desk = a_desk("full", Moody)
    desk.see(a_pod("p", cpu=1))
    again = msgspec.json.decode(msgspec.json.encode(desk.decisions["p"]), type=Decision)

    assert {"Moody": {"chosen": 0, "full": True}} == again.parts
    assert Mood(0, full=True) == msgspec.convert(again.parts["Moody"], Mood)


@pytest.mark.parametrize(
    ("pod", "detail", "want"),
    [
        pytest.param(a_pod("p"), "brief", ("pods, always pods",), id="who has something to complain about"),
        pytest.param(a_pod("odd"), "brief", ("odd is an odd name", "pods, always pods"), id="in the order of plugins"),
        pytest.param(a_pod("odd"), "full", ("odd is an odd name", "pods, always pods"), id="in full"),
        pytest.param(a_pod("odd"), "none", (), id="nobody wants to know"),
        pytest.param(
            a_pod("odd", cpu=9), "brief", ("odd is an odd name", "pods, always pods"), id="of a pod that waits"
        ),
        pytest.param(
            a_pod("odd", labels={"deaf": "yes"}), "brief", ("odd is an odd name", "pods, always pods"), id="not scored"
        ),
    ],
)
def test_notes_are_told_with_every_decision(pod, detail, want):
    """They refuse nothing."""
    desk = a_desk(detail, Teller, Grumbler)
    desk.see(pod)

    assert want == desk.decisions[pod.name].notes
