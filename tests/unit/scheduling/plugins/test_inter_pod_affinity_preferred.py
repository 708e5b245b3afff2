"""InterPodAffinity: preferences of the pod and of placed pods, and the scores that follow from them."""

from typing import Any

import msgspec
import numpy as np
import pytest

from lamina.model.pod import Pod, PodTerm, PreferredPods
from lamina.model.selectors import LabelSelector
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import SKIP
from lamina.scheduling.plugins.upstream.inter_pod_affinity.plugin import InterPodAffinityArgs
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench

DB = LabelSelector((("app", "db"),))
WEB = LabelSelector((("app", "web"),))
NODES = ("a1", "a2", "b1", "none")


def pod(name: str = "p1", app: str = "web", **more: Any) -> Pod:
    """Build a pod with a label; *more* are other fields."""
    return msgspec.structs.replace(a_pod(name, labels={"app": app}), **more)


def likes(weight: int, key: str, selector: LabelSelector | None) -> dict[str, Any]:
    """Return a preferred affinity term, as a field of a pod."""
    return {"preferred_pods": (PreferredPods(weight, PodTerm(key, selector)),)}


def avoids(weight: int, key: str, selector: LabelSelector | None) -> dict[str, Any]:
    """Return a preferred anti-affinity term, as a field of a pod."""
    return {"avoided_pods": (PreferredPods(weight, PodTerm(key, selector)),)}


def cluster(*placed: tuple[str, Pod]) -> Bench:
    """Make two nodes in zone a, one in zone b, and one in no zone, with pods on some of them."""
    bench = Bench(
        a_node("a1", labels={"zone": "a", "rack": "1"}),
        a_node("a2", labels={"zone": "a", "rack": "2"}),
        a_node("b1", labels={"zone": "b", "rack": "3"}),
        a_node("none"),
    )
    for node, one in placed:
        bench.place(node, one)
    return bench


def raw(bench: Bench, asked: Pod, **args: Any) -> list[int] | None:
    """Return the raw scores of the nodes; None if the plugin skips the pod."""
    plugin, state = bench.make("InterPodAffinity", InterPodAffinityArgs(**args)), CycleState()
    if plugin.pre_score(state, asked, bench.view) == SKIP:
        return None
    scores: list[int] = plugin.score(state, asked, bench.view).tolist()
    return scores


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        # Zone a has two databases, zone b has one.
        pytest.param(pod(**likes(5, "zone", DB)), [10, 10, 5, 0], id="weight times matching pods of the zone"),
        pytest.param(pod(**avoids(5, "zone", DB)), [-10, -10, -5, 0], id="the same, negative"),
        pytest.param(pod(**likes(5, "rack", DB)), [10, 0, 5, 0], id="by rack"),
        pytest.param(pod(**likes(5, "zone", DB), **avoids(3, "rack", DB)), [4, 10, 2, 0], id="10 - 6, 10, 5 - 3"),
        pytest.param(pod(**likes(5, "zone", WEB)), [0, 0, 0, 0], id="no matching pod"),
        pytest.param(pod(**likes(5, "zone", None)), [0, 0, 0, 0], id="no selector"),
        pytest.param(pod(**likes(5, "disk", DB)), [0, 0, 0, 0], id="a label that no node has"),
        pytest.param(pod(), None, id="no preference: skipped"),
    ],
)
def test_a_node_scores_the_weight_of_a_term_for_each_matching_pod_in_its_domain(asked, want):
    bench = cluster(("a1", pod("d1", "db")), ("a1", pod("d2", "db", deleting=True)), ("b1", pod("d3", "db")))

    assert want == raw(bench, asked)


@pytest.mark.parametrize(
    ("placed", "args", "want"),
    [
        pytest.param(likes(5, "zone", WEB), {}, [5, 5, 0, 0], id="preferred affinity"),
        pytest.param(avoids(5, "zone", WEB), {}, [-5, -5, 0, 0], id="preferred anti-affinity"),
        pytest.param({"required_pods": (PodTerm("zone", WEB),)}, {}, [1, 1, 0, 0], id="required affinity counts 1"),
        pytest.param(
            {"required_pods": (PodTerm("zone", WEB),)},
            {"hard_pod_affinity_weight": 30},
            [30, 30, 0, 0],
            id="required affinity with a weight",
        ),
        pytest.param(
            {"required_pods": (PodTerm("zone", WEB),)}, {"hard_pod_affinity_weight": 0}, None, id="with weight 0"
        ),
        pytest.param({"repels": (PodTerm("zone", WEB),)}, {}, None, id="required anti-affinity does not score"),
        pytest.param(likes(5, "zone", DB), {}, None, id="about other pods"),
        pytest.param(
            likes(5, "zone", WEB), {"ignore_preferred_terms_of_existing_pods": True}, None, id="ignored on request"
        ),
        pytest.param(
            {"required_pods": (PodTerm("zone", WEB),)},
            {"ignore_preferred_terms_of_existing_pods": True},
            None,
            id="required affinity too",
        ),
    ],
)
def test_preferences_of_placed_pods_score_for_a_pod_without_any(placed, args, want):
    assert want == raw(cluster(("a1", pod("old", "db", **placed))), pod(), **args)


def test_preferences_of_placed_pods_are_not_ignored_for_a_pod_with_preferences():
    """As upstream: the argument only concerns pods without preferences."""
    bench = cluster(("a1", pod("old", "db", **likes(5, "zone", WEB))))

    assert [5, 5, 0, 0] == raw(bench, pod(**likes(1, "rack", WEB)), ignore_preferred_terms_of_existing_pods=True)


@pytest.mark.parametrize(
    ("scores", "feasible", "want"),
    [
        pytest.param([0, 29, 100], [1, 1, 1], [0, 28, 100], id="100 · (29 / 100) = 28.999… is rounded down"),
        pytest.param([-10, 0, 10], [1, 1, 1], [0, 50, 100], id="from the least to the most"),
        pytest.param([5, 5, 5], [1, 1, 1], [0, 0, 0], id="no difference"),
        pytest.param([-5, -5, 9], [1, 1, 0], [0, 0, None], id="no difference among feasible nodes"),
        pytest.param([3, 5, 900], [1, 1, 0], [0, 100, None], id="only feasible nodes count"),
    ],
)
def test_scores_are_stretched_from_0_to_100(scores, feasible, want):
    plugin = cluster().make("InterPodAffinity")

    answer = plugin.normalize(CycleState(), pod(), np.array(scores), np.array(feasible, dtype=np.bool_))

    assert want == [one if fits else None for one, fits in zip(answer.tolist(), feasible, strict=True)]
    assert all(0 <= one <= 100 for one in answer.tolist())


def test_pods_that_placed_pods_treat_alike_share_a_signature():
    """Labels matter only as far as a term is about them."""
    plugin = cluster(("a1", pod("old", "db", **likes(5, "zone", WEB)))).make("InterPodAffinity")

    assert plugin.sign(pod("one", "web")) == plugin.sign(pod("two", "web"))
    assert plugin.sign(pod("one", "web")) != plugin.sign(pod("two", "cache"))
    assert plugin.sign(pod("one", "web")) != plugin.sign(pod("two", "web", **likes(5, "zone", WEB)))
