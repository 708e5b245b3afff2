"""The façade binds claims and volumes, and makes volumes for claims."""

from typing import Any

import pytest

from lamina.simulator.facade.volume_controller import BIND_COMPLETED, SELECTED_NODE, VolumeController
from tests.unit.simulator.facade.api_client import NODES, NotedFacade, Object

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
MODES = ["ReadWriteOnce"]


@pytest.fixture
def facade() -> NotedFacade:
    found = NotedFacade()
    VolumeController(found.state)
    return found


def a_claim(name: str = "data", class_name: str = "", **more: Any) -> Object:
    spec = {
        "accessModes": MODES,
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": class_name,
        **more.pop("spec", {}),
    }
    metadata = {"name": name, **more}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def a_volume(name: str = "disk", **spec: Any) -> Object:
    found = {"capacity": {"storage": "9Gi"}, "accessModes": MODES, "hostPath": {"path": "/data"}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": found}


def a_class(name: str = "fast", mode: str = "WaitForFirstConsumer", provisioner: str = "x.csi") -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def reference(name: str = "data", **more: str) -> Object:
    return {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, **more}


def bound_to(facade: NotedFacade, claim: str = "data") -> str:
    """Return the volume of a claim whose binding is complete, else an empty text."""
    found = facade.get(f"{CLAIMS}/{claim}")
    complete = BIND_COMPLETED in found["metadata"].get("annotations", {}) and found["status"]["phase"] == "Bound"
    return str(found["spec"].get("volumeName", "")) if complete else ""


def phase(facade: NotedFacade, path: str) -> str:
    return str(facade.get(path)["status"]["phase"])


def test_a_new_volume_is_available_and_a_new_claim_pending(facade):
    facade.made(VOLUMES, a_volume())
    facade.made(CLAIMS, a_claim())

    assert "Available" == phase(facade, f"{VOLUMES}/disk")
    assert "Pending" == phase(facade, f"{CLAIMS}/data")


def test_a_volume_that_a_scheduler_reserves_is_bound(facade):
    facade.made(VOLUMES, a_volume())
    claim = facade.made(CLAIMS, a_claim())

    facade.patch(f"{VOLUMES}/disk", {"spec": {"claimRef": reference(uid=claim["metadata"]["uid"])}})

    assert "disk" == bound_to(facade)
    assert "Bound" == phase(facade, f"{VOLUMES}/disk")
    assert {"storage": "9Gi"} == facade.get(f"{CLAIMS}/data")["status"]["capacity"]


@pytest.mark.parametrize("volume_first", [True, False])
def test_a_volume_reserved_by_name_is_bound_once_both_exist(facade, volume_first):
    made = [(VOLUMES, a_volume(claimRef=reference())), (CLAIMS, a_claim(spec={"volumeName": "disk"}))]
    for path, body in made if volume_first else reversed(made):
        facade.made(path, body)

    claim = facade.get(f"{CLAIMS}/data")
    assert "disk" == bound_to(facade)
    assert claim["metadata"]["uid"] == facade.get(f"{VOLUMES}/disk")["spec"]["claimRef"]["uid"]


@pytest.mark.parametrize(
    "claim_ref",
    [
        pytest.param(reference("other"), id="another claim"),
        pytest.param(reference(uid="earlier"), id="an earlier claim with this name"),
    ],
)
def test_a_volume_of_another_claim_is_not_bound(facade, claim_ref):
    facade.made(VOLUMES, a_volume(claimRef=claim_ref))
    facade.made(CLAIMS, a_claim(spec={"volumeName": "disk"}))

    assert "" == bound_to(facade)


def test_a_volume_is_made_for_a_claim_once_its_node_is_selected(facade):
    facade.made(CLASSES, a_class())
    facade.made(CLAIMS, a_claim(class_name="fast"))
    assert [] == facade.names(VOLUMES)

    facade.patch(f"{CLAIMS}/data", {"metadata": {"annotations": {SELECTED_NODE: "n1"}}})

    volume = facade.get(f"{VOLUMES}/{bound_to(facade)}")
    assert "x.csi" == volume["spec"]["csi"]["driver"]
    assert {"storage": "5Gi"} == volume["spec"]["capacity"]
    assert "Bound" == volume["status"]["phase"]


@pytest.mark.parametrize(
    ("known", "made"),
    [
        pytest.param(a_class(mode="Immediate"), 1, id="the class does not wait"),
        pytest.param(a_class(), 0, id="the class waits"),
        pytest.param(a_class(mode="Immediate", provisioner="kubernetes.io/no-provisioner"), 0, id="no provisioner"),
        pytest.param(a_class("other", mode="Immediate"), 0, id="another class"),
    ],
)
def test_a_volume_is_made_at_once_only_if_the_class_does_not_wait(facade, known, made):
    facade.made(CLASSES, known)
    facade.made(CLAIMS, a_claim(class_name="fast"))

    assert made == len(facade.names(VOLUMES))


def test_a_made_volume_reaches_the_nodes_with_the_topology_of_the_selected_node(facade):
    driver = {"name": "x.csi", "nodeID": "n1", "topologyKeys": ["zone"]}
    facade.made(CLASSES, a_class())
    facade.made(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"zone": "a"}}})
    facade.made(
        CSI_NODES,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": "n1"},
            "spec": {"drivers": [driver]},
        },
    )

    facade.made(CLAIMS, a_claim(class_name="fast", annotations={SELECTED_NODE: "n1"}))

    affinity = facade.get(f"{VOLUMES}/{bound_to(facade)}")["spec"]["nodeAffinity"]
    wanted = [{"key": "zone", "operator": "In", "values": ["a"]}]
    assert {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}} == affinity


def test_a_made_volume_goes_with_its_claim_and_another_is_released(facade):
    facade.made(CLASSES, a_class(mode="Immediate"))
    facade.made(CLAIMS, a_claim("made", class_name="fast"))
    facade.made(VOLUMES, a_volume(claimRef=reference("kept"), persistentVolumeReclaimPolicy="Retain"))
    facade.made(CLAIMS, a_claim("kept"))

    facade.delete(f"{CLAIMS}/made")
    facade.delete(f"{CLAIMS}/kept")

    assert ["disk"] == facade.names(VOLUMES)
    assert "Released" == phase(facade, f"{VOLUMES}/disk")


def test_a_watch_sees_the_changes_in_their_order(facade):
    facade.made(CLASSES, a_class(mode="Immediate"))
    events = facade.watch(CLAIMS)

    facade.made(CLAIMS, a_claim(class_name="fast"))

    versions = [int(one["object"]["metadata"]["resourceVersion"]) for one in events.all]
    assert [("ADDED", "data"), ("MODIFIED", "data")] == events.seen
    assert sorted(versions) == versions
