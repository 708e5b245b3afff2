"""InterPodAffinity: pods that have a node keep others away from where they are."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.pod import Pod, PodTerm
from lamina.model.selectors import LabelSelector, Requirement
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import SKIP
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused

KEPT_AWAY = Refusal("InterPodAffinity", ("node(s) didn't satisfy existing pods anti-affinity rules",))
WEB = LabelSelector((("app", "web"),))
APART = PodTerm("zone", WEB)


def loner(*terms: PodTerm, name: str = "loner", on: str = "", namespace: str = "default") -> Pod:
    """Build a pod that keeps others away."""
    return msgspec.structs.replace(a_pod(name, on=on, namespace=namespace), repels=terms)


def web(name: str = "p1", namespace: str = "default", app: str = "web") -> Pod:
    """Build a pod that is kept away."""
    return a_pod(name, labels={"app": app}, namespace=namespace)


def cluster() -> Bench:
    """Make two nodes in zone a, one in zone b, and one in no zone."""
    return Bench(
        a_node("a1", labels={"zone": "a", "rack": "1"}),
        a_node("a2", labels={"zone": "a"}),
        a_node("b1", labels={"zone": "b", "rack": "1"}),
        a_node("none"),
    )


@pytest.mark.parametrize(
    ("terms", "on", "out"),
    [
        pytest.param([APART], "a1", ["a1", "a2"], id="from its zone"),
        pytest.param([APART], "none", [], id="from no zone when it is in none"),
        pytest.param([PodTerm("rack", WEB)], "a1", ["a1", "b1"], id="from its rack, in whatever zone"),
        pytest.param([APART, PodTerm("rack", WEB)], "a1", ["a1", "a2", "b1"], id="from both"),
        pytest.param([PodTerm("zone", LabelSelector((("app", "db"),)))], "a1", [], id="others"),
        pytest.param([PodTerm("zone", LabelSelector())], "a1", ["a1", "a2"], id="everybody"),
        pytest.param([PodTerm("zone", None)], "a1", [], id="nobody"),
        pytest.param(
            [PodTerm("zone", LabelSelector((), (Requirement("app", "NotIn", ("db",)),)))],
            "a1",
            ["a1", "a2"],
            id="almost all",
        ),
    ],
)
def test_a_placed_pod_keeps_those_it_names_out_of_its_domain(terms, on, out):
    """In upstream's words; evicting it would help."""
    bench = cluster()
    bench.place(on, loner(*terms))
    plugin = bench.make("InterPodAffinity")

    found = {} if SKIP == plugin.pre_filter(CycleState(), web(), bench.view) else refused(bench, plugin, web())

    assert dict.fromkeys(out, KEPT_AWAY) == found


@pytest.mark.parametrize(
    ("more", "namespace", "kept_away"),
    [
        pytest.param({}, "default", True, id="its own namespace"),
        pytest.param({}, "shop", False, id="another namespace"),
        pytest.param({"namespaces": ("shop", "ops")}, "shop", True, id="one of those it names"),
        pytest.param({"namespaces": ("shop", "ops")}, "default", False, id="its own if it names others"),
        pytest.param({"namespace_selector": LabelSelector()}, "shop", True, id="all of them"),
        pytest.param({"namespace_selector": LabelSelector((("team", "a"),))}, "shop", True, id="those with a label"),
        pytest.param({"namespace_selector": LabelSelector((("team", "a"),))}, "ops", False, id="one without the label"),
        pytest.param(
            {"namespace_selector": LabelSelector((("kubernetes.io/metadata.name", "ops"),))},
            "ops",
            True,
            id="by its name",
        ),
        pytest.param(
            {"namespaces": ("ops",), "namespace_selector": LabelSelector((("team", "a"),))}, "ops", True, id="either"
        ),
    ],
)
def test_the_namespaces_that_are_meant_count(more, namespace, kept_away):
    """Those named and those selected; if there are neither, that of the pod whose rule it is."""
    bench = cluster()
    bench.columns.label_namespace("shop", {"team": "a"})
    bench.place("b1", loner(PodTerm("zone", WEB, **more)))

    answer = bench.make("InterPodAffinity").pre_filter(CycleState(), web(namespace=namespace), bench.view)

    assert (None if kept_away else SKIP) == answer


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(ClusterChange(ChangeKind.POD_REMOVED, 0, pod=loner(APART)), True, id="who kept it away left"),
        pytest.param(ClusterChange(ChangeKind.POD_REMOVED, 0, pod=web()), False, id="somebody else left"),
        pytest.param(
            ClusterChange(ChangeKind.POD_REMOVED, 0, pod=loner(APART, namespace="shop")), False, id="elsewhere"
        ),
        pytest.param(ClusterChange(ChangeKind.NODE_LABELS, 0), True, id="a node has other labels"),
        pytest.param(ClusterChange(ChangeKind.NODE_ADDED, 0), True, id="a new node"),
    ],
)
def test_a_pod_is_tried_again_when_it_may_be_let_in(change, want):
    assert want == Bench().make("InterPodAffinity").worth_retrying(web(), change)


def desk() -> LoopHarness:
    """Make a desk with one node in each of two zones."""
    made = LoopHarness(a_loop(["PrioritySort", "InterPodAffinity", "NodeResourcesFit", "DefaultBinder"]))
    made.tell(*(events.NodeSeen(a_node(f"{zone}1", labels={"zone": zone})) for zone in "ab"))
    return made


def test_pods_are_kept_away_as_long_as_somebody_minds():
    """Until the last of them has left."""
    made = desk()
    made.see(loner(APART, name="one", on="a1"), loner(APART, name="two", on="b1"))
    made.see(web())
    assert {
        "p1": "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
    } == made.pending

    made.tell(events.PodGone(loner(name="two").uid))
    made.at(1.0)

    assert {"p1": "b1"} == made.bound


def test_a_rule_that_came_after_a_pod_was_queued_holds_for_it():
    """Two pods were alike until somebody minded one of them, and are decided apart then."""
    made = desk()
    made.loop.take(events.PodSeen(web("other", app="db")), events.PodSeen(web("minded")))
    shapes = {queued.pod.name: queued.shape for queued in made.loop.queue}
    assert shapes["other"] == shapes["minded"]

    made.see(loner(APART, name="one", on="a1"), loner(APART, name="two", on="b1"))

    assert (["other"], ["minded"]) == (list(made.bound), list(made.pending))


def test_pods_that_waited_together_part_when_one_of_them_is_let_in():
    """They were refused for the same rule; another one about one of them came meanwhile."""
    made = desk()
    everybody = PodTerm("zone", LabelSelector())
    made.see(loner(everybody, name="one", on="a1"), loner(everybody, name="two", on="b1"))
    made.see(web("minded"), web("other", app="db"))
    assert 1 == len({queued.shape for queued in made.loop.queue})

    made.see(loner(APART, name="three", on="b1"))
    made.tell(events.PodGone(loner(name="two").uid))
    made.at(1.0)

    assert {"other": "b1"} == made.bound
    assert ["minded"] == [queued.pod.name for queued in made.loop.queue]


def test_a_cluster_without_rules_tells_no_pods_apart():
    """Whatever labels they have: shapes are shared as if there were no such plugin."""
    plugin = cluster().make("InterPodAffinity")

    assert ((), ()) == (plugin.sign(web()), plugin.sign(web(namespace="shop", app="db")))
