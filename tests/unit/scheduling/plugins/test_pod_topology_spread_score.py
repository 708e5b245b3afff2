"""PodTopologySpread, soft constraints: emptier domains are better, in upstream's numbers."""

import math
import struct

import pytest

from lamina.model.selectors import LabelSelector
from lamina.model.taints import Taint
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.plugins.upstream.pod_topology_spread.logarithm import logarithm
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import (
    HOSTNAME,
    ZONE,
    DefaultConstraint,
    SpreadArgs,
)
from lamina.testing import a_node, a_pod
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
    scores,
    soft,
)


def spread(*constraints, labels: tuple[str, ...] = ("foo",), **changes):
    return labelled(*labels, spread=constraints, **changes)


def points(*of: int) -> dict[str, int]:
    """Name points by the four nodes."""
    return dict(zip("abxy", of, strict=True))


@pytest.mark.parametrize(
    ("constraint", "counts", "want"),
    [
        # The raw score is pods · ln(nodes + 2) + skew - 1, rounded; points are 100 · (most + least - raw) / most.
        pytest.param(soft(HOSTNAME), (0, 0, 0, 0), (100, 100, 100, 100), id="nobody there"),
        pytest.param(soft(HOSTNAME), (1, 1, 1, 1), (100, 100, 100, 100), id="as many everywhere"),
        # ln 6 = 1.79: raw 4, 2, 0, 5; least 0, most 5
        pytest.param(soft(HOSTNAME), (2, 1, 0, 3), (20, 60, 100, 0), id="2/1/0/3"),
        # raw 5, 3, 1, 6; least 1, most 6
        pytest.param(soft(HOSTNAME, skew=2), (2, 1, 0, 3), (33, 66, 100, 16), id="2/1/0/3, with more tolerance"),
        # raw 9, 7, 6, 4; least 4, most 9
        pytest.param(soft(HOSTNAME, skew=3), (4, 3, 2, 1), (44, 66, 77, 100), id="4/3/2/1, with still more"),
        # ln 4 = 1.39: zones 3 and 4: raw 4, 6
        pytest.param(soft(ZONE), (2, 1, 0, 4), (100, 100, 66, 66), id="zones 3/4"),
        pytest.param(soft(HOSTNAME, None), (2, 1, 0, 3), (100, 100, 100, 100), id="no selector counts nobody"),
        pytest.param(soft(HOSTNAME, LabelSelector()), (2, 1, 0, 3), (100, 100, 100, 100), id="nor does an empty one"),
        pytest.param(
            soft(HOSTNAME, min_domains=9), (2, 1, 0, 3), (20, 60, 100, 0), id="the least number is for hard ones"
        ),
    ],
)
def test_emptier_domains_are_better(constraint, counts, want):
    assert points(*want) == scores(bench(four(), points(*counts)), spread(constraint))


@pytest.mark.parametrize(
    ("constraints", "counts", "among", "want"),
    [
        # ln 5 = 1.61: raw 6, 3, 2; least 2, most 6. The pods on y, which is out, are on no other node.
        pytest.param([soft(HOSTNAME)], (4, 2, 1, 3), "abx", (33, 83, 100), id="nodes 4/2/1, and 3 that is out"),
        # ln 4 = 1.39: zones 6 and 4 (y counts, too): raw 8, 8, 6
        pytest.param([soft(ZONE)], (4, 2, 1, 3), "abx", (75, 75, 100), id="zones 6/4, with pods on a node that is out"),
        # Zones 3 and 6, ln 4: 4.16, 8.32; nodes 2 and 2, ln 4: 2.77 each; raw 7, 11
        pytest.param([soft(ZONE), soft(HOSTNAME)], (2, 1, 2, 4), "ax", (100, 63), id="zones 3/6 and nodes 2/2"),
        # One zone is left: ln 3 = 1.0986, raw 3·1.0986 = 3.3 for both
        pytest.param([soft(ZONE)], (2, 1, 0, 3), "ab", (100, 100), id="one zone left"),
        pytest.param([soft(HOSTNAME)], (2, 0, 1, 0), "a", (100,), id="one node left"),
    ],
)
def test_only_feasible_nodes_make_topologies_large(constraints, counts, among, want):
    """And only they are compared; but pods on other nodes of their domains count."""
    on = bench(four(), points(*counts))

    assert dict(zip(among, want, strict=True)) == scores(on, spread(*constraints), among)


def test_without_a_feasible_node_nobody_gets_anything():
    on = bench(four(), {"a": 1})
    plugin, state, pod = on.make(NAME), CycleState(), spread(soft(ZONE))
    plugin.pre_score(state, pod, on.view)
    nobody = on.view.alive & False

    assert [0, 0, 0, 0] == plugin.normalize(state, pod, plugin.score(state, pod, on.view), nobody).tolist()


def test_each_constraint_counts_its_own_pods():
    """foo in zones 1/2, ln 4: 1.39, 2.77; bar on nodes 0/2/1/0, ln 6: 0, 3.58, 1.79, 0; raw 1, 5, 5, 3."""
    on = bench(four(), points(1, 0, 2, 0))
    on.place("b", labelled("bar"), labelled("bar"))
    on.place("x", labelled("bar"))

    assert points(100, 20, 20, 60) == scores(on, spread(soft(ZONE, FOO), soft(HOSTNAME, BAR), labels=("foo", "bar")))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(labelled("foo", namespace="other"), id="in another namespace"),
        pytest.param(labelled("foo", deleting=True), id="being deleted"),
        pytest.param(labelled("bar"), id="with other labels"),
    ],
)
def test_pods_that_do_not_count(other):
    assert points(100, 100, 100, 100) == scores(bench(four(), {"a": 5}, other), spread(soft(ZONE)))


def test_a_node_without_the_label_gets_nothing():
    """And is no domain: nodes 4/-/1 of three, ln 4: raw 6, -, 1; 100 · (6 + 1 - 6) / 6."""
    nodes = [node("a"), a_node("b"), node("x"), node("y")]
    on = bench(nodes, points(4, 2, 1, 3))

    assert {"a": 16, "b": 0, "x": 100} == scores(on, spread(soft(HOSTNAME)), "abx")


def test_where_every_node_lacks_a_label_nobody_gets_anything():
    assert points(0, 0, 0, 0) == scores(bench(four(), {"a": 1}), spread(soft(ZONE), soft("rack")))


# --------------------------------------------------------------------------------------------- which nodes make domains


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        # ln 4 = 1.39: zones 2/1, raw 3, 1; or with the pods on a zones 5/1, raw 7, 1
        pytest.param("Honor", points(33, 33, 100, 100), id="they do not count"),
        pytest.param("Ignore", points(14, 14, 100, 100), id="they do"),
    ],
)
def test_pods_on_nodes_the_pod_cannot_go_to_count_only_if_the_constraint_says_so(policy, want):
    """The pod wants a disk, which a does not have."""
    disk = {"disk": "ssd"}
    nodes = [node("a", "z1"), node("b", "z1", labels=disk), node("x", "z2", labels=disk), node("y", "z2", labels=disk)]
    on = bench(nodes, points(3, 2, 1, 0))

    assert want == scores(on, spread(soft(ZONE, node_affinity_policy=policy), node_selector=(("disk", "ssd"),)))


def test_pods_on_tainted_nodes_count_unless_told_otherwise():
    """Zones 3/1, or without the tainted node 1/1."""
    nodes = [node("a", "z1", taints=[Taint("gpu")]), node("b", "z1"), node("x", "z2"), node("y", "z2")]
    on = bench(nodes, points(2, 1, 1, 0))

    # ln 4: raw 4, 1
    assert points(25, 25, 100, 100) == scores(on, spread(soft(ZONE)))
    assert points(100, 100, 100, 100) == scores(on, spread(soft(ZONE, node_taints_policy="Honor")))


def test_pods_on_the_node_itself_count_whatever_the_policy():
    """Upstream looks at a node's own pods without asking whether the pod could go there: raw 2, 0."""
    on = bench([node("a", taints=[Taint("gpu")]), node("b")], {"a": 1})

    assert {"a": 0, "b": 100} == scores(on, spread(soft(HOSTNAME, node_taints_policy="Honor")))


# ------------------------------------------------------------------------------------------------------------- defaults


def owned(counts: tuple[int, ...], nodes=None):
    return bench(nodes or four(), points(*counts), a_pod(owner=WEB))


def test_by_default_pods_of_a_controller_are_spread_over_nodes_and_zones():
    """Nodes 4/3/2/1, ln 6 and 2 on top; zones 7/3, ln 4 and 4 on top: 7.17+2+9.70+4, 5.38+…, 3.58+2+4.16+4, 1.79+…."""
    # raw 23, 21, 14, 12; least 12, most 23
    assert points(52, 60, 91, 100) == scores(owned((4, 3, 2, 1)), a_pod(owner=WEB))


def test_by_default_nodes_without_a_zone_are_spread_all_the_same():
    """They are ranked by what they have: as with nodes alone and three more allowed."""
    nodes = [node(name) for name in "abxy"]

    assert points(44, 66, 77, 100) == scores(owned((4, 3, 2, 1), nodes), a_pod(owner=WEB))


def test_by_default_nodes_without_a_zone_count_as_one():
    """
    Two zones of one node each and a node without: ln 5 for three domains, as upstream has it.

    Nodes 2/1/0, ln 5: 3.22, 1.61, 0 and 2 each; zones 2/1, ln 5: 3.22, 1.61 and 4 each: raw 12, 9, 2.
    """
    on = bench([node("a", "z1"), node("b", "z2"), node("x")], {"a": 2, "b": 1}, a_pod(owner=WEB))

    assert {"a": 16, "b": 41, "x": 100} == scores(on, a_pod(owner=WEB))


def test_by_default_an_empty_zone_is_that_of_nodes_without_one():
    """
    Upstream reads a missing label as an empty one.

    Nodes 0/2, ln 4: 0, 2.77 and 2 each; a is in the empty zone, where the pods of x are counted, too: 2, ln 3 = 1.0986
    for a single zone, and 4; x has none: raw 2 + 2.2 + 4 = 8, 5.
    """
    on = bench([node("a", ""), node("x")], {"x": 2}, a_pod(owner=WEB))

    # least 5, most 8
    assert {"a": 62, "x": 100} == scores(on, a_pod(owner=WEB))


def test_without_any_label_all_nodes_are_as_good():
    on = bench([a_node("a"), a_node("b")], {"a": 3}, a_pod(owner=WEB))

    assert {"a": 100, "b": 100} == scores(on, a_pod(owner=WEB))


def test_a_list_of_defaults_leaves_nodes_out_that_lack_a_label():
    """Unlike the system's: zones 2/0, ln 4: raw 3, 0."""
    constraint = DefaultConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway")
    args = SpreadArgs(defaulting_type="List", default_constraints=(constraint,))
    on = bench([node("a", "z1"), node("b", "z2"), node("x")], {"a": 2}, a_pod(owner=WEB))

    assert {"a": 0, "b": 100, "x": 0} == scores(on, a_pod(owner=WEB), args=args)


@pytest.mark.parametrize(
    ("pod", "args"),
    [
        pytest.param(a_pod(labels={"foo": ""}), None, id="nobody's pod has no default constraints"),
        pytest.param(labelled("foo", owner=WEB, spread=(hard(ZONE),)), None, id="own ones stand instead of them"),
        pytest.param(a_pod(owner=WEB), SpreadArgs(defaulting_type="List"), id="an empty list"),
    ],
)
def test_without_soft_constraints_it_has_nothing_to_say(pod, args):
    assert scores(bench(four(), {"a": 2}), pod, args=args) is None


# ---------------------------------------------------------------------------------------------------------------- facts


def test_it_tells_how_many_pods_are_in_the_domains_of_a_node():
    nodes = four()
    nodes[3] = node("y")
    on = owned((2, 1, 0, 4), nodes)
    plugin, state, pod = on.make(NAME), CycleState(), a_pod(owner=WEB)
    plugin.pre_score(state, pod, on.view)

    assert [
        {HOSTNAME: 2, ZONE: 3},
        {HOSTNAME: 1, ZONE: 3},
        {HOSTNAME: 0, ZONE: 0},
        {HOSTNAME: 4},
    ] == plugin.facts(state, pod, on.view)


# ------------------------------------------------------------------------------------------------------------ logarithms


@pytest.mark.parametrize(
    ("number", "bits"),
    [
        # Recorded from math.Log of Go 1.26 on amd64; for 3, 14, 48, 74 and 176 glibc has another last bit.
        pytest.param(3, 0x3FF193EA7AAD030A, id="3"),
        pytest.param(4, 0x3FF62E42FEFA39EF, id="4"),
        pytest.param(5, 0x3FF9C041F7ED8D33, id="5"),
        pytest.param(6, 0x3FFCAB0BFA2A2002, id="6"),
        pytest.param(14, 0x40051CCA16D7BBA8, id="14"),
        pytest.param(48, 0x400EF8383C50BB74, id="48"),
        pytest.param(74, 0x4011375CD6FCAB1C, id="74"),
        pytest.param(176, 0x4014AE935B3CB89E, id="176"),
        pytest.param(1002, 0x401BA3965D405F5F, id="1002"),
        pytest.param(5002, 0x40210901F6DC84B9, id="5002"),
    ],
)
def test_logarithms_are_those_of_go_to_the_last_bit(number, bits):
    assert bits == struct.unpack("<Q", struct.pack("<d", logarithm(number)))[0]


def test_logarithms_are_logarithms():
    """Within the last two places."""
    for number in range(1, 5000):
        assert logarithm(number) == pytest.approx(math.log(number), rel=4e-16, abs=0)
