"""A scheduler process with an extender of another vendor: a real HTTP server that refuses, scores and binds."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from testbed import Testbed
from tests.integration.extender.capturing import ANSWERS, REFUSED, REFUSED_FOR_GOOD, CapturingExtender
from tests.integration.scheduler.live import Lamina, configuration, install, until

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed()]

WITHIN = 60.0


@pytest.fixture(params=["names", "whole nodes"])
def extended(bed: Testbed, request: pytest.FixtureRequest, monkeypatch) -> Iterator[tuple[Testbed, CapturingExtender]]:
    """A cluster with three nodes, and a scheduler with one extender that also binds."""
    install(bed)
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
        entry.pop("preemptVerb")
        with Lamina(bed, "extended", config=configuration(extenders=[entry])):
            yield bed, extender


def create(bed: Testbed, name: str, **annotations: str) -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"schedulerName": "lamina", "containers": [{"name": "c", "image": "app:1"}]},
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
