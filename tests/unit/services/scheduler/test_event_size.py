"""The size of events: every part that a stranger can make long is counted, wherever it is."""

from typing import Any

import msgspec
import pytest

from lamina.model import events
from lamina.model.layer_report import ActivePull
from lamina.model.node import NodeImage
from lamina.model.pod import Container, PodTerm, PreferredNodes, SpreadConstraint
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import Taint, Toleration
from lamina.services.scheduler.event_size import size_of
from lamina.testing import a_node, a_pod, held

LONG = "x" * 100_000
TERM = NodeSelectorTerm((Requirement("zone", "In", ("a", LONG)),))
SELECTOR = LabelSelector((("app", LONG),))


def pod(**more: Any) -> events.Event:
    return events.PodSeen(msgspec.structs.replace(a_pod("p"), **more))


def node(**more: Any) -> events.Event:
    return events.NodeSeen(msgspec.structs.replace(a_node("n"), **more))


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(pod(annotations={"a": LONG}), id="annotation of a pod"),
        pytest.param(pod(annotations={LONG: "a"}), id="key of an annotation"),
        pytest.param(pod(labels={"a": LONG}), id="label of a pod"),
        pytest.param(pod(containers=(Container(LONG),)), id="image of a container"),
        pytest.param(pod(init_containers=(Container(LONG),)), id="image of an init container"),
        pytest.param(pod(node_selector=(("a", LONG),)), id="node selector"),
        pytest.param(pod(required_nodes=NodeSelector((TERM,))), id="required nodes"),
        pytest.param(pod(preferred_nodes=(PreferredNodes(1, TERM),)), id="preferred nodes"),
        pytest.param(pod(repels=(PodTerm("zone", SELECTOR),)), id="anti-affinity"),
        pytest.param(pod(spread=(SpreadConstraint(1, "zone", selector=SELECTOR),)), id="spread"),
        pytest.param(pod(tolerations=(Toleration(LONG),)), id="toleration"),
        pytest.param(pod(pull_secrets=(LONG,)), id="pull secret"),
        pytest.param(pod(labels={str(number): "" for number in range(1000)}), id="many labels"),
        pytest.param(pod(tolerations=(Toleration(),) * 1000), id="many tolerations"),
        pytest.param(node(annotations={"a": LONG}), id="annotation of a node"),
        pytest.param(node(labels={"a": LONG}), id="label of a node"),
        pytest.param(node(taints=(Taint(LONG),)), id="taint"),
        pytest.param(node(images=(NodeImage((LONG,), 1),)), id="image of a node"),
        pytest.param(events.NamespaceSeen("shop", {"a": LONG}), id="annotation of a namespace"),
        pytest.param(events.NamespaceSeen("shop", {}, {"a": LONG}), id="label of a namespace"),
        pytest.param(
            events.LayersReported(msgspec.structs.replace(held("n"), pulling=(ActivePull("a"),) * 1000)),
            id="many pulls",
        ),
        pytest.param(
            events.LayersReported(msgspec.structs.replace(held("n"), pulling=(ActivePull(LONG),))), id="name of a pull"
        ),
        pytest.param(events.BindFailed(a_pod("p").uid, LONG), id="reason"),
    ],
)
def test_what_is_long_counts(event):
    assert size_of(event) >= 100_000


def test_an_ordinary_pod_counts_little():
    event = pod(labels={"app": "shop", "tier": "front"}, tolerations=(Toleration("a", "Exists"),) * 2)

    assert size_of(event) < 3000
