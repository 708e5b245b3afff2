"""Claims, volumes and storage classes from Kubernetes JSON."""

import json

import pytest

from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.volumes import (
    ClaimRef,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DriverLimit,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from lamina.wire.errors import WireError
from lamina.wire.kube import storage_classes as classes
from lamina.wire.kube.storage_objects import decode_claim, decode_volume

DECODERS = {
    "PersistentVolumeClaim": decode_claim,
    "PersistentVolume": decode_volume,
    "StorageClass": classes.decode_storage_class,
    "CSINode": classes.decode_csi_node,
    "CSIDriver": classes.decode_csi_driver,
    "CSIStorageCapacity": classes.decode_storage_capacity,
    "VolumeAttachment": classes.decode_volume_attachment,
}


def read(kind: str, /, **parts: object) -> object:
    return DECODERS[kind](json.dumps({"kind": kind, "metadata": {"name": "x"}, **parts}).encode())


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        pytest.param({"spec": None, "status": None}, {}, id="nothing yet"),
        pytest.param(
            {
                "metadata": {
                    "name": "x",
                    "namespace": "shop",
                    "uid": "u",
                    "deletionTimestamp": "2026-01-01T00:00:00Z",
                    "annotations": {
                        "volume.kubernetes.io/selected-node": "n1",
                        "pv.kubernetes.io/bind-completed": "yes",
                    },
                    "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "p1", "controller": True}],
                },
                "spec": {
                    "accessModes": ["ReadWriteOncePod"],
                    "storageClassName": "slow",
                    "volumeName": "v1",
                    "volumeMode": "Block",
                    "volumeAttributesClassName": "gold",
                    "selector": {"matchLabels": {"a": "b"}},
                    "resources": {"requests": {"storage": "1Gi"}},
                },
                "status": {"phase": "Bound"},
            },
            {
                "namespace": "shop",
                "uid": "u",
                "access_modes": ("ReadWriteOncePod",),
                "class_name": "slow",
                "volume_name": "v1",
                "phase": "Bound",
                "size": 2**30,
                "selected_node": "n1",
                "completed": True,
                "deleting": True,
                "selector": LabelSelector((("a", "b"),)),
                "volume_mode": "Block",
                "attributes_class": "gold",
                "owner_uid": "p1",
            },
            id="everything",
        ),
        pytest.param(
            {
                "metadata": {"name": "x", "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
                "spec": {"storageClassName": "new"},
            },
            {"class_name": "old"},
            id="the annotation that preceded the class wins",
        ),
    ],
)
def test_a_claim_is_read(parts, want):
    assert PersistentVolumeClaim(**{"namespace": "default", "name": "x", **want}) == read(
        "PersistentVolumeClaim", **parts
    )


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        pytest.param({"spec": None}, {}, id="nothing"),
        pytest.param(
            {
                "metadata": {"name": "x", "labels": {"topology.kubernetes.io/zone": "z"}},
                "spec": {
                    "capacity": {"storage": "2k"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "slow",
                    "claimRef": {"namespace": "shop", "name": "data", "uid": None},
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "host", "operator": "In", "values": ["a"]}]}
                            ]
                        }
                    },
                    "csi": {"driver": "disks.example", "volumeHandle": "h"},
                },
                "status": {"phase": "Available"},
            },
            {
                "size": 2000,
                "access_modes": ("ReadWriteOnce",),
                "class_name": "slow",
                "claim": ClaimRef("shop", "data"),
                "affinity": NodeSelector((NodeSelectorTerm((Requirement("host", "In", ("a",)),)),)),
                "labels": {"topology.kubernetes.io/zone": "z"},
                "phase": "Available",
                "driver": "disks.example",
                "handle": "h",
            },
            id="everything",
        ),
        pytest.param(
            {"spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}},
            {"driver": "ebs.csi.aws.com", "handle": "vol-1", "migrated": True},
            id="a disk that precedes CSI",
        ),
        pytest.param({"spec": {"nodeAffinity": {"required": None}}}, {}, id="an affinity without a condition"),
    ],
)
def test_a_volume_is_read(parts, want):
    assert PersistentVolume(**{"name": "x", **want}) == read("PersistentVolume", **parts)


@pytest.mark.parametrize(
    ("kind", "parts", "want"),
    [
        pytest.param("StorageClass", {}, StorageClass(name="x"), id="an empty class"),
        pytest.param(
            "StorageClass",
            {
                "provisioner": "disks.example",
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
            },
            StorageClass(
                name="x",
                provisioner="disks.example",
                binding_mode="WaitForFirstConsumer",
                topologies=NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("a", "b")),)),)),
            ),
            id="a class",
        ),
        pytest.param(
            "CSINode",
            {"spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}, {"name": "e", "allocatable": None}]}},
            CSINode(name="x", drivers=(DriverLimit("d", 3), DriverLimit("e"))),
            id="limits",
        ),
        pytest.param("CSINode", {"spec": {"drivers": None}}, CSINode(name="x"), id="no drivers"),
        pytest.param("CSIDriver", {"spec": {"storageCapacity": None}}, CSIDriver(name="x"), id="a driver"),
        pytest.param(
            "CSIDriver",
            {"spec": {"storageCapacity": True}},
            CSIDriver(name="x", storage_capacity=True),
            id="a driver that reports capacity",
        ),
        pytest.param(
            "CSIStorageCapacity",
            {"storageClassName": "slow", "nodeTopology": {}, "capacity": "1Ki", "maximumVolumeSize": "1k"},
            CSIStorageCapacity(
                namespace="default", name="x", class_name="slow", topology=LabelSelector(), capacity=1024, largest=1000
            ),
            id="a capacity",
        ),
        pytest.param(
            "VolumeAttachment",
            {"spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
            VolumeAttachment(name="x", driver="d", node="n", volume="v"),
            id="an attachment",
        ),
        pytest.param(
            "VolumeAttachment", {"spec": {"source": None}}, VolumeAttachment(name="x"), id="an attachment of nothing"
        ),
    ],
)
def test_classes_and_reports_of_drivers_are_read(kind, parts, want):
    assert want == read(kind, **parts)


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"kind": "Pod"}', b'{"metadata": 7}', b'{"spec": 7, "provisioner": 7, "capacity": []}']
)
def test_what_is_no_such_object_is_refused(kind, data):
    with pytest.raises(WireError, match=f"cannot read {kind}"):
        DECODERS[kind](data)


@pytest.mark.parametrize("size", ["lots", "1" * 200, "1.2.3"])
def test_a_size_that_is_no_quantity_is_refused(size):
    with pytest.raises(WireError, match="is not a quantity"):
        read("PersistentVolume", spec={"capacity": {"storage": size}})
