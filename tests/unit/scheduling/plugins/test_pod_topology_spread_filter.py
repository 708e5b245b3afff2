"""PodTopologySpread, hard constraints: no domain gets too far ahead of the emptiest one."""

import pytest

from lamina.model.decision import Refusal
from lamina.model.pod import Pod, SpreadConstraint
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import SKIP
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import (
    HOSTNAME,
    ZONE,
    DefaultConstraint,
    SpreadArgs,
)
from lamina.scheduling.state.view import only
from lamina.testing import a_pod
from tests.unit.scheduling.bench import refused
from tests.unit.scheduling.plugins.spreading import (
    BAR,
    FOO,
    NAME,
    WEB,
    bench,
    four,
    hard,
    labelled,
    node,
    passes,
    soft,
)


def spread(*constraints, labels: tuple[str, ...] = ("foo",), **changes) -> Pod:
    return labelled(*labels, spread=constraints, **changes)


@pytest.mark.parametrize(
    ("constraint", "counts", "want"),
    [
        pytest.param(hard(ZONE), {}, "abxy", id="nobody there"),
        pytest.param(hard(ZONE), {"a": 2, "b": 1, "y": 3}, "abxy", id="zones 3/3"),
        pytest.param(hard(ZONE), {"a": 1, "y": 2}, "ab", id="zones 1/2: the emptier one"),
        pytest.param(hard(ZONE, skew=2), {"a": 1, "y": 2}, "abxy", id="zones 1/2, two more allowed"),
        pytest.param(hard(HOSTNAME), {"a": 2, "b": 1, "y": 3}, "x", id="nodes 2/1/0/3"),
        pytest.param(hard(HOSTNAME, skew=2), {"a": 2, "b": 1, "y": 3}, "bx", id="nodes 2/1/0/3, two more allowed"),
        pytest.param(hard(ZONE, None), {"x": 1, "y": 1}, "abxy", id="no selector counts nobody"),
        pytest.param(hard(ZONE, LabelSelector()), {"x": 1, "y": 1}, "abxy", id="nor does an empty one"),
    ],
)
def test_a_domain_may_have_so_many_pods_more_than_the_emptiest(constraint, counts, want):
    """With the pod itself."""
    assert want == passes(bench(four(), counts), spread(constraint))


def test_a_pod_that_does_not_count_itself_adds_nothing():
    """Nodes 2/1/0/3: where there is one, there stays one."""
    on = bench(four(), {"a": 2, "b": 1, "y": 3})

    assert "bx" == passes(on, spread(hard(HOSTNAME), labels=("bar",)))


def test_an_empty_selector_matches_the_pod_itself():
    """Upstream counts no pod with it, but the pod: with an allowance of nothing no node is left."""
    on = bench(four(), {"a": 1})

    assert "" == passes(on, spread(hard(ZONE, LabelSelector(), skew=0)))
    assert "abxy" == passes(on, spread(hard(ZONE, None, skew=0)))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(labelled("foo", namespace="other"), id="in another namespace"),
        pytest.param(labelled("foo", deleting=True), id="being deleted"),
        pytest.param(labelled("bar"), id="with other labels"),
    ],
)
def test_pods_that_do_not_count(other):
    assert "abxy" == passes(bench(four(), {"a": 5}, other), spread(hard(ZONE)))


def test_a_node_without_the_label_is_refused_for_good():
    """And its pods count nowhere: zones 1/2, the pod on b is in none."""
    nodes = four()
    nodes[1] = node("b")
    on = bench(nodes, {"a": 1, "b": 1, "x": 1, "y": 1})

    assert {
        "b": Refusal(
            NAME, ("node(s) didn't match pod topology spread constraints (missing required label)",), final=True
        ),
        "x": Refusal(NAME, ("node(s) didn't match pod topology spread constraints",), final=False),
        "y": Refusal(NAME, ("node(s) didn't match pod topology spread constraints",), final=False),
    } == refused(on, on.make(NAME), spread(hard(ZONE)))


def test_without_any_such_label_no_node_will_do():
    assert "ABXY" == passes(bench(four(), {}), spread(hard("rack")))


def test_an_empty_label_is_a_label():
    """Its nodes are a domain like any other: 2/0."""
    on = bench([node("a", ""), node("b", ""), node("x", "z")], {"a": 1, "b": 1})

    assert "x" == passes(on, spread(hard(ZONE)))


@pytest.mark.parametrize(
    ("constraints", "counts", "want"),
    [
        pytest.param([hard(ZONE), hard(HOSTNAME)], {"a": 2, "b": 1, "y": 3}, "x", id="zones 3/3, nodes 2/1/0/3"),
        pytest.param([hard(ZONE), hard(HOSTNAME)], {"a": 2, "b": 1, "y": 4}, "", id="zones 3/4, nodes 2/1/0/4"),
        pytest.param([hard(ZONE), soft(HOSTNAME)], {"a": 2, "b": 1, "y": 3}, "abxy", id="a soft one refuses nobody"),
    ],
)
def test_all_constraints_have_to_be_kept(constraints, counts, want):
    assert want == passes(bench(four(), counts), spread(*constraints))


def test_each_constraint_counts_its_own_pods():
    """foo in zones: 1/0, so x and y; bar on nodes: 1/0/0/1, so b and x."""
    on = bench(four(), {"a": 1})
    on.place("a", labelled("bar"))
    on.place("y", labelled("bar"))

    assert "x" == passes(on, spread(hard(ZONE, FOO), hard(HOSTNAME, BAR), labels=("foo", "bar")))


@pytest.mark.parametrize(
    ("constraints", "want"),
    [
        pytest.param([hard("rack"), hard(ZONE)], "aB", id="the label first"),
        pytest.param([hard(ZONE), hard("rack")], "a", id="the label second: b is too full before it lacks anything"),
    ],
)
def test_of_several_reasons_the_first_counts(constraints, want):
    """b lacks a rack, and its zone is too full; nodes that lack a label are in no domain, so the zone is x's alone: 0/2."""
    on = bench(
        [node("a", "z1", labels={"rack": "1"}), node("b", "z2"), node("x", "z2", labels={"rack": "1"})], {"x": 2}
    )

    assert want == passes(on, spread(*constraints))


@pytest.mark.parametrize(
    ("least", "want"),
    [
        pytest.param(None, "abx", id="nothing said: as 1"),
        pytest.param(1, "abx", id="1"),
        pytest.param(3, "abx", id="as many as there are"),
        pytest.param(4, "x", id="one more than there are: the emptiest counts as empty"),
    ],
)
def test_with_too_few_domains_the_emptiest_counts_as_empty(least, want):
    """Nodes 2/2/1 with two more allowed: fewest 1, so up to 3 with this one; fewest 0, so up to 2."""
    nodes = [node("a"), node("b"), node("x")]
    on = bench(nodes, {"a": 2, "b": 2, "x": 1})

    assert want == passes(on, spread(hard(HOSTNAME, skew=2, min_domains=least)))


# ----------------------------------------------------------------------------------------------- which nodes make domains

ONLY_A_AND_Y = NodeSelector((NodeSelectorTerm((Requirement(HOSTNAME, "In", ("a", "y")),)),))


@pytest.mark.parametrize(
    ("changes", "policy", "want"),
    [
        # Nodes 2/1/0/3. Whether b and x are right for the pod otherwise is another plugin's to say.
        pytest.param({"required_nodes": ONLY_A_AND_Y}, "Honor", "abx", id="affinity: 2/-/-/3"),
        pytest.param({"required_nodes": ONLY_A_AND_Y}, "Ignore", "x", id="affinity ignored: 2/1/0/3"),
        pytest.param({"node_selector": ((HOSTNAME, "y"),)}, "Honor", "abxy", id="a selector: -/-/-/3"),
        pytest.param({"node_selector": ((HOSTNAME, "y"),)}, "Ignore", "x", id="a selector ignored"),
        pytest.param({}, "Honor", "x", id="none of both"),
    ],
)
def test_nodes_the_pod_cannot_go_to_make_no_domain(changes, policy, want):
    """Unless the constraint does not care."""
    on = bench(four(), {"a": 2, "b": 1, "y": 3})

    assert want == passes(on, spread(hard(HOSTNAME, node_affinity_policy=policy), **changes))


@pytest.mark.parametrize(
    ("effect", "tolerations", "policy", "want"),
    [
        # Nodes 1/1/0, the last tainted.
        pytest.param(NO_SCHEDULE, (), "Honor", "abx", id="out: 1/1/-"),
        pytest.param(NO_EXECUTE, (), "Honor", "abx", id="out, whatever is hard"),
        pytest.param(PREFER_NO_SCHEDULE, (), "Honor", "x", id="soft ones do not count"),
        pytest.param(NO_SCHEDULE, (Toleration("gpu", "Exists"),), "Honor", "x", id="tolerated: 1/1/0"),
        pytest.param(NO_SCHEDULE, (), "Ignore", "x", id="ignored: 1/1/0"),
    ],
)
def test_tainted_nodes_make_domains_unless_told_otherwise(effect, tolerations, policy, want):
    """Whether the pod may go there at all is another plugin's to say."""
    on = bench([node("a"), node("b"), node("x", taints=[Taint("gpu", "", effect)])], {"a": 1, "b": 1})

    assert want == passes(on, spread(hard(HOSTNAME, node_taints_policy=policy), tolerations=tolerations))


def test_without_a_node_that_counts_there_is_no_domain():
    """With too few of them the emptiest counts as empty: nothing is too full. So it is when nothing at all is asked."""
    on = bench(four(), {"a": 3})
    nowhere = (("disk", "none"),)

    assert "abxy" == passes(on, spread(hard(ZONE), node_selector=nowhere))
    assert "abxy" == passes(on, spread(hard(ZONE, min_domains=0), node_selector=nowhere))


# ---------------------------------------------------------------------------------------------------- labels of the pod


@pytest.mark.parametrize(
    ("keys", "want"),
    [
        # foo in zones: 2/1, of hash 2: 0/1.
        pytest.param((), "xy", id="all of foo"),
        pytest.param(("hash",), "ab", id="those of the same hash"),
        pytest.param(("colour",), "xy", id="a label the pod does not have"),
        pytest.param(("hash", "colour"), "ab", id="one it has and one it does not"),
    ],
)
def test_pods_can_be_counted_by_labels_they_share_with_the_pod(keys, want):
    """The pod has hash 2."""
    on = bench(four(), {"a": 2}, a_pod(labels={"foo": "", "hash": "1"}))
    on.place("x", a_pod(labels={"foo": "", "hash": "2"}))
    pod = labelled(labels={"foo": "", "hash": "2"}, spread=(hard(ZONE, match_label_keys=keys),))

    assert want == passes(on, pod)


def test_shared_labels_do_not_make_a_selector_where_there_is_none():
    on = bench(four(), {"a": 2}, a_pod(labels={"foo": ""}))

    assert "abxy" == passes(on, spread(hard(ZONE, None, match_label_keys=("foo",))))
    assert "xy" == passes(on, spread(hard(ZONE, LabelSelector(), match_label_keys=("foo",))))


# ------------------------------------------------------------------------------------------------------------- defaults


def listed(**changes) -> SpreadArgs:
    constraint = DefaultConstraint(
        **{"max_skew": 1, "topology_key": ZONE, "when_unsatisfiable": "DoNotSchedule"} | changes
    )
    return SpreadArgs(defaulting_type="List", default_constraints=(constraint,))


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(a_pod(owner=WEB), "xy", id="of the controller"),
        pytest.param(a_pod(owner=WEB, labels={"foo": "other"}), "xy", id="whatever its labels are"),
    ],
)
def test_default_constraints_count_the_pods_of_the_same_controller(pod, want):
    """Two pods of it in the first zone; those of others do not count."""
    on = bench(four(), {"a": 2}, a_pod(owner=WEB, labels={"foo": ""}))
    on.place("y", a_pod(owner=None, labels={"foo": ""}), labelled("foo", owner=WEB, namespace="other"))

    assert want == passes(on, pod, listed())


@pytest.mark.parametrize(
    ("pod", "args"),
    [
        pytest.param(a_pod(labels={"foo": ""}), listed(), id="nobody's pod has no default constraints"),
        pytest.param(a_pod(owner=WEB), None, id="the system's are soft"),
        pytest.param(a_pod(owner=WEB), listed(when_unsatisfiable="ScheduleAnyway"), id="soft ones refuse nobody"),
        pytest.param(labelled("foo", owner=WEB, spread=(soft(ZONE),)), listed(), id="own ones stand instead of them"),
        pytest.param(a_pod(owner=WEB), SpreadArgs(defaulting_type="List"), id="an empty list"),
        pytest.param(
            labelled("foo", spread=(SpreadConstraint(1, ZONE, "Sometimes"),)), None, id="neither hard nor soft"
        ),
    ],
)
def test_without_hard_constraints_it_has_nothing_to_say(pod, args):
    on = bench(four(), {"a": 2})

    assert on.make(NAME, args).pre_filter(CycleState(), pod, on.view) is SKIP


def test_default_constraints_have_policies_and_domains_of_their_own():
    """Zones 2/0, and the second one is tainted and left out: with one domain of at least two, the emptiest is empty."""
    nodes = [node("a", "z1"), node("x", "z2", taints=[Taint("gpu")])]
    on = bench(nodes, {"a": 2}, a_pod(owner=WEB))

    assert "ax" == passes(on, a_pod(owner=WEB), listed(node_taints_policy="Honor"))
    assert "x" == passes(on, a_pod(owner=WEB), listed(node_taints_policy="Honor", min_domains=2))


# --------------------------------------------------------------------------------------------------------- some nodes only


def test_some_nodes_are_judged_as_all_of_them():
    on = bench(four(), {"a": 2, "b": 1, "y": 3})
    plugin, state, pod = on.make(NAME), CycleState(), spread(hard(HOSTNAME))
    plugin.pre_filter(state, pod, on.view)
    verdicts = plugin.filter(state, pod, only(on.columns, [3, 2]))

    assert verdicts is not None
    assert [True, False] == [code != 0 for code in verdicts.codes.tolist()]
    assert plugin.filter(state, pod, only(on.columns, [2])) is None
