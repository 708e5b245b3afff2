"""
PodTopologySpread against a plain-Python oracle, on random clusters; and the counters it stands on against counting.
"""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.model.pod import Pod, SpreadConstraint
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import SYSTEM, DefaultConstraint, SpreadArgs
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.pod_counts import PodCounts, owner_key
from lamina.scheduling.state.view import everything
from lamina.testing import a_node
from tests.property import spread_oracle
from tests.property.clusters import (
    AFFINITIES,
    COUNTED,
    HOSTNAME,
    NODE_LABELS,
    OWNERS,
    SELECTORS,
    ZONE,
    a_whole_pod,
    chosen,
    clusters,
    labelled,
    node_labels,
    one_of_each,
    pods,
)
from tests.property.test_plugin_oracles import alive, built, filtered
from tests.unit.scheduling.bench import Bench

pytestmark = pytest.mark.slow

NAME = "PodTopologySpread"


def listed(*those: tuple[Any, ...]) -> SpreadArgs:
    """Make arguments with a list of defaults."""
    return SpreadArgs(
        defaulting_type="List",
        default_constraints=tuple(
            DefaultConstraint(
                max_skew=skew,
                topology_key=key,
                when_unsatisfiable=action,
                min_domains=least,
                node_affinity_policy=affinity,
                node_taints_policy=taints,
            )
            for skew, key, action, least, affinity, taints in those
        ),
    )


ARGS = st.sampled_from(
    [
        SpreadArgs(),
        listed(),
        listed((1, ZONE, "DoNotSchedule", None, None, None), (2, HOSTNAME, "ScheduleAnyway", None, None, "Honor")),
        listed((2, "rack", "DoNotSchedule", 3, "Ignore", "Honor"), (1, ZONE, "ScheduleAnyway", None, "Ignore", None)),
    ]
)


def defaults(args: SpreadArgs) -> tuple[SpreadConstraint, ...]:
    if args.defaulting_type == "System":
        return SYSTEM
    return tuple(
        SpreadConstraint(
            one.max_skew,
            one.topology_key,
            one.when_unsatisfiable,
            None,
            one.min_domains,
            one.node_affinity_policy or "Honor",
            one.node_taints_policy or "Ignore",
        )
        for one in args.default_constraints
    )


def test_the_defaults_of_the_system_are_upstreams():
    """Three more on a node and five more in a zone are nothing to speak of."""
    assert (SpreadConstraint(3, HOSTNAME, "ScheduleAnyway"), SpreadConstraint(5, ZONE, "ScheduleAnyway")) == SYSTEM


@given(clusters(), pods, ARGS)
def test_nodes_are_refused_as_upstream_does(cluster, pod, args):
    """Every node, with the same words and the same finality."""
    bench, _ = built(cluster)
    plugin, nodes = bench.make(NAME, args), alive(cluster)
    want = spread_oracle.refusals(nodes, cluster.placed, pod, defaults(args))
    skips = plugin.pre_filter(CycleState(), pod, bench.view) is not None

    assert skips == (want is None)
    if want is not None:
        assert want == filtered(bench, plugin, pod)


@given(clusters(), pods, ARGS, st.data())
def test_nodes_are_ranked_as_upstream_does(cluster, pod, args, data):
    """Over whichever nodes are feasible, to the point."""
    bench, _ = built(cluster)
    plugin, nodes, state = bench.make(NAME, args), alive(cluster), CycleState()
    feasible = data.draw(st.sets(st.sampled_from(sorted(nodes))) if nodes else st.just(set()))
    want = spread_oracle.points(
        (nodes, cluster.placed), pod, feasible, defaults(args), system=args.defaulting_type == "System"
    )
    skips = plugin.pre_score(state, pod, bench.view) is not None

    assert skips == (want is None)
    if want is not None:
        assert want == ranked(bench, plugin, state, pod, feasible)


def ranked(bench: Bench, plugin, state: CycleState, pod: Pod, feasible: set[str]) -> dict[str, int]:
    """Let the plugin score and normalise, and return that for the feasible nodes."""
    inside = np.zeros(bench.columns.size, dtype=np.bool_)
    inside[[bench.columns.rows[name] for name in feasible]] = True
    final = plugin.normalize(state, pod, plugin.score(state, pod, bench.view), inside)
    return {name: int(final[bench.columns.rows[name]]) for name in feasible}


# ------------------------------------------------------------------------------------------------------------- counters

counted_pods = one_of_each(
    ["default", "other"], OWNERS, [*[False] * 4, True], *(choices for choices in COUNTED.values())
).map(
    lambda drawn: a_whole_pod(
        [], [], [], [], chosen(COUNTED, drawn[3:]), namespace=drawn[0], owner=drawn[1], deleting=drawn[2]
    )
)
OWNER_KEYS = [(namespace, name) for namespace in ("default", "other") for name in ("u1", "u2", "Job/once", "nobody")]
# What happens to counters: a pod comes to a row or goes from it, and now and then somebody asks.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), counted_pods, st.integers(0, 5)),
        st.tuples(st.just("add"), counted_pods, st.integers(0, 5)),
        st.tuples(st.just("remove"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("ask"), st.sampled_from(SELECTORS[:-1]), st.sampled_from(OWNER_KEYS)),
    ),
    max_size=30,
)


@given(steps)
def test_counters_say_what_counting_says(history):
    """Whenever they are asked, and whatever was asked before."""
    counts, there = PodCounts(), list[tuple[int, Pod]]()
    height = 6
    for what, one, two in history:
        if what == "add":
            counts.add(two, one)
            there.append((two, one))
        elif what == "remove" and there:
            counts.remove(*there.pop(one % len(there)))
        elif what == "ask":
            counts.matching("default", one, height)
            counts.owned(two, height)
    living = [(row, pod) for row, pod in there if not pod.deleting]
    for selector in SELECTORS[:-1]:
        assert [
            sum(at == row and pod.namespace == "default" and selector.matches(pod.labels) for at, pod in living)
            for row in range(height)
        ] == counts.matching("default", selector, height).tolist()
    for key in OWNER_KEYS:
        assert [
            sum(at == row and owner_key(pod) == key for at, pod in living) for row in range(height)
        ] == counts.owned(key, height).tolist()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["n0", "n1", "n2", "n3", "n4"]), st.sampled_from([True, True, True, False]), node_labels
        ),
        max_size=20,
    ),
    st.sampled_from(AFFINITIES),
    st.booleans(),
)
def test_domains_and_selections_follow_the_labels(history, affinity, early):
    """Nodes come, change and go, and rows are given to others; asked early or late, the answer is the same."""
    columns, wanted = NodeColumns(), ((("disk", "ssd"),), affinity)
    if early:
        _look(columns, wanted)
    for name, stays, drawn in history:
        if stays:
            columns.put(msgspec.structs.replace(a_node(name), labels=labelled(name, drawn)))
        elif name in columns.rows:
            columns.remove(name)
    domains, selected = _look(columns, wanted)
    for key, numbers in domains.items():
        values = {name: columns.nodes[row].labels.get(key) for name, row in columns.rows.items()}
        for name, row in columns.rows.items():
            assert (values[name] is None) == (numbers[row] == 0)
            assert (values[name] == "") == (numbers[row] == 1)
            for other, at in columns.rows.items():
                assert (values[name] == values[other]) == (numbers[row] == numbers[at])
        assert {0} >= {numbers[row] for row in range(columns.size) if not columns.alive[row]}
    for row in range(columns.size):
        node = columns.nodes[row]
        assert selected[row] == (
            node is not None
            and node.labels.get("disk") == "ssd"
            and (affinity is None or affinity.matches(node.labels, node.name))
        )


def _look(columns: NodeColumns, wanted) -> tuple[dict[str, list[int]], list[bool]]:
    view = everything(columns)
    return {key: view.domains(key).tolist() for key in (HOSTNAME, *NODE_LABELS)}, view.selected(wanted).tolist()
