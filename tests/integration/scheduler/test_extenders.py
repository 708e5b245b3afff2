"""A scheduler process with an extender of another vendor: a real HTTP server that refuses, scores, preempts and binds."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from testbed import Testbed
from tests.integration.extender.capturing import ANSWERS, REFUSED, REFUSED_FOR_GOOD, CapturingExtender
from tests.integration.scheduler.live import DEPLOY, Lamina, configuration, install, until

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed()]

WITHIN = 60.0


@pytest.fixture(params=["names", "whole nodes"])
def extended(bed: Testbed, request: pytest.FixtureRequest, monkeypatch) -> Iterator[tuple[Testbed, CapturingExtender]]:
    """A cluster with three nodes, and a scheduler with one extender that also binds."""
    install(bed)
    bed.kubectl("apply", "-f", str(DEPLOY / "rbac" / "optional" / "scheduler-preemption.yaml"))
    bed.add_nodes({"name": f"n{number}", "cpu": "8"} for number in range(1, 4))

    def bind(body: bytes) -> bytes:
        asked = json.loads(body)
        path = f"/api/v1/namespaces/{asked['PodNamespace']}/pods/{asked['PodName']}/binding"
        target = {"apiVersion": "v1", "kind": "Node", "name": asked["Node"]}
        metadata = {"name": asked["PodName"], "uid": asked["PodUID"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        # A connection of its own: the extender answers in a thread.
        with contextlib.closing(bed.site.requests()) as requests:
            requests.send("POST", path, binding)
        return b'{"Error":""}'

    monkeypatch.setitem(ANSWERS, "bind", bind)
    with CapturingExtender() as extender:
        entry = {**extender.entry(names=request.param == "names"), "bindVerb": "bind"}
        with Lamina(bed, "extended", config=configuration(extenders=[entry])):
            yield bed, extender


def create(bed: Testbed, name: str, *, cpu: str = "0", priority: str = "", **annotations: str) -> None:
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    # Without a grace period, because no kubelet ends it.
    spec = {"schedulerName": "lamina", "containers": [container], "terminationGracePeriodSeconds": 0}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {**spec, "priorityClassName": priority} if priority else spec,
    }
    bed.api("POST", "/api/v1/namespaces/default/pods", pod)


def pod(bed: Testbed, name: str) -> dict[str, Any]:
    found: dict[str, Any] = bed.api("GET", f"/api/v1/namespaces/default/pods/{name}")
    return found


def message(bed: Testbed, name: str) -> str:
    conditions = pod(bed, name).get("status", {}).get("conditions", [])
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def node_of(bed: Testbed, name: str) -> str:
    return str(pod(bed, name)["spec"].get("nodeName", ""))


def test_an_extender_refuses_scores_and_binds(extended):
    bed, extender = extended
    create(bed, "picky", refuse="n1", prefer="n3")
    until(lambda: node_of(bed, "picky") != "", WITHIN, "the pod is bound")

    assert "n3" == node_of(bed, "picky")
    assert ["picky"] == [json.loads(one.body)["PodName"] for one in extender.calls if one.verb == "bind"]
    (call,) = extender.about("filter", "picky")
    assert "containers" in json.loads(call.body)["Pod"]["spec"]

    create(bed, "hopeless", **{"refuse": "n1,n2", "refuse-for-good": "n3"})
    want = f"0/3 nodes are available: 1 {REFUSED_FOR_GOOD}, 2 {REFUSED}."
    # What preemption has to say comes after it.
    until(lambda: message(bed, "hopeless").startswith(want), WITHIN, "the condition has the extender's reasons")
    assert "" == node_of(bed, "hopeless")


def test_an_error_of_the_extender_is_the_pods_condition(extended):
    bed, _ = extended
    create(bed, "broken", **{"break": "yes"})

    until(lambda: "the pod asked for it" in message(bed, "broken"), WITHIN, "the condition has the error")


def test_only_pods_that_the_extender_allows_are_evicted(extended):
    bed, extender = extended
    for number in range(1, 4):
        create(bed, f"low-{number}", cpu="8", refuse=",".join({"n1", "n2", "n3"} - {f"n{number}"}))
    until(lambda: all(node_of(bed, f"low-{number}") for number in range(1, 4)), WITHIN, "the nodes are full")

    create(bed, "high", cpu="8", priority="system-cluster-critical", spare="n1,n2")
    until(lambda: node_of(bed, "high") != "", WITHIN, "the pod is bound")

    assert "n3" == node_of(bed, "high")
    left = [one["metadata"]["name"] for one in bed.api("GET", "/api/v1/namespaces/default/pods")["items"]]
    assert ["high", "low-1", "low-2"] == sorted(left)
    question = json.loads(extender.about("preempt", "high")[0].body)
    asked = question["NodeNameToVictims"] or question["NodeNameToMetaVictims"]
    assert {"n1", "n2", "n3"} == set(asked)

    create(bed, "higher", cpu="8", priority="system-cluster-critical", spare="n1,n2,n3")
    want = "0/3 nodes are available: 3 Insufficient cpu. preemption: no candidate node for preemption"
    until(lambda: message(bed, "higher") == want, WITHIN, "the condition says that no node is left")
