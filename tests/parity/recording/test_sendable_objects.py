"""What a client sends to an API server for the objects of a case, and which cases it cannot store."""

import pytest

from tests.parity.case_clusters import GPU, HUGE
from tests.parity.case_files import ParityCase
from tests.parity.case_objects import ZONE, KubeJson, container_object, expression, node_object, pod_object
from tests.parity.recording.sendable_objects import path_of, refused, sendable, with_uids

PLAIN = pod_object("p", [container_object("c0", {"cpu": "1"})])
PORT = {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}


def case(pod: KubeJson = PLAIN, **objects: list[KubeJson]) -> ParityCase:
    return ParityCase("family", 1, [node_object("n0", {"cpu": "2"}, {})], [], pod, objects)


def spread(labels: dict[str, str], selector: KubeJson) -> KubeJson:
    constraint = {"topologyKey": ZONE, "matchLabelKeys": ["hash"], "labelSelector": selector}
    return pod_object("p", [container_object("c0", {})], labels=labels, topologySpreadConstraints=[constraint])


def volume(zone: str) -> KubeJson:
    return {"metadata": {"name": "v", "labels": {ZONE: zone}}, "spec": {}}


@pytest.mark.parametrize(
    ("resource", "namespace", "path"),
    [
        pytest.param("nodes", "", "/api/v1/nodes", id="of the cluster"),
        pytest.param("pods", "other", "/api/v1/namespaces/other/pods", id="of a namespace"),
        pytest.param("csinodes", "", "/apis/storage.k8s.io/v1/csinodes", id="of a group"),
    ],
)
def test_the_path_has_version_and_namespace(resource, namespace, path):
    metadata = {"name": "a", **({"namespace": namespace} if namespace else {})}

    assert path == path_of(resource, {"metadata": metadata})


def test_metadata_that_the_server_writes_is_left_out():
    leaving = {**PLAIN, "metadata": {**PLAIN["metadata"], "deletionTimestamp": "2026-01-01T02:00:00Z"}}

    assert {"name": "p", "namespace": "default"} == sendable("pods", leaving)["metadata"]


def test_resources_that_cannot_be_overcommitted_get_limits():
    pod = pod_object("p", [container_object("c0", {"cpu": "1", GPU: "2"})])

    resources = sendable("pods", pod)["spec"]["containers"][0]["resources"]

    assert {"requests": {"cpu": "1", GPU: "2"}, "limits": {GPU: "2"}} == resources


def test_references_get_the_uids_of_the_server():
    reference = {"spec": {"claimRef": {"name": "c", "uid": "uid-c"}, "other": [{"uid": "uid-d"}]}}

    found = with_uids(reference, {"uid-c": "7"})

    assert {"spec": {"claimRef": {"name": "c", "uid": "7"}, "other": [{"uid": "uid-d"}]}} == found


@pytest.mark.parametrize(
    ("impossible", "words"),
    [
        pytest.param(case(persistentvolumes=[volume("a __ b")]), "label of a volume", id="label with spaces"),
        pytest.param(
            case(spread({"hash": "1"}, {"matchLabels": {"hash": "1"}})),
            "matchLabelKeys",
            id="a key that is given twice",
        ),
        pytest.param(
            case(pod_object("p", [container_object("c0", {}, ports=[PORT, PORT])])), "same port", id="port twice"
        ),
        pytest.param(case(pod_object("p", [container_object("c0", {HUGE: "2Mi"})])), "huge pages", id="huge pages"),
    ],
)
def test_what_an_api_server_refuses_is_known(impossible, words):
    assert words in refused(impossible)


@pytest.mark.parametrize(
    "possible",
    [
        pytest.param(case(persistentvolumes=[volume("a__b")]), id="label with zones"),
        pytest.param(case(persistentvolumes=[volume("")]), id="empty label"),
        pytest.param(case(spread({}, {"matchExpressions": [expression("hash", "Exists")]})), id="without the label"),
        pytest.param(
            case(pod_object("p", [container_object("c0", {}, ports=[PORT, {**PORT, "protocol": "UDP"}])])),
            id="two protocols",
        ),
        pytest.param(
            case(pod_object("p", [container_object("c0", {"cpu": "1", HUGE: "2Mi"})])), id="huge pages and CPU"
        ),
    ],
)
def test_what_an_api_server_accepts_is_not_refused(possible):
    assert "" == refused(possible)
