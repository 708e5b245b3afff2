"""NodeAffinity: where a pod must go, and where it would rather go."""

import msgspec
import numpy as np
import pytest

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.pod import Pod, PreferredNodes
from lamina.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import PreFilterResult
from lamina.scheduling.contract.status import SKIP, failed, unresolvable
from lamina.scheduling.plugins.upstream.node_affinity.args import (
    AddedAffinity,
    AddedPreference,
    AddedRequirement,
    AddedTerm,
    AddedTerms,
    NodeAffinityArgs,
)
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.bench import Bench, final, refused, scored

OWN = Refusal("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",), final=True)
ENFORCED = Refusal("NodeAffinity", ("node(s) didn't match scheduler-enforced node affinity",), final=True)

SSD = NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),))
ZONE_A = NodeSelectorTerm((Requirement("zone", "In", ("a",)),))
NOTHING = NodeSelectorTerm()


def named(*names: str, operator: str = "In") -> NodeSelectorTerm:
    """Build a term that goes by names."""
    return NodeSelectorTerm(fields=(Requirement("metadata.name", operator, names),))


def asking(*terms: NodeSelectorTerm, **more: object) -> Pod:
    """Build a pod with a required affinity; *more* are other fields."""
    given = {"required_nodes": NodeSelector(terms)} if terms else {}
    return msgspec.structs.replace(a_pod(), **given, **more)


def preferring(*preferred: tuple[int, NodeSelectorTerm]) -> Pod:
    """Build a pod that prefers nodes."""
    return msgspec.structs.replace(a_pod(), preferred_nodes=tuple(PreferredNodes(*one) for one in preferred))


def cluster() -> Bench:
    """Make three nodes: an SSD in zone a, an SSD in zone b, nothing in zone a."""
    return Bench(
        a_node("both", labels={"disk": "ssd", "zone": "a"}),
        a_node("fast", labels={"disk": "ssd", "zone": "b"}),
        a_node("near", labels={"zone": "a"}),
    )


ADDED = NodeAffinityArgs(
    added_affinity=AddedAffinity(
        required=AddedTerms(
            node_selector_terms=(
                AddedTerm(match_expressions=(AddedRequirement(key="disk", operator="In", values=("ssd",)),)),
            )
        ),
        preferred=(
            AddedPreference(
                weight=3,
                preference=AddedTerm(match_expressions=(AddedRequirement(key="zone", operator="In", values=("b",)),)),
            ),
        ),
    )
)


# ------------------------------------------------------------------------------------------------------------- required


@pytest.mark.parametrize(
    ("pod", "out"),
    [
        pytest.param(asking(node_selector=(("disk", "ssd"),)), ["near"], id="node selector"),
        pytest.param(asking(node_selector=(("disk", "ssd"), ("zone", "a"))), ["fast", "near"], id="of two labels"),
        pytest.param(asking(SSD), ["near"], id="required"),
        pytest.param(asking(SSD, ZONE_A), [], id="one of two terms"),
        pytest.param(asking(SSD, node_selector=(("zone", "a"),)), ["fast", "near"], id="selector and affinity"),
        pytest.param(asking(NOTHING), ["both", "fast", "near"], id="an empty term matches nothing"),
        pytest.param(asking(NOTHING, SSD), ["near"], id="an empty term is passed over"),
        pytest.param(asking(named("fast", operator="NotIn")), ["fast"], id="not this one"),
        pytest.param(
            asking(NodeSelectorTerm((Requirement("disk", "Is", ("ssd",)),)), ZONE_A),
            ["fast"],
            id="a term that makes no sense matches nothing, and others count",
        ),
        pytest.param(
            msgspec.structs.replace(a_pod(), required_nodes=NodeSelector()), ["both", "fast", "near"], id="no terms"
        ),
    ],
)
def test_nodes_that_the_pods_own_words_leave_out_are_refused_for_good(pod, out):
    """In upstream's words; evicting somebody would not help."""
    bench = cluster()

    assert dict.fromkeys(out, OWN) == refused(bench, bench.make("NodeAffinity"), pod)


def test_what_the_configuration_requires_comes_before_what_the_pod_does():
    bench = cluster()
    plugin = bench.make("NodeAffinity", ADDED)

    assert {"near": ENFORCED, "both": OWN} == refused(bench, plugin, asking(node_selector=(("zone", "b"),)))
    assert {"near": ENFORCED} == refused(bench, plugin, a_pod())


def test_a_pod_that_says_nothing_about_nodes_is_none_of_its_business():
    bench = cluster()
    plugin = bench.make("NodeAffinity")

    assert SKIP == plugin.pre_filter(CycleState(), a_pod(), bench.view)
    assert SKIP == plugin.pre_score(CycleState(), a_pod(), bench.view)


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([named("n1")], PreFilterResult(frozenset({"n1"})), id="one"),
        pytest.param([named("n1"), named("n2")], PreFilterResult(frozenset({"n1", "n2"})), id="one or the other"),
        pytest.param([named("n1"), SSD], None, id="or any with a label"),
        pytest.param([named("n1", operator="NotIn")], None, id="all but one"),
        pytest.param(
            [named("n1", "n2")], PreFilterResult(frozenset({"n1", "n2"})), id="two at once, which will not match"
        ),
        pytest.param(
            [NodeSelectorTerm(fields=(*named("n1").fields, *named("n2").fields))],
            unresolvable("pod affinity terms conflict"),
            id="two that exclude each other",
        ),
        pytest.param(
            [NodeSelectorTerm(fields=(*named("n1").fields, *named("n2").fields)), named("n3")],
            PreFilterResult(frozenset({"n3"})),
            id="two that exclude each other, or a third",
        ),
        pytest.param(
            [NodeSelectorTerm(fields=(Requirement("metadata.uid", "In", ("n1",)),))], None, id="a field that is no name"
        ),
        pytest.param([], None, id="nothing named"),
    ],
)
def test_where_only_named_nodes_can_match_no_other_is_looked_at(terms, want):
    """As for the pods of a daemon set."""
    bench = Bench(a_node("n1"))
    pod = asking(*terms) if terms else asking(node_selector=(("a", "b"),))

    assert want == bench.make("NodeAffinity").pre_filter(CycleState(), pod, bench.view)


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([named("fast")], "fast", id="a node that is there"),
        pytest.param(
            [named("gone")],
            "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="a node that is not",
        ),
        pytest.param(
            [NodeSelectorTerm(SSD.expressions, named("near").fields)],
            "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="a node that is there and does not match",
        ),
        pytest.param(
            [NodeSelectorTerm(fields=(*named("fast").fields, *named("near").fields))],
            "0/3 nodes are available: pod affinity terms conflict.",
            id="no node can be both",
        ),
    ],
)
def test_a_pod_that_names_its_node_goes_there_or_is_told_why_not(terms, want):
    desk = LoopHarness(a_loop(["PrioritySort", "NodeAffinity", "NodeResourcesFit", "DefaultBinder"]))
    desk.tell(*(events.NodeSeen(node) for node in cluster().columns.nodes if node is not None))

    desk.see(asking(*terms))

    assert want == (desk.bound | desk.pending)["p1"]


# ------------------------------------------------------------------------------------------------------------ preferred


@pytest.mark.parametrize(
    ("preferred", "raw", "want"),
    [
        pytest.param([(5, SSD)], (5, 5, 0), (100, 100, 0), id="one term"),
        pytest.param([(5, SSD), (3, ZONE_A)], (8, 5, 3), (100, 62, 37), id="weights add up: 5/8 and 3/8 of 100, down"),
        pytest.param([(0, SSD), (1, ZONE_A)], (1, 0, 1), (100, 0, 100), id="a weight of 0"),
        pytest.param([(7, NOTHING)], (0, 0, 0), (0, 0, 0), id="an empty term"),
        pytest.param([(100, named("near"))], (0, 0, 100), (0, 0, 100), id="by name"),
    ],
)
def test_a_node_scores_by_the_weights_of_the_terms_it_matches(preferred, raw, want):
    """And 100 goes to the best of those that are feasible."""
    bench = cluster()
    plugin, pod = bench.make("NodeAffinity"), preferring(*preferred)

    assert dict(zip(["both", "fast", "near"], raw, strict=True)) == scored(bench, plugin, pod)
    assert dict(zip(["both", "fast", "near"], want, strict=True)) == final(bench, plugin, pod)


def test_only_feasible_nodes_say_what_the_best_is():
    """5 of 5 is as good as it gets when the node with 8 cannot be had."""
    bench = cluster()

    assert {"fast": 100, "near": 60} == final(
        bench, bench.make("NodeAffinity"), preferring((5, SSD), (3, ZONE_A)), ["fast", "near"]
    )


def test_what_the_configuration_prefers_is_added():
    """3 for zone b, and the pod's own 4 for zone a."""
    bench = cluster()
    plugin = bench.make("NodeAffinity", ADDED)

    assert {"both": 4, "fast": 3, "near": 4} == scored(bench, plugin, preferring((4, ZONE_A)))
    assert {"both": 0, "fast": 3, "near": 0} == scored(bench, plugin, a_pod())


@pytest.mark.parametrize(
    ("preferred", "want"),
    [
        pytest.param(
            [(1, SSD), (1, NodeSelectorTerm((Requirement("disk", "Is", ("ssd",)),)))],
            failed("preferred node affinity has an invalid requirement: 'disk' 'Is'"),
            id="an operator there is not",
        ),
        pytest.param(
            [(1, named("a", "b"))],
            failed("preferred node affinity has an invalid requirement: 'metadata.name' 'In'"),
            id="two names at once",
        ),
        pytest.param([(0, named("a", "b"))], None, id="it is worth nothing anyway"),
    ],
)
def test_a_preference_that_makes_no_sense_fails_the_attempt(preferred, want):
    """As upstream has it; the API server lets none pass."""
    bench = cluster()

    assert want == bench.make("NodeAffinity").pre_score(CycleState(), preferring(*preferred), bench.view)


# --------------------------------------------------------------------------------------------------------- another look


@pytest.mark.parametrize(
    ("before", "labels", "want"),
    [
        pytest.param(None, {"disk": "ssd"}, True, id="a node that matches came"),
        pytest.param(None, {}, False, id="a node that does not came"),
        pytest.param({}, {"disk": "ssd"}, True, id="a node matches now"),
        pytest.param({"disk": "ssd"}, {"disk": "ssd", "x": "y"}, False, id="it did before"),
        pytest.param({"disk": "ssd"}, {}, False, id="it did before and does not now"),
    ],
)
@pytest.mark.parametrize("args", [NodeAffinityArgs(), ADDED], ids=["alone", "with one added"])
def test_a_pod_is_tried_again_when_another_node_matches(before, labels, want, args):
    bench = Bench(a_node("n1", labels=labels))
    earlier = None if before is None else a_node("n1", labels=before)
    kind = ChangeKind.NODE_ADDED if earlier is None else ChangeKind.NODE_LABELS

    assert want == bench.make("NodeAffinity", args).worth_retrying(asking(SSD), ClusterChange(kind, 0, earlier))


def test_a_label_that_comes_later_lets_the_pod_in():
    desk = LoopHarness(a_loop(["PrioritySort", "NodeAffinity", "NodeResourcesFit", "DefaultBinder"]))
    desk.tell(events.NodeSeen(a_node("n1")))
    desk.see(asking(SSD))
    assert {"p1": "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."} == desk.pending

    desk.tell(events.NodeSeen(a_node("n1", labels={"disk": "ssd"})))
    desk.at(1.0)

    assert {"p1": "n1"} == desk.bound


def test_pods_are_told_apart_by_all_they_say_about_nodes():
    plugin = Bench().make("NodeAffinity")
    pods = [a_pod(), asking(SSD), asking(ZONE_A), preferring((1, SSD)), asking(node_selector=(("disk", "ssd"),))]

    assert len(pods) == len({plugin.sign(pod) for pod in pods})
    assert plugin.sign(a_pod("a", cpu=1)) == plugin.sign(a_pod("b"))


def test_scores_are_whole_numbers_of_64_bits():
    """So that weights cannot overflow however large they are."""
    bench = cluster()

    scores = bench.make("NodeAffinity").score(CycleState(), preferring((2**31 - 1, SSD), (2**31 - 1, SSD)), bench.view)

    assert (np.int64, 2**32 - 2) == (scores.dtype, scores[0])
