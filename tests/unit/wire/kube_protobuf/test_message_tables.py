"""The tables of Kubernetes' messages hold together, and have the numbers that are known by other means."""

import pytest

from lamina.wire.kube_protobuf.message_tables import INLINE, LIST, ProtobufMessage, _messages, find_message

ALL = [message for version in _messages().values() for message in version.values()]


def names_of(message: ProtobufMessage) -> list[str]:
    """The JSON names of a message, with those of inlined messages."""
    names = []
    for one in message.fields.values():
        names += names_of(one.message) if one.shape == INLINE else [one.name]
    return names


def test_every_type_of_every_field_is_known():
    """Parsing looks each of them up."""
    assert all(one.scalar or one.form or one.message for message in ALL for one in message.fields.values())


def test_no_object_has_two_fields_of_one_name():
    assert [] == [message.name for message in ALL if len(names_of(message)) != len(set(names_of(message)))]


def test_version_and_kind_of_an_object_are_text():
    """The envelope's version and kind stand in the same object as the fields."""
    others = [
        message.name
        for message in ALL
        for one in message.fields.values()
        if one.name in ("apiVersion", "kind") and (one.scalar, one.shape) != ("s", 0)
    ]

    assert others == []


def test_only_named_lists_have_a_field_without_a_name():
    nameless = {
        message.name for message in ALL for one in message.fields.values() if not one.name and one.shape != INLINE
    }

    assert {"ExtraValue", "Verbs"} == nameless == {message.name for message in ALL if message.is_list}
    assert all(message.fields[1].shape == LIST for message in ALL if message.is_list)


@pytest.mark.parametrize(
    ("version", "kind", "numbers"),
    [
        pytest.param("v1", "Binding", {1: "metadata", 2: "target"}, id="binding"),
        pytest.param("v1", "Pod", {1: "metadata", 2: "spec", 3: "status"}, id="pod"),
        pytest.param("v1", "PodStatus", {1: "phase", 2: "conditions", 11: "nominatedNodeName"}, id="pod status"),
        pytest.param(
            "v1", "ObjectReference", {1: "kind", 2: "namespace", 3: "name", 4: "uid", 5: "apiVersion"}, id="reference"
        ),
        pytest.param(
            "meta.k8s.io/v1",
            "DeleteOptions",
            {1: "gracePeriodSeconds", 2: "preconditions", 3: "orphanDependents", 4: "propagationPolicy", 5: "dryRun"},
            id="delete options",
        ),
        pytest.param(
            "coordination.k8s.io/v1",
            "LeaseSpec",
            {1: "holderIdentity", 4: "renewTime", 5: "leaseTransitions"},
            id="lease",
        ),
        pytest.param("events.k8s.io/v1", "Event", {7: "reason", 8: "regarding", 10: "note", 11: "type"}, id="event"),
        pytest.param("v1", "Event", {2: "involvedObject", 3: "reason", 4: "message", 9: "type"}, id="core event"),
    ],
)
def test_field_numbers_are_those_of_kubernetes(version, kind, numbers):
    message = find_message(version, kind)

    assert message is not None
    assert numbers == {number: message.fields[number].name for number in numbers}


@pytest.mark.parametrize(
    "kind",
    [
        *("Pod", "Binding", "Event", "PersistentVolume", "PersistentVolumeClaim", "ConfigMap", "Endpoints", "Node"),
        *("Namespace", "Service", "Secret", "Lease", "DeleteOptions", "ResourceClaim", "Eviction", "Deployment"),
        *("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "PriorityClass", "PodDisruptionBudget", "CSINode", "Scale"),
        *("StorageClass", "EndpointSlice", "SubjectAccessReview", "TokenReview", "CSIStorageCapacity", "PodGroup"),
    ],
)
def test_every_kind_that_schedulers_and_controllers_write_has_a_table(kind):
    assert find_message("", kind) is not None
