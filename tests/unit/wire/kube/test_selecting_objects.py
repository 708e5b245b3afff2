"""Services and controllers: the pods that they select, and nothing else of them."""

import json

import pytest

from lamina.model.pod import Owner
from lamina.model.selecting_objects import ReplicaSet, ReplicationController, Service, StatefulSet
from lamina.model.selectors import LabelSelector, Requirement
from lamina.wire.errors import WireError
from lamina.wire.kube.selecting_objects import (
    decode_replica_set,
    decode_replication_controller,
    decode_service,
    decode_stateful_set,
)

AB = LabelSelector((("app", "web"), ("tier", "front")))
LABELS = {"tier": "front", "app": "web"}


def written(**parts):
    return json.dumps({"metadata": {"namespace": "shop", "name": "web"}, **parts}).encode()


@pytest.mark.parametrize(
    ("decode", "kind"),
    [
        pytest.param(decode_service, Service, id="Service"),
        pytest.param(decode_replication_controller, ReplicationController, id="ReplicationController"),
    ],
)
@pytest.mark.parametrize(
    ("spec", "selector"),
    [
        pytest.param({"selector": LABELS, "ports": [{"port": 80}]}, AB, id="labels, in the order of their keys"),
        pytest.param({"selector": {}}, LabelSelector(), id="an empty selector"),
        pytest.param({"selector": None}, None, id="null"),
        pytest.param({}, None, id="no selector"),
        pytest.param(None, None, id="no spec"),
    ],
)
def test_a_set_of_labels_is_read_as_a_selector(decode, kind, spec, selector):
    assert kind(namespace="shop", name="web", selector=selector) == decode(written(spec=spec))


@pytest.mark.parametrize(
    ("decode", "kind"),
    [
        pytest.param(decode_replica_set, ReplicaSet, id="ReplicaSet"),
        pytest.param(decode_stateful_set, StatefulSet, id="StatefulSet"),
    ],
)
@pytest.mark.parametrize(
    ("spec", "selector"),
    [
        pytest.param({"selector": {"matchLabels": {"app": "web"}}}, LabelSelector((("app", "web"),)), id="labels"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}},
            LabelSelector((), (Requirement("app", "In", ("a", "b")),)),
            id="expressions",
        ),
        pytest.param({"selector": {}}, LabelSelector(), id="an empty selector"),
        pytest.param({"minReadySeconds": 3}, None, id="no selector"),
        pytest.param(None, None, id="no spec"),
    ],
)
def test_a_label_selector_is_read(decode, kind, spec, selector):
    assert kind(namespace="shop", name="web", selector=selector) == decode(written(spec=spec, status={"replicas": 3}))


def test_a_status_changes_nothing():
    """Controllers write it often; the scheduler must not notice."""
    spec = {"selector": {"matchLabels": {"app": "web"}}}

    assert decode_replica_set(written(spec=spec)) == decode_replica_set(written(spec=spec, status={"replicas": 4}))


@pytest.mark.parametrize(
    ("decode", "data", "words"),
    [
        pytest.param(decode_service, b"", "check that a Kubernetes API server sent it", id="nothing"),
        pytest.param(decode_service, b'{"kind": "Pod"}', "this is a Pod; ask for services", id="a pod"),
        pytest.param(decode_stateful_set, b'{"kind": "Job"}', "this is a Job; ask for statefulsets", id="a job"),
        pytest.param(decode_replica_set, written(spec={"selector": "app"}), "Expected `object", id="a text"),
        pytest.param(decode_service, b'{"spec":' * 100_000, "cannot read Service", id="deep"),
    ],
)
def test_another_object_is_refused_in_one_line(decode, data, words):
    with pytest.raises(WireError, match=words) as caught:
        decode(data)

    assert 1 == len(str(caught.value).splitlines())


OWNED = {
    "ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "u", "apiVersion": "apps/v1", "controller": True}]
}


@pytest.mark.parametrize("decode", [decode_replication_controller, decode_replica_set, decode_stateful_set])
def test_the_number_of_pods_and_the_owner_are_read(decode):
    kind = {decode_replication_controller: "ReplicationController", decode_replica_set: "ReplicaSet"}.get(decode)
    found = decode(
        json.dumps(
            {"kind": kind, "metadata": {"namespace": "shop", "name": "web-1", **OWNED}, "spec": {"replicas": 3}}
        ).encode()
    )

    assert (found.replicas, found.owner) == (3, Owner("Deployment", "web", "u", "apps/v1"))
