"""NodeAffinity, NodePorts and InterPodAffinity against plain-Python oracles, on random clusters."""

import msgspec
import pytest
from hypothesis import given

from lamina.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import PreFilterResult
from lamina.scheduling.contract.status import SKIP
from lamina.scheduling.plugins.upstream.inter_pod_affinity.plugin import InterPodAffinityArgs
from lamina.scheduling.plugins.upstream.node_affinity.args import (
    AddedAffinity,
    AddedRequirement,
    AddedTerm,
    AddedTerms,
    NodeAffinityArgs,
)
from tests.property import neighbour_oracle
from tests.property.clusters import REPELS, clusters, pods
from tests.property.oracles import PASSES
from tests.property.test_plugin_oracles import alive, built, filtered, normalized, ranked

pytestmark = pytest.mark.slow

ADDED = NodeAffinityArgs(
    added_affinity=AddedAffinity(
        required=AddedTerms(
            node_selector_terms=(AddedTerm(match_expressions=(AddedRequirement(key="rack", operator="Exists"),)),)
        )
    )
)
HAS_RACK = NodeSelector((NodeSelectorTerm((Requirement("rack", "Exists"),)),))


@pytest.mark.parametrize(
    ("args", "added"), [(NodeAffinityArgs(), None), (ADDED, HAS_RACK)], ids=["alone", "with one added"]
)
@given(clusters(), pods)
def test_node_affinity_refuses_what_upstream_refuses(args, added, cluster, pod):
    bench, _ = built(cluster)
    plugin = bench.make("NodeAffinity", args)
    want = {name: neighbour_oracle.affine(node, pod, added) for name, node in alive(cluster).items()}

    answer = plugin.pre_filter(CycleState(), pod, bench.view)

    if answer == SKIP:
        assert set(want.values()) <= {PASSES}
    elif isinstance(answer, PreFilterResult):
        # Nobody else would have passed, and these are still asked.
        assert {name for name, words in want.items() if words == PASSES} <= answer.nodes
    elif answer is not None:
        assert PASSES not in want.values()
    if answer is None:
        assert want == filtered(bench, plugin, pod)


@given(clusters(), pods)
def test_node_affinity_ranks_as_upstream_does(cluster, pod):
    pod = msgspec.structs.replace(
        pod, preferred_nodes=tuple(one for one in pod.preferred_nodes if one.term.malformed() is None)
    )
    bench, _ = built(cluster)
    plugin, nodes = bench.make("NodeAffinity"), alive(cluster)

    raw = ranked(bench, plugin, pod)

    if not pod.preferred_nodes:
        assert raw is None
        return
    assert {name: neighbour_oracle.liked(node, pod) for name, node in nodes.items()} == raw
    feasible = set(list(nodes)[::2])
    best = max((raw[name] for name in feasible), default=0)
    assert {name: 100 * raw[name] // best if best else 0 for name in feasible} == normalized(
        bench, plugin, pod, raw, feasible
    )


@given(clusters(), pods)
def test_ports_are_taken_where_upstream_finds_them_taken(cluster, pod):
    bench, _ = built(cluster)
    plugin = bench.make("NodePorts")
    want = {name: neighbour_oracle.ports(cluster.placed[name], pod) for name in alive(cluster)}

    if pod.host_ports:
        assert want == filtered(bench, plugin, pod)
    else:
        assert plugin.pre_filter(CycleState(), pod, bench.view) == SKIP
        assert set(want.values()) <= {PASSES}


@pytest.mark.parametrize("namespaces", [{}, {"other": {"team": "a"}}], ids=["without labels", "with labels"])
@given(clusters(), pods)
def test_pods_are_kept_near_and_apart_where_upstream_does(namespaces, cluster, pod):
    bench, _ = built(cluster)
    for name, labels in namespaces.items():
        bench.columns.label_namespace(name, labels)
    plugin = bench.make("InterPodAffinity")
    want = neighbour_oracle.neighbours(alive(cluster), cluster.placed, pod, namespaces)

    if plugin.pre_filter(CycleState(), pod, bench.view) == SKIP:
        assert set(want.values()) <= {PASSES}
        assert not pod.required_pods
        assert not pod.repels
    else:
        assert want == filtered(bench, plugin, pod)


@pytest.mark.parametrize("hard_weight", [1, 0, 100])
@given(clusters(), pods)
def test_pods_in_the_domain_of_a_node_are_worth_what_upstream_gives_for_them(hard_weight, cluster, pod):
    bench, _ = built(cluster)
    bench.columns.label_namespace("other", {"team": "a"})
    plugin = bench.make("InterPodAffinity", InterPodAffinityArgs(hard_pod_affinity_weight=hard_weight))
    nodes = alive(cluster)
    want = neighbour_oracle.preferred(nodes, cluster.placed, pod, {"other": {"team": "a"}}, hard_weight)

    raw = ranked(bench, plugin, pod)

    if raw is None:
        assert set(want.values()) <= {0}
        assert not pod.preferred_pods
        assert not pod.avoided_pods
        return
    assert want == raw
    feasible = set(list(nodes)[::2])
    assert neighbour_oracle.stretched({name: raw[name] for name in feasible}) == normalized(
        bench, plugin, pod, raw, feasible
    )


@given(clusters(), pods)
def test_pods_without_preferences_are_not_scored_if_those_of_others_are_ignored(cluster, pod):
    bench, _ = built(cluster)
    lenient = bench.make("InterPodAffinity")
    plugin = bench.make("InterPodAffinity", InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True))

    if pod.preferred_pods or pod.avoided_pods:
        assert ranked(bench, lenient, pod) == ranked(bench, plugin, pod)
    else:
        assert ranked(bench, plugin, pod) is None


def test_the_rules_of_the_clusters_are_of_every_kind():
    """Own namespace, named ones, selected ones; one topology and several; somebody, everybody and nobody."""
    terms = [term for one in REPELS for term in one]

    assert {True, False} == {term.namespace_selector is None for term in terms}
    assert {(), ("other",)} == {term.namespaces for term in terms}
    assert 3 == len({term.topology_key for term in terms})
    assert None in {term.selector for term in terms}
