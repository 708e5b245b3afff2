"""Node facts that plugins bring along: kept in step, noted under a facet of their own, shared by name."""

from collections import Counter
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from lamina.layers.inventory import Inventory
from lamina.model.errors import WiringError
from lamina.model.events import NodeGone, NodeSeen, PodGone, PodSeen, TimePassed
from lamina.scheduling.contract.commands import Bind, ReportPluginError
from lamina.scheduling.contract.points import Reads
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.node_facts import FactHandle
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeRow, everything
from lamina.testing import a_loop, a_node, a_pod
from lamina.testing.loop_harness import a_profile

LOUD = {"loud": "yes"}


class Noise:
    """How many loud pods are on each row, and on which rows nodes are deaf."""

    def __init__(self) -> None:
        self.pods: Counter[int] = Counter()
        self.deaf: set[int] = set()
        self.calls: list[tuple[Any, ...]] = []

    @property
    def name(self) -> str:
        return "noise"

    def counts(self, pod):
        return pod.labels.get("loud")

    def put(self, row, node):
        self.calls.append(("put", row, node and node.name))
        deaf = node is not None and "deaf" in node.labels
        changed = deaf != (row in self.deaf)
        (self.deaf.add if deaf else self.deaf.discard)(row)
        return changed

    def add(self, row, pod):
        self.calls.append(("add", row, pod.name))
        self.pods[row] += 1
        return True

    def remove(self, row, pod):
        self.calls.append(("remove", row, pod.name))
        self.pods[row] -= 1
        if not self.pods[row]:
            del self.pods[row]
        return True

    def as_if(self, gone, there):
        supposed = Noise()
        supposed.pods = self.pods + Counter(row for row, _ in there)
        supposed.pods -= Counter(row for row, _ in gone)
        return supposed


class Quiet:
    """Prefers nodes with few loud pods."""

    name: ClassVar = "Quiet"

    def __init__(self, context, args) -> None:
        self.noise: FactHandle[Noise] = context.register(Noise())
        self.reads = Reads(rows=frozenset({self.noise.facet}))
        self.asked: list[int] = []

    def sign(self, pod):
        return None

    def score(self, state, pod, nodes):
        noise = nodes.fact(self.noise)
        return np.array([100 - 10 * noise.pods[nodes.row(one)] for one in range(len(nodes))])

    def score_node(self, state, pod, node: NodeRow):
        self.asked.append(node.row)
        return 100 - 10 * node.fact(self.noise).pods[node.row]


class Vague:
    """Goes by anything: it does not say what it reads."""

    name: ClassVar = "Vague"

    def __init__(self, context, args) -> None:
        self.asked = 0

    def sign(self, pod):
        return None

    def score(self, state, pod, nodes):
        self.asked += 1
        return np.zeros(len(nodes), dtype=np.int64)


@pytest.fixture
def columns():
    return NodeColumns()


@pytest.fixture
def context(columns):
    return PluginContext(columns, Inventory())


def noise_of(columns: NodeColumns) -> Noise:
    return columns.register(Noise()).fact


# ---------------------------------------------------------------------------------------------------------- registering


def test_a_fact_gets_a_facet_beyond_the_built_in_ones(columns):
    """Those keep their numbers."""
    handle = columns.register(Noise())

    assert handle.facet > max(Facet)
    assert [0, 10, 11] == [Facet.RESOURCES, Facet.USAGE, Facet.ANNOTATIONS]
    assert len(columns.logs) == handle.facet + 1


def test_plugins_of_two_profiles_share_a_fact(context):
    """By its name: a pod is counted once."""
    first, second = (a_profile(context, ["PrioritySort", Quiet, "DefaultBinder"]) for _ in range(2))

    one, other = (cast("Quiet", profile.plugins["Quiet"]).noise for profile in (first, second))
    assert one.fact is other.fact
    assert one.facet == other.facet


def test_two_facts_of_one_name_are_told(columns):
    """They would count for each other."""

    class Other(Noise):
        pass

    columns.register(Noise())
    with pytest.raises(WiringError, match="two different node facts are called 'noise'"):
        columns.register(Other())


def test_a_fact_that_comes_after_the_nodes_is_told(columns):
    """What is on them was not counted for it."""
    columns.put(a_node("a"))
    with pytest.raises(WiringError, match="is registered too late"):
        columns.register(Noise())


# ----------------------------------------------------------------------------------------------------------------- keeping


def test_a_fact_is_kept_in_step_with_nodes_and_the_pods_it_counts():
    """Pods that it does not count are not handed to it."""
    loop = a_loop(["PrioritySort", Quiet, "DefaultBinder"])
    fact = noise_of(loop.cluster.columns)
    loop.feed(TimePassed(1.0), NodeSeen(a_node("a")), NodeSeen(a_node("b", labels={"deaf": ""})))
    loop.feed(
        PodSeen(a_pod("p", on="a", labels=LOUD)), PodSeen(a_pod("q", on="a")), PodSeen(a_pod("r", on="b", labels=LOUD))
    )
    assert (Counter({0: 1, 1: 1}), {1}) == (fact.pods, fact.deaf)

    loop.feed(PodSeen(a_pod("q", on="a", labels=LOUD)))  # the pod itself changed
    assert Counter({0: 2, 1: 1}) == fact.pods
    loop.feed(PodGone(a_pod("p").uid), NodeGone("b"))

    assert (Counter({0: 1}), set()) == (fact.pods, fact.deaf)
    assert {"add", "remove", "put"} == {call[0] for call in fact.calls}
    assert ("add", 0, "q") == [call for call in fact.calls if call[0] == "add"][-1]
    assert 3 == sum(call[0] == "add" for call in fact.calls)


def test_rows_are_noted_under_the_facet_when_the_fact_changed(columns):
    """And only then."""
    handle = columns.register(Noise())
    log = columns.logs[handle.facet]
    columns.put(a_node("a"))
    columns.put(a_node("b"))
    before = log.position
    columns.put(a_node("a", cpu=9))
    columns.use(0, a_pod("p"))
    assert before == log.position

    columns.use(1, a_pod("q", labels=LOUD))
    columns.put(a_node("a", labels={"deaf": ""}))
    columns.release(1, a_pod("q", labels=LOUD))

    assert [1, 0, 1] == log.since(before)


def test_after_a_change_of_the_fact_its_plugin_is_asked_about_that_row(context, columns):
    """An evaluation that was kept is brought up to date."""
    profile = a_profile(context, ["PrioritySort", Quiet, "DefaultBinder"])
    plugin: Any = profile.plugins["Quiet"]
    for name in "abc":
        columns.put(a_node(name))
    kept = ShapeEvaluation(profile, columns, a_pod())

    columns.use(2, a_pod("loud", labels=LOUD))

    assert kept.refresh(a_pod())
    assert [100, 100, 90] == kept.scores[0].tolist()
    assert [2] == plugin.asked
    assert everything(columns).fact(plugin.noise) is plugin.noise.fact


@pytest.mark.parametrize("order", [[Vague, Quiet], [Quiet, Vague]], ids=["before", "after"])
def test_a_plugin_that_does_not_say_what_it_reads_is_asked_after_any_fact_changed(context, columns, order):
    """Also after one that was registered when the profile was put together."""
    profile = a_profile(context, ["PrioritySort", Vague, "DefaultBinder"])
    a_profile(context, ["PrioritySort", *order, "DefaultBinder"])
    handle = columns.register(Noise())
    columns.put(a_node("a"))
    kept = ShapeEvaluation(profile, columns, a_pod())

    columns.touch(handle.facet, 0)

    assert not kept.refresh(a_pod())


class Loud(Noise):
    """Raises for the pod called boom, and for the node of that name."""

    def put(self, row, node):
        if node is not None and node.name == "boom":
            raise RuntimeError("put")
        return super().put(row, node)

    def add(self, row, pod):
        if pod.name == "boom":
            raise RuntimeError("add")
        return super().add(row, pod)


class Hurt(Quiet):
    """Brings a fact that raises."""

    name: ClassVar = "Hurt"

    def __init__(self, context, args) -> None:
        self.noise = context.register(Loud())
        self.reads = Reads(rows=frozenset({self.noise.facet}))
        self.asked = []


def test_a_fact_that_raises_is_reported_and_leaves_nothing_half_counted():
    """A pod of another scheduler counts on its node whatever a plugin's fact does, and other pods are placed."""
    loop = a_loop(["PrioritySort", "NodeResourcesFit", Hurt, "DefaultBinder"])
    commands = loop.feed(
        NodeSeen(a_node("boom", cpu=1)),
        NodeSeen(a_node("a", cpu=4)),
        PodSeen(a_pod("boom", cpu=3, on="a", labels={"loud": "yes"}, scheduler="another")),
        PodSeen(a_pod("p", cpu=2)),
        PodSeen(a_pod("q", cpu=1)),
    )

    assert [("noise", "put"), ("noise", "add")] == [
        (one.plugin, one.point) for one in commands if isinstance(one, ReportPluginError)
    ]
    # Of four cpu on `a`, three are taken by the other scheduler's pod; `p` fits nowhere and `q` once.
    assert ["q"] == [one.pod.name for one in commands if isinstance(one, Bind)]
    assert ["p"] == [queued.pod.name for queued in loop.queue]
