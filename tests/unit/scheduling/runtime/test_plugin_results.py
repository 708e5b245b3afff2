"""
Answers: what a plugin said of all nodes is used for every shape that looks the same to it, row by row.

That what is used equals what would be answered is a law of its own, in tests/property.
"""

import math
from typing import Any, ClassVar

import numpy as np
import pytest

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.runtime import plugin_results as room
from lamina.scheduling.runtime.evaluation_cache import EvaluationCache
from lamina.scheduling.runtime.plugin_results import FEW, PluginResultCache
from lamina.scheduling.runtime.profile import FilterPart, ScorePart
from lamina.scheduling.state.facets import Facet
from lamina.testing import a_loop, a_node, a_pod, a_profile
from tests.unit.scheduling.bench import Bench

asked: list[tuple[str, str]] = []


class Tidy:
    """Looks at taints and at the pod's first image, and counts how often it is asked."""

    name: ClassVar = "Tidy"
    reads: ClassVar = Reads(rows=frozenset({Facet.TAINTS}))

    def __init__(self, context, args): ...

    def sign(self, pod):
        return pod.images[0]

    def filter(self, state, pod, nodes):
        asked.append(("filter", pod.name))
        return Verdicts(nodes.taint_set > 0, lambda code: Refusal(self.name, ("tainted",)))

    def score(self, state, pod, nodes):
        asked.append(("score", pod.name))
        return np.full(len(nodes), 7, dtype=np.int64)


NOTED: StateKey[int] = StateKey("noting/noted")


class Noting(Tidy):
    """Writes down while it scores what it normalises by."""

    name: ClassVar = "Noting"

    def score(self, state, pod, nodes):
        state[NOTED] = 30
        return super().score(state, pod, nodes)

    def normalize(self, state, pod, scores, feasible):
        return scores + state[NOTED]


def a_small_loop(plugin):
    asked.clear()
    loop = a_loop(["PrioritySort", "NodeResourcesFit", plugin, "DefaultBinder"])
    loop.feed(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")))
    return loop


def test_a_plugin_that_notes_something_while_it_scores_is_asked_for_every_shape():
    """What it notes is with the shape it was asked for, and its normaliser looks there."""
    loop = a_small_loop(Noting)
    commands = loop.feed(*(events.PodSeen(a_pod(f"p{n}", cpu=f"{n + 1}m")) for n in range(3)))

    assert [("score", f"p{n}") for n in range(3)] == [one for one in asked if one[0] == "score"]
    assert ["p0", "p1", "p2"] == [one.pod.name for one in commands if isinstance(one, Bind)]


def test_a_plugin_is_not_asked_again_for_a_shape_that_is_new_to_others_only():
    """Another request, the same image: for this plugin nothing is new."""
    loop = a_small_loop(Tidy)
    loop.feed(*(events.PodSeen(a_pod(f"p{n}", cpu=f"{n + 1}m")) for n in range(5)))

    assert [("filter", "p0"), ("score", "p0")] == asked


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(events.NodeSeen(a_node("n2", taints=[Taint("a", "", NO_SCHEDULE)])), id="a taint"),
        pytest.param(events.NodeSeen(a_node("n3")), id="a new node"),
        pytest.param(events.NodeGone("n2"), id="a node that left"),
    ],
)
def test_it_is_asked_again_when_something_it_reads_has_changed(change):
    """Its answers hold as long as what they were made from."""
    loop = a_small_loop(Tidy)
    loop.feed(events.PodSeen(a_pod("before", cpu="1m")))
    loop.feed(change)
    loop.feed(events.PodSeen(a_pod("after", cpu="2m")))

    assert [("filter", "after"), ("score", "after")] == asked[2:]


def test_it_is_asked_again_for_another_signature():
    """Another image is news to it."""
    loop = a_small_loop(Tidy)
    loop.feed(events.PodSeen(a_pod("one", image="a")), events.PodSeen(a_pod("other", image="b")))

    assert [("filter", "one"), ("score", "one"), ("filter", "other"), ("score", "other")] == asked


def test_shapes_that_share_an_answer_do_not_share_its_later_changes():
    """Each keeps its own codes up to date."""
    loop = a_small_loop(Tidy)
    small, large = a_pod("s", cpu="1m"), a_pod("l", cpu="2m")
    loop.feed(events.PodSeen(small), events.PodSeen(large))
    loop.feed(events.NodeSeen(a_node("n1", taints=[Taint("a", "", NO_SCHEDULE)])))
    commands = loop.feed(events.PodSeen(a_pod("s2", cpu="1m")))
    loop.feed(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2", taints=[Taint("a", "", NO_SCHEDULE)])))
    others = loop.feed(events.PodSeen(a_pod("l2", cpu="2m")))

    assert ["n2", "n1"] == [command.node for command in (*commands, *others)]


# ---------------------------------------------------------------------------------------------------------- row by row

HEAP = 12


class Roomy:
    """Refuses nodes with less than one cpu free and ranks by cpus free; notes how many nodes it is asked about."""

    name: ClassVar = "Roomy"
    reads: ClassVar = Reads(rows=frozenset({Facet.RESOURCES}))

    def __init__(self, *_):
        self.asked = []
        self.broken = False

    def sign(self, pod):
        return pod.labels.get("sign")

    def filter(self, state, pod, nodes):
        self.asked.append(("filter", len(nodes)))
        short = nodes.free("cpu") < 1000
        return Verdicts(short, lambda code: Refusal(self.name, ("cramped",))) if short.any() else None

    def score(self, state, pod, nodes):
        self.asked.append(("score", len(nodes)))
        return nodes.free("cpu") // 1000


class RoomyByNode(Roomy):
    """The same, and it can be asked about one node."""

    def filter_node(self, state, pod, node):
        self.asked.append(("filter", "a node"))
        return int(node.free("cpu") < 1000)

    def score_node(self, state, pod, node):
        self.asked.append(("score", "a node"))
        return node.free("cpu") // (0 if self.broken and node.row == 2 else 1000)


class Asking:
    """Asks one plugin about nodes with 8 cpus, through what is kept."""

    def __init__(self, plugin, nodes=4 * HEAP):
        self.bench = Bench(*(a_node(f"n{number}", cpu=8) for number in range(nodes)))
        self.plugin = plugin
        self.answers = PluginResultCache(self.bench.columns)

    def place(self, *rows, cpu=1):
        """Put a pod on each of some nodes."""
        for row in rows:
            self.bench.place(f"n{row}", a_pod("placed", cpu=cpu))

    def clear(self, *rows, cpu):
        """Take such a pod away again."""
        for row in rows:
            self.bench.columns.release(row, a_pod("placed", cpu=cpu))

    def begin(self, sign="a"):
        """Ask for the first and the second time, after which answers are kept."""
        self.ask(sign)
        return self.ask(sign)

    def ask(self, sign="a"):
        """Return what is said now: which nodes are refused, and what each gets; and who was asked about what."""
        self.plugin.asked.clear()
        pod, state = a_pod(labels={"sign": sign}), CycleState()
        verdicts = self.answers.filter(FilterPart(self.plugin), state, pod, self.bench.view)
        scores = self.answers.score(ScorePart(self.plugin, 1), state, pod, self.bench.view)
        refused = [] if verdicts is None else np.flatnonzero(verdicts.codes).tolist()
        return refused, scores.tolist(), self.plugin.asked.copy()


@pytest.mark.parametrize(
    ("plugin", "rows", "want"),
    [
        pytest.param(RoomyByNode, [], [], id="none"),
        pytest.param(RoomyByNode, [3], [("filter", "a node"), ("score", "a node")], id="one, by node"),
        pytest.param(RoomyByNode, [3, 3, 3], [("filter", "a node"), ("score", "a node")], id="one, again and again"),
        pytest.param(Roomy, [3], [("filter", 1), ("score", 1)], id="one, by a plugin that knows arrays only"),
        pytest.param(
            RoomyByNode, range(FEW), [("filter", "a node")] * FEW + [("score", "a node")] * FEW, id="a few, by node"
        ),
        pytest.param(RoomyByNode, range(FEW + 1), [("filter", FEW + 1), ("score", FEW + 1)], id="more, as arrays"),
        pytest.param(RoomyByNode, range(4 * HEAP), [("filter", 4 * HEAP), ("score", 4 * HEAP)], id="all of them"),
    ],
)
def test_a_plugin_is_asked_about_the_rows_that_changed(plugin, rows, want):
    """However often, and only about as many as is less work than all of them."""
    asking = Asking(plugin())
    asking.begin()
    asking.place(*rows)
    _, scores, asked = asking.ask()

    assert want == asked
    assert [8 - list(rows).count(row) for row in range(4 * HEAP)] == scores


def test_what_is_asked_about_once_is_not_kept():
    """Requests that never come again would only take memory. That all nodes passed takes none."""
    asking = Asking(RoomyByNode())
    every = 4 * HEAP

    assert [("filter", every), ("score", every)] == asking.ask()[2]
    assert [("score", every)] == asking.ask()[2]
    assert [] == asking.ask()[2]


def test_only_so_many_are_remembered_to_have_been_asked_about_once(monkeypatch):
    """Memory is bounded by that as well."""
    monkeypatch.setattr(room, "SEEN", 1)
    asking = Asking(Roomy())
    for sign in "aba":
        asking.ask(sign)

    assert [("score", 4 * HEAP)] == asking.ask("b")[2]


@pytest.mark.parametrize("plugin", [Roomy, RoomyByNode])
def test_nodes_are_refused_and_taken_back_as_they_fill_and_empty(plugin):
    """The first one, many more, one less, and none again."""
    asking = Asking(plugin())
    refused = [asking.begin()[0]]
    asking.place(2, cpu=8)
    refused.append(asking.ask()[0])
    asking.place(5, *range(20, 32), cpu=8)
    refused.append(asking.ask()[0])
    asking.clear(2, cpu=8)
    refused.append(asking.ask()[0])
    asking.clear(5, *range(20, 32), cpu=8)
    refused.append(asking.ask()[0])

    many = [5, *range(20, 32)]
    assert [[], [2], [2, *many], many, []] == refused


def test_a_filter_that_refuses_for_the_first_time_is_asked_for_its_words():
    """A code by itself says nothing."""
    asking = Asking(RoomyByNode())
    asking.begin()
    asking.place(2, cpu=8)
    verdicts = asking.answers.filter(
        FilterPart(asking.plugin), CycleState(), a_pod(labels={"sign": "a"}), asking.bench.view
    )

    assert Refusal("Roomy", ("cramped",)) == verdicts.tell(int(verdicts.codes[2]))


def test_what_was_handed_out_does_not_change():
    """A shape that has the codes of before still has them when another one asks."""
    asking = Asking(RoomyByNode())
    asking.place(1, cpu=8)
    asking.begin()
    part, pod = FilterPart(asking.plugin), a_pod(labels={"sign": "a"})
    before = asking.answers.filter(part, CycleState(), pod, asking.bench.view).codes
    asking.place(2, cpu=8)
    after = asking.answers.filter(part, CycleState(), pod, asking.bench.view).codes

    assert [1] == np.flatnonzero(before).tolist()
    assert [1, 2] == np.flatnonzero(after).tolist()


def test_rows_without_a_node_are_not_asked_about():
    """There is nothing to ask about, and a node that takes the row over is asked about."""
    asking = Asking(RoomyByNode())
    asking.begin()
    asking.bench.remove("n3")
    _, _, gone = asking.ask()
    asking.bench.put(a_node("other", cpu=2))
    _, scores, came = asking.ask()

    assert ([], [("filter", "a node"), ("score", "a node")]) == (gone, came)
    assert 2 == scores[3]


def test_a_new_row_makes_every_answer_void():
    """Arrays are longer then."""
    asking = Asking(RoomyByNode(), nodes=3)
    asking.begin()
    asking.bench.put(a_node("n3", cpu=8))

    assert [("filter", 4), ("score", 4)] == asking.ask()[2]


def test_a_plugin_that_raises_half_way_is_asked_anew():
    """What it left half done is not found again."""
    asking = Asking(RoomyByNode())
    asking.begin()
    asking.place(1, 2)
    asking.plugin.broken = True
    with pytest.raises(ZeroDivisionError):
        asking.begin()
    asking.plugin.broken = False

    assert [7, 7] == asking.ask()[1][1:3]


class Small(Roomy):
    """Answers in fewer bits than a row of it could need later."""

    def filter(self, state, pod, nodes):
        self.asked.append(("filter", len(nodes)))
        return Verdicts((nodes.free("cpu") < 1000).astype(np.int8), lambda code: Refusal(self.name, ("cramped",)))

    def score(self, state, pod, nodes):
        return super().score(state, pod, nodes).astype(np.int8)


def test_answers_that_are_not_wide_enough_are_not_kept():
    """Slower, and just as right."""
    asking = Asking(Small())
    asking.begin()

    assert [[("filter", 4 * HEAP), ("score", 4 * HEAP)]] * 2 == [asking.ask()[2], asking.ask()[2]]


class Stretching(Roomy):
    """Goes by what it noted when it scored."""

    def normalize(self, state, pod, scores, feasible):
        return scores


def test_whoever_normalises_what_placements_change_scores_for_every_shape():
    """It may have noted something for the shape it scored."""
    asking = Asking(Stretching())
    asking.begin()

    assert [("score", 4 * HEAP)] == asking.ask()[2]


def test_the_answers_not_asked_for_longest_are_let_go(monkeypatch):
    """What is kept is bounded by memory."""
    monkeypatch.setattr(room, "KEPT_BYTES", 0)
    monkeypatch.setattr(room, "KEPT_AT_LEAST", 2)
    asking = Asking(Roomy())
    for sign in "abac":
        asking.begin(sign)

    assert [[], 2] == [asking.ask("a")[2], len(asking.ask("b")[2])]


@pytest.mark.parametrize(
    ("ages", "want"),
    [
        pytest.param((12, 0), [], id="known already"),
        pytest.param((8, 4), [("filter", "a node")] * 4 + [("score", "a node")] * 4, id="nearly known"),
        pytest.param((0, 12), [("filter", 12), ("score", 12)], id="as old as the evaluation"),
    ],
)
def test_a_shape_that_comes_again_uses_what_was_answered_about_another(ages, want):
    """Where that is newer; *ages*: how many rows changed before another shape was asked about, and afterwards."""
    bench = Bench(*(a_node(f"n{number}", cpu=8) for number in range(4 * HEAP)))
    profile = a_profile(bench.context, ["PrioritySort", RoomyByNode, "NodeName", "DefaultBinder"])
    plugin: Any = profile.plugins["Roomy"]
    kept = EvaluationCache(profile, bench.columns)
    kept.of(0, a_pod())
    kept.of(1, a_pod())
    if ages[0]:
        for row in range(ages[0]):
            bench.place(f"n{row}", a_pod("placed", cpu=8 if row == 0 else 1))
        kept.of(2, a_pod())
    for row in range(ages[0], sum(ages)):
        bench.place(f"n{row}", a_pod("placed", cpu=8 if row == 0 else 1))
    plugin.asked.clear()
    evaluation = kept.of(1, a_pod())

    assert want == plugin.asked
    assert [-math.inf, *[7] * 11, *[8] * 36] == evaluation.totals.tolist()
