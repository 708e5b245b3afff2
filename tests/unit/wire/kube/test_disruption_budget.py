"""Disruption budgets: whom they protect, and how many of those may be evicted now."""

import json

import pytest

from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.selectors import LabelSelector
from lamina.wire.errors import WireError
from lamina.wire.kube.disruption_budget import decode_disruption_budget


def budget(**parts):
    return json.dumps({"metadata": {"namespace": "shop", "name": "web"}, **parts}).encode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            budget(
                kind="PodDisruptionBudget",
                spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
                status={"disruptionsAllowed": 2, "disruptedPods": {"a": "2026-01-01T00:00:00Z"}, "currentHealthy": 3},
            ),
            PodDisruptionBudget(
                namespace="shop",
                name="web",
                selector=LabelSelector((("app", "web"),)),
                disruptions_allowed=2,
                disrupted_pods=("a",),
            ),
            id="as the disruption controller leaves it",
        ),
        pytest.param(budget(), PodDisruptionBudget(namespace="shop", name="web"), id="no spec and no status yet"),
        pytest.param(
            budget(spec={"selector": {}}),
            PodDisruptionBudget(namespace="shop", name="web", selector=LabelSelector()),
            id="an empty selector selects all pods",
        ),
        pytest.param(
            budget(spec=None, status=None), PodDisruptionBudget(namespace="shop", name="web"), id="null for both parts"
        ),
    ],
)
def test_a_budget_is_read_with_its_selector_and_its_status(data, expected):
    assert expected == decode_disruption_budget(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "check that a Kubernetes API server sent it", id="nothing"),
        pytest.param(b'{"kind": "Pod"}', "this is a Pod; ask for poddisruptionbudgets", id="a pod"),
        pytest.param(budget(status={"disruptionsAllowed": "1"}), "Expected `int`", id="a text for a number"),
        pytest.param(b'{"spec":' * 100_000, "cannot read PodDisruptionBudget", id="deep"),
    ],
)
def test_another_object_is_refused_in_one_line(data, words):
    with pytest.raises(WireError, match=words) as caught:
        decode_disruption_budget(data)

    assert 1 == len(str(caught.value).splitlines())
