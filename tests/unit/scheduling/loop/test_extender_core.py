"""Agents that are asked about pods somebody else places."""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
import pytest

from lamina.model.decision import Refusal
from lamina.model.events import ImagesLearned, LayersReported, NodeGone, NodeSeen, PodSeen, TimePassed, UsageReported
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import PreFilterResult, Reads, Verdicts
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.contract.status import SKIP, Status, failed, unresolvable
from lamina.scheduling.loop import extender_core as module
from lamina.scheduling.loop.extender_core import AgentError, ExtenderCore, NodeVictims
from lamina.scheduling.plugins.in_tree import AGENTS
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView, everything
from lamina.testing.builders import MB, a_node, a_pod, an_image, held

ROOM = "room"


class Room:
    """Refuses nodes with less free cpu than the pod asks for, and gives a point for every percent that is free."""

    name: ClassVar = "Room"
    reads: ClassVar = Reads(rows=frozenset({Facet.RESOURCES}))

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Take no arguments."""

    def sign(self, pod: Pod) -> Hashable:
        return pod.requests

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        wanted = dict(pod.requests).get("cpu", 0)
        return Verdicts(nodes.free("cpu") < wanted, lambda _: Refusal("Room", ("no room",)))

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        return nodes.free("cpu") * 100 // np.maximum(nodes.allocatable("cpu"), 1)


class Relative:
    """Gives all to the feasible node whose name comes last."""

    name: ClassVar = "Relative"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Take no arguments."""

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        names = [node.name if node else "" for node in map(nodes.node, range(len(nodes)))]
        return np.argsort(np.argsort(names)).astype(np.int64)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        return np.where(scores == scores[feasible].max(), 100, 0)


class Picky:
    """Answers beforehand, as it is told by the pod's name."""

    name: ClassVar = "Picky"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Take no arguments."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | PreFilterResult | None:
        said: dict[str, Status | PreFilterResult] = {
            "skips": SKIP,
            "refuses": unresolvable("never"),
            "narrows": PreFilterResult(frozenset({"n2", "n3"})),
            "fails": failed("broken"),
        }
        return said[pod.name]

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        assert pod.name == "narrows", "asked although everything was said"
        return Verdicts(nodes.allocatable("cpu") > 2000, lambda _: Refusal("Picky", ("too large",)))

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        return {"skips": SKIP, "fails": failed("broken")}.get(pod.name)

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        return np.full(len(nodes), 1000)


MINE = (
    SchedulingAgent(name="room", summary="", plugins=(Room,), predicates={ROOM: "Room"}, priorities={ROOM: "Room"}),
    SchedulingAgent(name="relative", summary="", plugins=(Relative,), priorities={"relative": "Relative"}),
    SchedulingAgent(
        name="picky", summary="", plugins=(Picky,), predicates={"picky": "Picky"}, priorities={"picky": "Picky"}
    ),
)


class Broken:
    """Answers in what is no whole number and no words."""

    name: ClassVar = "Broken"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Take no arguments."""

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        return Verdicts(np.ones(len(nodes), dtype=np.bool_), lambda _: Refusal("Broken", (1,)))  # type: ignore[arg-type]

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        return np.full(len(nodes), 37.5)  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ["filter", "prioritize"])
def test_an_answer_of_the_wrong_kind_breaks_the_plugin(kind: str) -> None:
    agent = SchedulingAgent(
        name="b", summary="", plugins=(Broken,), predicates={"b": "Broken"}, priorities={"b": "Broken"}
    )
    panel = ExtenderCore([agent])
    panel.take(NodeSeen(a_node("n1")))

    with pytest.raises(AgentError, match="raised TypeError"):
        getattr(panel, kind)("b", a_pod("p"), ["n1"])


@pytest.fixture
def panel() -> ExtenderCore:
    panel = ExtenderCore(MINE)
    panel.take(
        NodeSeen(a_node("n1", cpu=1)),
        NodeSeen(a_node("n2", cpu=2)),
        NodeSeen(a_node("n3", cpu=4)),
        PodSeen(a_pod("old", cpu=2, on="n3", started=True)),
    )
    return panel


def test_nodes_are_refused_with_the_plugins_reason(panel: ExtenderCore) -> None:
    refused = panel.filter(ROOM, a_pod("p", cpu="1500m"), ["n3", "n1", "n2"])

    assert [(1, Refusal("Room", ("no room",)))] == refused


def test_a_node_nobody_told_of_is_never_refused(panel: ExtenderCore) -> None:
    assert [] == panel.filter(ROOM, a_pod("p", cpu=100), ["stranger"])
    assert 1 == panel.unknown


def test_before_any_node_was_told_of_none_is_refused() -> None:
    assert [] == ExtenderCore(MINE).filter(ROOM, a_pod("p", cpu=100), ["stranger", "another"])


def test_nodes_are_given_levels_in_the_order_they_were_asked_about(panel: ExtenderCore) -> None:
    assert [5, 10, 10] == panel.prioritize(ROOM, a_pod("p"), ["n3", "n2", "n1"])


def test_a_node_nobody_told_of_counts_as_the_mean_of_the_others(panel: ExtenderCore) -> None:
    assert [5, 8, 10] == panel.prioritize(ROOM, a_pod("p"), ["n3", "stranger", "n2"])
    assert [0] == panel.prioritize(ROOM, a_pod("p"), ["stranger"])


def test_a_node_that_is_named_twice_is_answered_twice_alike(panel: ExtenderCore) -> None:
    assert [5, 10, 5] == panel.prioritize(ROOM, a_pod("p"), ["n3", "n1", "n3"])


def test_about_no_node_there_is_nothing_to_say(panel: ExtenderCore) -> None:
    assert ([], []) == (panel.prioritize(ROOM, a_pod("p"), []), panel.filter(ROOM, a_pod("p"), []))


def test_only_the_nodes_asked_about_count_where_nodes_are_compared(panel: ExtenderCore) -> None:
    assert [0, 10] == panel.prioritize("relative", a_pod("p"), ["n1", "n2"])
    assert [0, 0, 10] == panel.prioritize("relative", a_pod("p"), ["n1", "n2", "n3"])


def test_answers_follow_what_happens(panel: ExtenderCore) -> None:
    before = panel.prioritize(ROOM, a_pod("p"), ["n1", "n2"])
    panel.take(PodSeen(a_pod("new", cpu=2, on="n2")))
    after = panel.prioritize(ROOM, a_pod("p"), ["n1", "n2"])
    panel.take(NodeGone("n1"))

    assert ([10, 10], [10, 0], [0, 0]) == (before, after, panel.prioritize(ROOM, a_pod("p"), ["n1", "n2"]))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param("skips", [], id="nothing to say"),
        pytest.param(
            "refuses", [(0, ("never",), True), (1, ("never",), True), (3, ("never",), True)], id="no node at all"
        ),
        pytest.param(
            "narrows",
            [(0, ("node(s) didn't satisfy the agent",), True), (3, ("too large",), False)],
            id="all but some, and one of those",
        ),
    ],
)
def test_what_a_plugin_says_before_it_looks_at_nodes_counts(
    panel: ExtenderCore, pod: str, expected: list[tuple[int, tuple[str, ...], bool]]
) -> None:
    refused = panel.filter("picky", a_pod(pod), ["n1", "n2", "stranger", "n3"])

    assert expected == [(place, refusal.reasons, refusal.final) for place, refusal in refused]


def test_a_plugin_that_abstains_gives_all_the_same(panel: ExtenderCore) -> None:
    assert [0, 0] == panel.prioritize("picky", a_pod("skips"), ["n1", "n2"])


@pytest.mark.parametrize("pod", ["fails", "scores"])
def test_a_plugin_that_breaks_is_named(panel: ExtenderCore, pod: str) -> None:
    with pytest.raises(AgentError, match="priority 'picky' raised ValueError"):
        panel.prioritize("picky", a_pod(pod), ["n1"])


def test_a_filter_that_breaks_is_named(panel: ExtenderCore) -> None:
    with pytest.raises(AgentError, match="predicate 'picky' raised ValueError: broken"):
        panel.filter("picky", a_pod("fails"), ["n1"])


# -- making room -----------------------------------------------------------------------------------------------------------


def test_a_node_stays_a_candidate_if_the_agent_accepts_it_without_the_victims(panel: ExtenderCore) -> None:
    wanted = a_pod("p", cpu=3)
    candidates = [NodeVictims("n3", ("old",)), NodeVictims("n2", ("nobody",)), NodeVictims("stranger", ("x",))]

    assert ["n3", "stranger"] == panel.preempt(ROOM, wanted, candidates)


def test_asking_about_victims_changes_nothing(panel: ExtenderCore) -> None:
    before = panel.prioritize(ROOM, a_pod("p"), ["n1", "n2", "n3"])
    panel.preempt(ROOM, a_pod("p", cpu=3), [NodeVictims("n3", ("old", "old"))])
    placed = panel.cluster.cache.get(PodUid("old"))

    assert before == panel.prioritize(ROOM, a_pod("p"), ["n1", "n2", "n3"])
    assert placed is not None
    assert "n3" == placed.node


def test_a_victim_that_is_not_on_the_node_frees_nothing_there(panel: ExtenderCore) -> None:
    assert [] == panel.preempt(ROOM, a_pod("p", cpu=3), [NodeVictims("n2", ("old",))])


def test_an_agent_that_only_scores_minds_no_candidate(panel: ExtenderCore) -> None:
    assert ["n1", "n2"] == panel.preempt("relative", a_pod("p"), [NodeVictims("n1", ("a",)), NodeVictims("n2", ("b",))])


class Crowded(Room):
    """Looks at one node after the other, for all it says: anything it reads makes its answer void."""

    name: ClassVar = "Crowded"
    reads: ClassVar = Reads(whole=frozenset({Facet.RESOURCES}))


def test_of_very_many_candidates_those_that_would_have_to_be_tried_one_by_one_stay_untried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_TRIED", 2)
    panel = ExtenderCore(
        [SchedulingAgent(name="crowded", summary="", plugins=(Crowded,), predicates={"crowded": "Crowded"})]
    )
    panel.take(*[NodeSeen(a_node(name, cpu=1)) for name in ("n1", "n2", "n3")])
    panel.take(PodSeen(a_pod("old", cpu=1, on="n1")))
    candidates = [NodeVictims("n1", ("old",)), NodeVictims("n2", ()), NodeVictims("n3", ())]

    assert ["n1", "n2", "n3"] == panel.preempt("crowded", a_pod("p", cpu=1), candidates)
    assert ["n1", "n3"] == panel.preempt(
        "crowded", a_pod("p", cpu=1), [candidates[0], NodeVictims("n1", ()), candidates[2]]
    )


def test_use_that_was_measured_is_as_before_after_asking_about_victims() -> None:
    panel = ExtenderCore(MINE)
    panel.take(
        TimePassed(200.0),
        NodeSeen(a_node("n1", cpu=4)),
        PodSeen(a_pod("runs", cpu=1, on="n1", started=True)),
        UsageReported((NodeUsage("n1", ResourceUsage(3000.0), None, 0.0, 100.0),)),
        PodSeen(a_pod("waits", cpu=1, on="n1")),
    )
    usage = panel.cluster.usage
    before = usage._mean[0, 0]
    panel.preempt(ROOM, a_pod("p", cpu=3), [NodeVictims("n1", ("runs", "waits"))])

    assert (4000.0, 4000.0) == (before, usage._mean[0, 0])


def test_a_pod_that_was_there_before_the_first_measurement_counts_as_it_did_after_it_was_a_victim() -> None:
    panel = ExtenderCore(MINE)
    panel.take(
        TimePassed(200.0),
        NodeSeen(a_node("n1", cpu=4)),
        PodSeen(a_pod("early", cpu=1, on="n1")),
        UsageReported((NodeUsage("n1", ResourceUsage(3000.0), None, 0.0, 100.0),)),
    )
    usage = panel.cluster.usage
    panel.preempt(ROOM, a_pod("p", cpu=3), [NodeVictims("n1", ("early",))])

    # Measured, and the pod that does not run yet.
    assert 3000.0 + 1000.0 == usage.of(everything(panel.cluster.columns), "cpu").mean[0]


class Short:
    """Gives points to one node, however many there are."""

    name: ClassVar = "Short"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Take no arguments."""

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        return np.full(1 if pod.name == "few" else 9, 50)


@pytest.mark.parametrize("pod", ["few", "many"])
def test_points_for_other_nodes_than_there_are_break_the_plugin(pod: str) -> None:
    panel = ExtenderCore([SchedulingAgent(name="short", summary="", plugins=(Short,), priorities={"short": "Short"})])
    panel.take(NodeSeen(a_node("n1")), NodeSeen(a_node("n2")))

    with pytest.raises(AgentError, match="priority 'short' raised ValueError: scores of shape"):
        panel.prioritize("short", a_pod(pod), ["n1"])


# -- agents in tree --------------------------------------------------------------------------------------------------------


def test_all_agents_in_tree_answer_for_a_cluster_of_which_little_is_known() -> None:
    panel = ExtenderCore(AGENTS)
    panel.take(NodeSeen(a_node("n1")), NodeSeen(a_node("n2")))
    names = ["n1", "n2", "stranger"]

    assert dict.fromkeys(panel.priorities, 3) == {
        verb: len(panel.prioritize(verb, a_pod("p", cpu=1), names)) for verb in panel.priorities
    }
    assert {verb: [] for verb in panel.predicates} == {
        verb: panel.filter(verb, a_pod("p", cpu=1), names) for verb in panel.predicates
    }


def test_a_node_that_is_named_twice_does_not_count_twice_for_the_others() -> None:
    panel = ExtenderCore(AGENTS)
    image = an_image("app:1", {"a": 4_000 * MB})
    panel.take(ImagesLearned((image,)), NodeSeen(a_node("silent")))
    for name, images in (("has", [image]), ("lacks", [])):
        panel.take(NodeSeen(a_node(name)), LayersReported(held(name, *images)))
    has, lacks, silent = panel.prioritize("layers", a_pod("p"), ["has", "lacks", "silent"])
    names = ["lacks", "silent", *["has"] * 20]

    assert [lacks, silent, *[has] * 20] == panel.prioritize("layers", a_pod("p"), names)


def test_a_node_with_the_layers_is_a_level_above_one_without_at_any_distance() -> None:
    panel = ExtenderCore(AGENTS)
    near, far = (
        an_image("registry.example/near:1", {"a": 30 * MB}),
        an_image("registry.example/far:1", {"b": 4_000 * MB}),
    )
    half = an_image("registry.example/half:1", {"c": 2_000 * MB, "d": 2_000 * MB})
    other = an_image("registry.example/other:1", {"c": 2_000 * MB})
    panel.take(ImagesLearned((near, far, half, other)))
    for name, images in (("all", (near, far, half)), ("half", (other,)), ("none", ())):
        panel.take(NodeSeen(a_node(name)), LayersReported(held(name, *images)))
    levels = {
        image.names[0]: panel.prioritize("layers", a_pod("p", image=image.names[0]), ["all", "half", "none"])
        for image in (near, far, half)
    }

    assert {
        "registry.example/near:1": [10, 9, 9],
        "registry.example/far:1": [10, 2, 2],
        "registry.example/half:1": [10, 3, 2],
    } == levels
