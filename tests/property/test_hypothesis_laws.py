"""A what-if view answers what a view would answer after the pods were really taken away and really placed."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.layers.inventory import Inventory
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.pod import Pod, PodUid
from lamina.model.resources import CPU, MEMORY
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import PreFilterResult
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.plugins.upstream.inter_pod_affinity.affinity_domains import preference
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.hypothesis import as_if
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.pod_cache import PodCache
from lamina.scheduling.state.pod_counts import owner_key
from lamina.scheduling.state.term_counts import pod_set
from lamina.scheduling.state.view import NodeRow, NodeView, everything, only
from tests.property.clusters import GPU, NEAR, SELECTORS, Cluster, clusters, pods, running_pods

pytestmark = pytest.mark.slow

REGISTRY = registry(entry_points=False)
FILTERS = [name for name in REGISTRY if hasattr(REGISTRY[name], "filter")]
RESOURCES = [CPU, MEMORY, "ephemeral-storage", "pods", GPU, "hugepages-2Mi", "example.com/unheard-of"]
Rows = list[int] | None
numbers = st.integers(0, 2**30)


class World:
    """A cluster with every filter, fed as the loop does it."""

    def __init__(self, cluster: Cluster) -> None:
        self.columns = NodeColumns()
        self.context = PluginContext(self.columns, Inventory())
        self.plugins: dict[str, Any] = {name: REGISTRY.make(name, self.context) for name in FILTERS}
        self.cache = PodCache(self.columns, self.context.usage)
        self.context.usage.pass_time(90.0)
        for node in cluster.nodes.values():
            self.cache.put_node(node)
        for name, placed in cluster.placed.items():
            for number, pod in enumerate(placed):
                started = number % 3 > 0
                own = {"uid": PodUid(f"{name}-{number}"), "started": started, "started_at": 10.0 * number}
                self.cache.confirm(msgspec.structs.replace(pod, **own), name)
        for name in cluster.gone:
            self.cache.remove_node(name)
        measured = [name for number, name in enumerate(self.columns.rows) if number % 2 == 0]
        self.context.usage.report(
            tuple(
                NodeUsage(name, ResourceUsage(900.0, 50.0, 1000.0), ResourceUsage(3e9, 1e8), since=5.0, until=65.0)
                for name in measured
            )
        )
        self.context.usage.pass_time(100.0)

    @property
    def placed(self) -> list[tuple[int, Pod]]:
        rows = self.columns.rows
        return [(rows[one.node], one.pod) for one in self.cache if one.node in rows]

    def move(self, gone: list[tuple[int, Pod]], there: list[tuple[int, Pod]]) -> None:
        for _, pod in gone:
            self.cache.remove(pod.uid)
        for row, pod in there:
            node = self.columns.nodes[row]
            assert node is not None
            self.cache.assume(pod, node.name)


def accessors(world: World, nodes: NodeView, asked: list[Pod]) -> dict[str, Any]:
    """Ask a view everything; what it says of rows without a node is left out."""
    usage, load = world.context.usage, world.context.load
    answers: dict[str, Any] = {"alive": nodes.alive, "unschedulable": nodes.unschedulable, "taints": nodes.taint_set}
    for name in RESOURCES:
        answers |= {f"{what} {name}": getattr(nodes, what)(name) for what in ("allocatable", "free", "requested")}
    for name in (CPU, MEMORY):
        answers |= {f"{what} {name}": getattr(nodes, what)(name) for what in ("ranked", "limited")}
        for amount in (0, 1, 777):
            answers[f"headroom {name} {amount}"] = nodes.headroom_with(name, amount)
        measured = usage.of(nodes, name)
        answers |= {f"{what} {name}": getattr(measured, what) for what in ("mean", "deviation", "forecast", "trust")}
    coming = usage.coming(nodes)
    answers |= {f"coming {what}": getattr(coming, what) for what in ("limits", "unlimited", "silent", "requests")}
    answers["load"] = load.of(nodes)
    for number, pod in enumerate(asked):
        answers[f"load {number}"] = load.of(nodes, pod)
        key, closed = owner_key(pod), nodes.closed(pod)
        for which, terms in enumerate(one for one in NEAR if one):
            answers[f"matched {number} {which}"] = nodes.matched(pod_set(terms, pod))
        if isinstance(nodes.rows, slice) and len(nodes) == nodes.height:
            answers[f"preference {number}"] = preference(pod, nodes, nodes.scoring_terms().about(pod), 1)
        answers[f"closed {number}"] = np.zeros(len(nodes), dtype=np.bool_) if closed is None else closed
        if key is not None:
            answers[f"owned {number}"] = nodes.owned(key)
            answers[f"owned in all {number}"] = np.full(len(nodes), nodes.owned_in_all(key))
        for which, selector in enumerate(SELECTORS):
            if selector is not None:
                answers[f"matching {number} {which}"] = nodes.matching(pod.namespace, selector)
    # As text, because what is no number equals itself there; and every digit counts.
    return {name: repr(answer[nodes.alive].tolist()) for name, answer in answers.items()}


def one_by_one(world: World, look: Callable[[int], NodeRow]) -> list[Any]:
    """Ask about each node by itself."""
    told: list[Any] = []
    for row in world.columns.rows.values():
        node = look(row)
        told.append([node.free_all(), *(node.capacity_and_free(name) for name in RESOURCES)])
        told.append([(node.free(name), node.allocatable(name)) for name in RESOURCES])
        told.append([(node.ranked(name), node.capacity_and_ranked(name)) for name in (CPU, MEMORY)])
    return told


def verdicts(world: World, view: Callable[[Rows], NodeView], row: Callable[[int], NodeRow], pod: Pod) -> dict[str, Any]:
    """Ask every filter in all its forms, and return its words."""
    told: dict[str, Any] = {}
    living = list(world.columns.rows.values())
    for name, plugin in world.plugins.items():
        state = CycleState()
        said = plugin.pre_filter(state, pod, view(None)) if hasattr(plugin, "pre_filter") else None
        if said is not None:
            told[name] = said.nodes if isinstance(said, PreFilterResult) else said
            if not isinstance(said, PreFilterResult):
                continue
        for some in (None, living, living[::-2], living[:1]):
            verdict = plugin.filter(state, pod, view(some)) if some or some is None else None
            rows = range(world.columns.size) if some is None else some
            codes = {} if verdict is None else dict(zip(rows, verdict.codes.tolist(), strict=True))
            told[f"{name} {some}"] = {one: verdict.tell(code) for one, code in codes.items() if code and one in living}
        if hasattr(plugin, "filter_node"):
            told[f"{name} alone"] = {one: bool(plugin.filter_node(state, pod, row(one))) for one in living}
    return told


@given(clusters(), pods, st.lists(st.tuples(numbers, pods | running_pods), max_size=4), st.lists(numbers, max_size=6))
def test_a_view_of_what_would_be_answers_as_a_view_of_what_then_is(cluster, pod, coming, leaving):
    asked, real = World(cluster), World(cluster)
    rows, placed = list(asked.columns.rows.values()), asked.placed
    gone = [placed[number] for number in dict.fromkeys(one % len(placed) for one in leaving)] if placed else []
    there = [
        (rows[number % len(rows)], msgspec.structs.replace(one, uid=PodUid(f"new-{which}")))
        for which, (number, one) in enumerate(coming)
        if rows
    ]
    curious = [pod, *(one for _, one in gone + there)]
    before = accessors(asked, everything(asked.columns), curious)
    positions = [log.position for log in asked.columns.logs]

    supposed = as_if(asked.columns, gone=gone, there=there)
    told = [accessors(asked, supposed.view(some), curious) for some in (None, rows, rows[::2])]
    told_alone = one_by_one(asked, supposed.row)
    judged = verdicts(asked, supposed.view, supposed.row, pod)

    assert before == accessors(asked, everything(asked.columns), curious)
    assert positions == [log.position for log in asked.columns.logs]
    real.move(gone, there)
    assert told == [
        accessors(real, everything(real.columns) if some is None else only(real.columns, some), curious)
        for some in (None, rows, rows[::2])
    ]
    assert told_alone == one_by_one(real, lambda row: NodeRow(real.columns, row))
    assert judged == verdicts(
        real,
        lambda some: everything(real.columns) if some is None else only(real.columns, some),
        lambda row: NodeRow(real.columns, row),
        pod,
    )
