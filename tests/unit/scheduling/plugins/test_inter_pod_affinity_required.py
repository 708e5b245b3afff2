"""InterPodAffinity: required affinity and anti-affinity of the pod itself."""

from typing import Any

import msgspec
import pytest

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.pod import Pod, PodTerm
from lamina.model.selectors import LabelSelector
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import SKIP
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.hypothesis import as_if
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused

NOT_NEAR = Refusal("InterPodAffinity", ("node(s) didn't match pod affinity rules",), final=True)
NOT_APART = Refusal("InterPodAffinity", ("node(s) didn't match pod anti-affinity rules",))
KEPT_AWAY = Refusal("InterPodAffinity", ("node(s) didn't satisfy existing pods anti-affinity rules",))
DB = LabelSelector((("app", "db"),))
WEB = LabelSelector((("app", "web"),))
NODES = ("a1", "a2", "b1", "none")


def pod(name: str = "p1", app: str = "web", *, on: str = "", namespace: str = "default", **more: Any) -> Pod:
    """Build a pod with a label; *more* are other fields."""
    made = a_pod(name, labels={"app": app}, on=on, namespace=namespace)
    return msgspec.structs.replace(made, **more)


def cluster(**placed: Pod) -> Bench:
    """Make two nodes in zone a, one in zone b, and one in no zone, with a pod on some of them."""
    bench = Bench(
        a_node("a1", labels={"zone": "a", "rack": "1"}),
        a_node("a2", labels={"zone": "a"}),
        a_node("b1", labels={"zone": "b", "rack": "1"}),
        a_node("none"),
    )
    for node, one in placed.items():
        bench.place(node, one)
    return bench


@pytest.mark.parametrize(
    ("terms", "placed", "fits"),
    [
        pytest.param([PodTerm("zone", DB)], {"a1": "db"}, ["a1", "a2"], id="the zone of a matching pod"),
        pytest.param([PodTerm("zone", DB)], {"none": "db"}, [], id="a matching pod in no zone"),
        pytest.param([PodTerm("zone", DB)], {"a1": "web"}, [], id="no matching pod"),
        pytest.param([PodTerm("zone", None)], {"a1": "db"}, [], id="no selector matches no pod"),
        pytest.param([PodTerm("zone", LabelSelector())], {"b1": "db"}, ["b1"], id="an empty selector matches all"),
        pytest.param([PodTerm("zone", DB), PodTerm("rack", DB)], {"a1": "db"}, ["a1"], id="all topologies"),
        pytest.param(
            [PodTerm("zone", DB), PodTerm("zone", WEB)],
            {"a1": "db", "a2": "web"},
            [],
            id="all terms must match the same pod",
        ),
        pytest.param(
            # Zone a has a matching pod and rack 1 another one.
            [PodTerm("zone", DB), PodTerm("rack", DB)],
            {"a2": "db", "b1": "db"},
            ["a1", "b1"],
            id="different pods in different topologies",
        ),
    ],
)
def test_required_affinity_needs_a_matching_pod_in_every_domain(terms, placed, fits):
    """Other nodes are refused; preemption would not help."""
    bench = cluster(**{node: pod(f"on {node}", app) for node, app in placed.items()})

    found = refused(bench, bench.make("InterPodAffinity"), pod(required_pods=tuple(terms)))

    assert {node: NOT_NEAR for node in NODES if node not in fits} == found


@pytest.mark.parametrize(
    ("terms", "placed", "fits"),
    [
        pytest.param([PodTerm("zone", WEB)], {}, ["a1", "a2", "b1"], id="nodes that have the label"),
        pytest.param([PodTerm("zone", WEB), PodTerm("rack", WEB)], {}, ["a1", "b1"], id="nodes that have all labels"),
        pytest.param([PodTerm("zone", WEB), PodTerm("zone", DB)], {}, [], id="not if it does not match all its terms"),
        pytest.param([PodTerm("zone", WEB)], {"b1": "web"}, ["b1"], id="not if there is one"),
        pytest.param([PodTerm("zone", WEB)], {"none": "web"}, ["a1", "a2", "b1"], id="one outside of every zone"),
        pytest.param([PodTerm("zone", WEB, ("shop",))], {}, [], id="not if its terms mean another namespace"),
    ],
)
def test_the_first_pod_of_a_group_goes_anywhere(terms, placed, fits):
    """If no pod matches its terms and it matches them itself."""
    bench = cluster(**{node: pod(f"on {node}", app) for node, app in placed.items()})

    found = refused(bench, bench.make("InterPodAffinity"), pod(required_pods=tuple(terms)))

    assert {node: NOT_NEAR for node in NODES if node not in fits} == found


@pytest.mark.parametrize(
    ("terms", "placed", "out"),
    [
        pytest.param([PodTerm("zone", DB)], {"a1": "db"}, ["a1", "a2"], id="its zone"),
        pytest.param([PodTerm("zone", DB)], {"none": "db"}, [], id="no zone"),
        pytest.param([PodTerm("zone", DB), PodTerm("rack", WEB)], {"a2": "db"}, ["a1", "a2"], id="one term suffices"),
        pytest.param([PodTerm("rack", WEB)], {"a1": "web"}, ["a1", "b1"], id="its rack"),
        pytest.param([PodTerm("zone", None)], {"a1": "db"}, [], id="no selector"),
    ],
)
def test_required_anti_affinity_closes_the_domains_of_matching_pods(terms, placed, out):
    """Evicting them would help."""
    bench = cluster(**{node: pod(f"on {node}", app) for node, app in placed.items()})

    assert dict.fromkeys(out, NOT_APART) == refused(bench, bench.make("InterPodAffinity"), pod(repels=tuple(terms)))


def test_the_first_of_several_reasons_is_given():
    """Affinity, then the pod's anti-affinity, then that of placed pods: as upstream checks them."""
    bench = cluster(
        a1=pod("one", "db", repels=(PodTerm("zone", WEB),)), b1=pod("two", "cache", repels=(PodTerm("zone", WEB),))
    )
    plugin = bench.make("InterPodAffinity")
    asked = pod(required_pods=(PodTerm("zone", LabelSelector()),), repels=(PodTerm("zone", DB),))

    assert {"a1": NOT_APART, "a2": NOT_APART, "b1": KEPT_AWAY, "none": NOT_NEAR} == refused(bench, plugin, asked)


def test_a_pod_that_is_being_deleted_counts_until_it_is_gone():
    """Unlike for spread constraints."""
    leaving = pod("old", "db", deleting=True)
    bench = cluster(a1=leaving)
    plugin, asked = bench.make("InterPodAffinity"), pod(repels=(PodTerm("zone", DB),))
    assert ["a1", "a2"] == list(refused(bench, plugin, asked))

    bench.columns.release(0, leaving)

    assert {} == refused(bench, plugin, asked)


@pytest.mark.parametrize(
    ("gone", "there", "out"),
    [
        pytest.param([], [], ["a1", "a2", "b1", "none"], id="as it is"),
        pytest.param(["enemy"], [], ["b1", "none"], id="without the pod that it avoids"),
        pytest.param(["enemy", "friend"], [], ["a1", "a2", "b1", "none"], id="without the pod that it needs"),
        pytest.param(["enemy"], [("b1", "friend")], ["none"], id="with another pod that it needs"),
        pytest.param([], [("b1", "friend")], ["a1", "a2", "none"], id="with one where no pod is avoided"),
    ],
)
def test_pods_that_would_be_gone_or_present_change_the_answer(gone, there, out):
    """Preemption and nominations ask for it."""
    friend, enemy = pod("friend", "cache"), pod("enemy", "db")
    bench = cluster(a1=friend, a2=enemy)
    placed = {"friend": (0, friend), "enemy": (1, enemy)}
    asked = pod(required_pods=(PodTerm("zone", LabelSelector((("app", "cache"),))),), repels=(PodTerm("zone", DB),))
    supposed = as_if(
        bench.columns,
        gone=[placed[name] for name in gone],
        there=[(bench.columns.rows[node], pod("more", "cache")) for node, _ in there],
    )
    plugin, state = bench.make("InterPodAffinity"), CycleState()

    assert plugin.pre_filter(state, asked, supposed.view()) is None
    verdicts = plugin.filter(state, asked, supposed.view())

    codes = [0] * len(NODES) if verdicts is None else verdicts.codes.tolist()
    assert out == [node for node, code in zip(NODES, codes, strict=True) if code]


def test_a_pod_without_terms_in_a_cluster_without_terms_is_skipped():
    bench = cluster(a1=pod("old", "db"))
    plugin = bench.make("InterPodAffinity")

    assert (SKIP, SKIP) == (
        plugin.pre_filter(CycleState(), pod(), bench.view),
        plugin.pre_score(CycleState(), pod(), bench.view),
    )


NEAR_DB = pod(required_pods=(PodTerm("zone", DB),))
NEAR_WEB = pod(required_pods=(PodTerm("zone", WEB),))
APART_FROM_DB = pod(repels=(PodTerm("zone", DB),))


@pytest.mark.parametrize(
    ("waiting", "kind", "other", "want"),
    [
        pytest.param(NEAR_DB, ChangeKind.POD_PLACED, pod("new", "db"), True, id="a pod it needs arrived"),
        pytest.param(NEAR_DB, ChangeKind.POD_PLACED, pod("new", "web"), False, id="another pod arrived"),
        pytest.param(NEAR_DB, ChangeKind.POD_PLACED, pod("new", "db", namespace="shop"), False, id="elsewhere"),
        pytest.param(NEAR_DB, ChangeKind.POD_REMOVED, pod("old", "db"), False, id="a pod it needs left"),
        pytest.param(NEAR_WEB, ChangeKind.POD_REMOVED, pod("old", "web"), True, id="now it may be the first"),
        pytest.param(APART_FROM_DB, ChangeKind.POD_REMOVED, pod("old", "db"), True, id="a pod it avoids left"),
        pytest.param(APART_FROM_DB, ChangeKind.POD_REMOVED, pod("old", "web"), False, id="another pod left"),
        pytest.param(APART_FROM_DB, ChangeKind.POD_PLACED, pod("new", "db"), False, id="a pod it avoids arrived"),
        pytest.param(NEAR_DB, ChangeKind.NODE_REMOVED, None, True, id="a node left"),
        pytest.param(NEAR_DB, ChangeKind.NAMESPACE_LABELS, None, True, id="a namespace has other labels"),
    ],
)
def test_a_refused_pod_is_retried_when_a_term_of_it_may_be_met(waiting, kind, other, want):
    plugin = cluster().make("InterPodAffinity")

    assert want == plugin.worth_retrying(waiting, ClusterChange(kind, 0, pod=other))


def harness(*placed: Pod) -> LoopHarness:
    """Make a loop with one node in each of two zones."""
    made = LoopHarness(a_loop(["PrioritySort", "InterPodAffinity", "NodeResourcesFit", "DefaultBinder"]))
    made.tell(*(events.NodeSeen(a_node(f"{zone}1", labels={"zone": zone})) for zone in "ab"))
    made.see(*placed)
    return made


NS_TERM = PodTerm("zone", DB, (), LabelSelector((("team", "a"),)))


@pytest.mark.parametrize(
    ("placed", "waiting", "change", "on"),
    [
        pytest.param([], NEAR_DB, events.PodSeen(pod("new", "db", on="b1")), "b1", id="a pod it needs arrives"),
        pytest.param(
            [pod("old", "web", on="b1")],
            NEAR_DB,
            events.PodSeen(pod("old", "db", on="b1")),
            "b1",
            id="a placed pod gets the label",
        ),
        pytest.param(
            [pod("one", "db", on="a1"), pod("two", "db", on="b1")],
            APART_FROM_DB,
            events.PodGone(pod("two").uid),
            "b1",
            id="a pod it avoids leaves",
        ),
        pytest.param(
            [pod("one", "db", on="a1"), pod("two", "db", on="b1")],
            APART_FROM_DB,
            events.PodSeen(pod("two", "web", on="b1")),
            "b1",
            id="a pod it avoids loses the label",
        ),
        pytest.param(
            [pod("one", "db", on="a1"), pod("two", "db", on="b1")],
            APART_FROM_DB,
            events.NodeSeen(a_node("b1", labels={"zone": "c"})),
            "",
            id="its node moves to another zone",
        ),
        pytest.param(
            [pod("one", "db", on="a1"), pod("two", "db", on="b1")],
            APART_FROM_DB,
            events.NodeSeen(a_node("c1", labels={"zone": "c"})),
            "c1",
            id="a node in another zone is added",
        ),
        pytest.param(
            [pod("far", "db", on="a1", namespace="shop")],
            pod(required_pods=(NS_TERM,)),
            events.NamespaceSeen("shop", {}, {"team": "a"}),
            "a1",
            id="a namespace gets the label",
        ),
    ],
)
def test_a_waiting_pod_is_placed_after_its_back_off_when_a_change_makes_it_fit(placed, waiting, change, on):
    made = harness(*placed)
    made.see(waiting)
    assert ["p1"] == list(made.pending)

    made.tell(change)
    made.at(1.0)

    assert on == made.bound.get("p1", "")


def test_a_pod_that_needs_its_own_group_starts_it_when_the_last_one_left():
    """The group was on a node without room for another pod."""
    made = LoopHarness(a_loop(["PrioritySort", "InterPodAffinity", "NodeResourcesFit", "DefaultBinder"]))
    made.tell(
        events.NodeSeen(a_node("a1", cpu=1, labels={"zone": "a"})),
        events.NodeSeen(a_node("b1", cpu=4, labels={"zone": "b"})),
    )
    group = msgspec.structs.replace(
        a_pod("old", cpu=1, labels={"app": "web"}, on="a1"), required_pods=(PodTerm("zone", WEB),)
    )
    made.see(group)
    made.see(msgspec.structs.replace(a_pod("p1", cpu=2, labels={"app": "web"}), required_pods=(PodTerm("zone", WEB),)))
    assert ["p1"] == list(made.pending)

    made.tell(events.PodGone(group.uid))
    made.at(1.0)

    assert {"p1": "b1"} == made.bound


def test_pods_of_a_group_follow_the_first_one():
    """The first goes anywhere; the others find it where it was assumed."""
    made = harness()
    made.see(*(pod(f"p{number}", required_pods=(PodTerm("zone", WEB),)) for number in range(4)))

    assert 1 == len(set(made.bound.values()))
    assert 4 == len(made.bound)
