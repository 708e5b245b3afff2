"""PodTopologySpread: which pods it tells apart, and what may change its mind."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.selectors import LabelSelector
from lamina.model.taints import Taint
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import (
    HOSTNAME,
    ZONE,
    DefaultConstraint,
    SpreadArgs,
)
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.testing import LoopHarness, a_loop, a_pod
from tests.unit.scheduling.plugins.spreading import FOO, NAME, WEB, bench, four, hard, labelled, node, soft

PLAIN = labelled("foo", spread=(hard(ZONE),))


def changed(pod, **changes):
    return msgspec.structs.replace(pod, **changes)


@pytest.mark.parametrize(
    ("pod", "other", "same"),
    [
        pytest.param(a_pod("a"), a_pod("b", cpu=3, labels={"x": "y"}), True, id="no constraints: all alike"),
        pytest.param(
            PLAIN, changed(PLAIN, name="q", labels={"foo": "", "more": ""}), True, id="labels nobody looks at"
        ),
        pytest.param(PLAIN, changed(PLAIN, labels={}), False, id="a label it is counted by"),
        pytest.param(PLAIN, changed(PLAIN, namespace="other"), False, id="another namespace"),
        pytest.param(PLAIN, changed(PLAIN, spread=(hard(HOSTNAME),)), False, id="another topology"),
        pytest.param(PLAIN, changed(PLAIN, spread=(soft(ZONE),)), False, id="softly"),
        pytest.param(PLAIN, changed(PLAIN, node_selector=(("a", "b"),)), False, id="other nodes it may go to"),
        pytest.param(
            labelled(labels={"foo": "", "hash": "1"}, spread=(hard(ZONE, match_label_keys=("hash",)),)),
            labelled(labels={"foo": "", "hash": "2"}, spread=(hard(ZONE, match_label_keys=("hash",)),)),
            False,
            id="a label that has to be shared",
        ),
        pytest.param(a_pod(owner=WEB), a_pod(owner=WEB, labels={"a": "b"}), True, id="of one controller"),
        pytest.param(a_pod(owner=WEB), a_pod(owner=changed(WEB, uid="u2")), False, id="of two controllers"),
        pytest.param(a_pod(owner=WEB), a_pod(), False, id="of one and of none"),
        pytest.param(
            changed(PLAIN, owner=WEB),
            changed(PLAIN, owner=changed(WEB, uid="u2")),
            True,
            id="own constraints: whoever's",
        ),
    ],
)
def test_pods_are_told_apart_by_what_is_counted_for_them(pod, other, same):
    plugin = bench([], {}).make(NAME)

    assert same == (plugin.sign(pod) == plugin.sign(other))
    assert isinstance(hash(plugin.sign(pod)), int)


def test_without_defaults_controllers_make_no_difference():
    plugin = bench([], {}).make(NAME, SpreadArgs(defaulting_type="List"))

    assert plugin.sign(a_pod(owner=WEB)) == plugin.sign(a_pod())


# --------------------------------------------------------------------------------------------------------- trying again


def worth(pod, change: ClusterChange, args: SpreadArgs | None = None) -> bool:
    on = bench(four(), {})
    return on.make(NAME, args).worth_retrying(pod, change) is True


@pytest.mark.parametrize("kind", [ChangeKind.POD_PLACED, ChangeKind.POD_REMOVED])
@pytest.mark.parametrize(
    ("other", "want"),
    [
        pytest.param(labelled("foo"), True, id="one that counts"),
        pytest.param(labelled("bar"), False, id="one that does not"),
        pytest.param(labelled("foo", namespace="other"), False, id="in another namespace"),
    ],
)
def test_a_pod_that_counts_may_change_the_answer(kind, other, want):
    """Wherever it came or went: the emptiest domain may be another one now."""
    assert want == worth(PLAIN, ClusterChange(kind, 0, pod=other))


def test_so_may_one_of_the_same_controller():
    """Where a default constraint is hard."""
    constraint = DefaultConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
    args = SpreadArgs(defaulting_type="List", default_constraints=(constraint,))

    assert worth(a_pod(owner=WEB), ClusterChange(ChangeKind.POD_REMOVED, 0, pod=a_pod(owner=WEB)), args)
    assert not worth(a_pod(owner=WEB), ClusterChange(ChangeKind.POD_REMOVED, 0, pod=a_pod()), args)


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(PLAIN, True, id="with the label"),
        pytest.param(labelled("foo", spread=(hard("rack"),)), False, id="without it"),
        pytest.param(labelled("foo", spread=(hard(ZONE), hard("rack"))), False, id="without one of them"),
    ],
)
def test_a_new_node_may_if_it_is_in_a_domain(pod, want):
    assert want == worth(pod, ClusterChange(ChangeKind.NODE_ADDED, 0))


@pytest.mark.parametrize(
    ("before", "changes", "want"),
    [
        pytest.param(node("a", "z1", labels={"x": "y"}), {}, False, id="another label"),
        pytest.param(node("a", "z2"), {}, True, id="another zone before"),
        pytest.param(node("a"), {}, True, id="no zone before"),
        pytest.param(node("a", "z1", taints=[Taint("gpu")]), {}, True, id="a taint before"),
        pytest.param(node("a", "z1"), {"node_selector": (("x", "y"),)}, False, id="nothing the pod looks for"),
        pytest.param(
            node("a", "z1", labels={"x": "y"}), {"node_selector": (("x", "y"),)}, True, id="a label the pod looks for"
        ),
    ],
)
def test_a_node_that_changed_may_if_its_domain_did(before, changes, want):
    """The node is a, in the first zone, now."""
    assert want == worth(changed(PLAIN, **changes), ClusterChange(ChangeKind.NODE_LABELS, 0, before))


def test_a_node_that_left_its_domain_may():
    """It has no rack now; it had one."""
    before = node("a", "z1", labels={"rack": "1"})

    assert worth(labelled("foo", spread=(hard("rack"),)), ClusterChange(ChangeKind.NODE_LABELS, 0, before))
    assert not worth(labelled("foo", spread=(hard("row"),)), ClusterChange(ChangeKind.NODE_LABELS, 0, before))


def test_a_node_that_is_gone_may():
    """What it was is not known any more; it may have been the emptiest domain."""
    assert ChangeKind.NODE_REMOVED in bench(four(), {}).make(NAME).retry_on
    assert worth(PLAIN, ClusterChange(ChangeKind.NODE_REMOVED))


def test_a_change_nobody_can_name_is_worth_a_look():
    assert worth(PLAIN, ClusterChange(ChangeKind.NODE_LABELS, -1))


# --------------------------------------------------------------------------------------------------------- in the loop

PLUGINS = ["PrioritySort", NAME, "DefaultBinder"]


def desk(*, zones: str = "12") -> LoopHarness:
    made = LoopHarness(a_loop(PLUGINS, weights={NAME: 2}))
    made.tell(*(events.NodeSeen(node(f"n{zone}", f"z{zone}")) for zone in zones))
    return made


def test_pods_of_one_controller_take_turns():
    """Each placement is seen by the next pod, although they are of one shape."""
    made = desk(zones="123")
    made.see(*(a_pod(f"p{number}", owner=WEB) for number in range(6)))

    assert {"n1": 2, "n2": 2, "n3": 2} == {name: list(made.bound.values()).count(name) for name in ("n1", "n2", "n3")}


def test_a_pod_that_finds_no_balance_waits_for_a_pod_that_counts():
    """One pod more in the first zone is allowed; the second pod waits until the other zone has caught up."""
    made = desk()
    made.tell(events.NodeGone("n2"))
    first, second = (changed(PLAIN, uid=name, name=name) for name in ("p1", "p2"))
    least = changed(second, spread=(hard(ZONE, FOO, min_domains=2),))
    made.see(first)
    made.see(least)
    assert "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints." in made.pending["p2"]

    made.tell(events.NodeSeen(node("n2", "z2")))
    made.at(20.0)
    assert {"p1": "n1", "p2": "n2"} == made.bound


def test_a_label_taken_from_a_running_pod_makes_room():
    made = desk()
    made.see(changed(PLAIN, uid="p1", name="p1", node_name="n1"))
    strict = changed(
        PLAIN, uid="p2", name="p2", spread=(hard(ZONE, LabelSelector((("foo", ""),)), skew=1, min_domains=3),)
    )
    made.tell(events.PodSeen(changed(PLAIN, uid="q", name="q", node_name="n2")))
    made.see(strict)
    assert "p2" in made.pending

    made.tell(events.PodSeen(changed(PLAIN, uid="q", name="q", node_name="n2", labels={})))
    made.at(20.0)
    assert "n2" == made.bound["p2"]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(node("n2", "z2", pods=0, taints=[Taint("gpu")]), id="is tainted: a domain no more"),
        pytest.param(node("n2", pods=0), id="loses its zone: neither then"),
        pytest.param(node("n2", "z1", pods=0), id="moves to the other zone"),
    ],
)
def test_a_pod_that_waits_is_decided_by_what_nodes_are_then(second):
    """Zones 1/0: the first has one too many, and the second no place. What was kept about the pod does not hold."""
    made = LoopHarness(a_loop(["PrioritySort", "NodeResourcesFit", NAME, "DefaultBinder"]))
    made.tell(events.NodeSeen(node("n1", "z1")), events.NodeSeen(node("n2", "z2", pods=0)))
    made.see(changed(PLAIN, uid="q", name="q", node_name="n1"))
    made.see(changed(PLAIN, spread=(hard(ZONE, node_taints_policy="Honor"),)))
    assert {} == made.bound

    made.tell(events.NodeSeen(second))
    made.at(20.0)
    assert {"p1": "n1"} == made.bound


def test_a_pod_that_finds_no_balance_is_tried_again_when_the_node_of_an_empty_domain_leaves():
    """Zones 1/0: the first has one too many, and the second no place. Without the second the first is the emptiest."""
    made = LoopHarness(a_loop(["PrioritySort", "NodeResourcesFit", NAME, "DefaultBinder"]))
    made.tell(events.NodeSeen(node("n1", "z1")), events.NodeSeen(node("n2", "z2", pods=0)))
    made.see(changed(PLAIN, uid="q", name="q", node_name="n1"))
    made.see(PLAIN)
    made.at(20.0)
    assert {} == made.bound

    made.tell(events.NodeGone("n2"))
    made.at(40.0)
    assert {"p1": "n1"} == made.bound
