"""
A provisioner of disks that exist in the API only, as an external provisioner of a CSI driver with local storage.

    claim with a selected node ──> there is room on that node: a volume that only this node can mount
                              └──> there is none, or the node refuses: the annotation is removed again

The volume controller of the real controller manager asks for the volume and binds it. Like the external provisioner,
this one reports the room of each node as CSIStorageCapacity, and removes `selected-node` if it cannot serve a node, so
that the scheduler chooses again. Tests decide which nodes refuse.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from testbed import Testbed
from testbed.errors import RefusedError
from tests.integration.scheduler.truth import thousandths
from tests.integration.scheduler.watch_reader import Item, WatchReader

STORAGE: Final = "/apis/storage.k8s.io/v1"
CLAIMS: Final = "/api/v1/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"
SELECTED: Final = "volume.kubernetes.io/selected-node"
ASKED: Final = "volume.kubernetes.io/storage-provisioner"
MADE_BY: Final = "pv.kubernetes.io/provisioned-by"
HOSTNAME: Final = "kubernetes.io/hostname"
SILENCE: Final = 60.0
"""Seconds without a line after which the watch begins anew."""
CONFLICT: Final = 409
MI: Final = 2**20


@dataclass(frozen=True)
class Refused:
    """A claim that was not served."""

    claim: str
    node: str


class DiskProvisioner:
    """Serves the claims of one driver while the block runs."""

    def __init__(self, bed: Testbed, driver: str, class_name: str, room: Mapping[str, int] | None = None) -> None:
        """Prepare; *room* is what each node has in MiB, and is reported. Without it, there is room everywhere."""
        self._bed = bed
        self.driver, self.class_name = driver, class_name
        self._room = None if room is None else dict(room)
        self._broken: set[str] = set()
        self._refusing_once: set[str] = set()
        self._held = False
        self._items: dict[str, Item] = {}
        self._lock = threading.RLock()
        self._reader = WatchReader(bed, CLAIMS, self._list, self._see, silence=SILENCE)
        self.made: dict[str, str] = {}
        """The node of each volume, by claim."""
        self.refused: list[Refused] = []
        """Requests for nodes that refused, as the test wanted."""
        self.misplaced: list[Refused] = []
        """Requests for nodes without room, which a scheduler should have known."""

    def __enter__(self) -> Self:
        for node in self._room or ():
            self._report(node, "POST")
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.stop()

    # -- what tests want ---------------------------------------------------------------------------------------------

    def refuse_once(self, nodes: Iterable[str]) -> None:
        """Refuse the next request for each of these nodes."""
        with self._lock:
            self._refusing_once |= {*nodes}

    def breaks(self, node: str) -> None:
        """Refuse all requests for a node; its room is reported as none with the first one."""
        with self._lock:
            self._broken.add(node)

    def repair(self, node: str, room: int) -> None:
        """Serve a node again."""
        with self._lock:
            self._broken.discard(node)
            self._set_room(node, room)

    def hold(self) -> None:
        """Neither serve nor refuse."""
        with self._lock:
            self._held = True

    def release(self) -> None:
        """Serve again, beginning with the claims that wait."""
        with self._lock:
            self._held = False
            for item in list(self._items.values()):
                self._serve(item)

    def asked(self, claim: str) -> str:
        """Return the node that is selected for a claim of the default namespace; empty if there is none."""
        with self._lock:
            item = self._items.get(f"default/{claim}")
            return "" if item is None else item["metadata"].get("annotations", {}).get(SELECTED, "")

    # -- claims ------------------------------------------------------------------------------------------------------

    def _list(self, items: list[Item]) -> None:
        for item in items:
            self._see("ADDED", item)

    def _see(self, kind: str, item: Item) -> None:
        with self._lock:
            if kind == "DELETED":
                self._items.pop(key_of(item), None)
                return
            self._items[key_of(item)] = item
            self._serve(item)

    def _serve(self, item: Item) -> None:
        annotations = item["metadata"].get("annotations", {})
        node, claim = annotations.get(SELECTED, ""), key_of(item)
        if self._held or not node or annotations.get(ASKED) != self.driver or item["spec"].get("volumeName"):
            return
        if claim in self.made:
            return
        if node in self._broken or node in self._refusing_once:
            if self._deselect(item):
                self._refusing_once.discard(node)
                self.refused.append(Refused(claim, node))
                if node in self._broken:
                    self._set_room(node, 0)
            return
        size = thousandths(item["spec"]["resources"]["requests"]["storage"]) // (1000 * MI)
        if self._room is not None and self._room.get(node, 0) < size:
            if self._deselect(item):
                self.misplaced.append(Refused(claim, node))
            return
        if self._room is not None:
            self._set_room(node, self._room[node] - size)
        self._bed.api("POST", VOLUMES, volume_for(item, self.driver, node))
        self.made[claim] = node

    def _deselect(self, item: Item) -> bool:
        """Remove the selected node; return whether the claim was still as it was seen."""
        metadata = item["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}"
        patch = {"resourceVersion": metadata["resourceVersion"], "annotations": {SELECTED: None}}
        try:
            self._bed.api("PATCH", path, {"metadata": patch})
        except RefusedError as error:
            if error.status != CONFLICT:
                raise
            # Its next version is served.
            return False
        return True

    # -- room --------------------------------------------------------------------------------------------------------

    def _set_room(self, node: str, room: int) -> None:
        if self._room is not None:
            self._room[node] = room
            self._report(node, "PATCH")

    def _report(self, node: str, method: str) -> None:
        assert self._room is not None
        name = f"{self.class_name}-{node}"
        body = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": name},
            "storageClassName": self.class_name,
            "nodeTopology": {"matchLabels": {HOSTNAME: node}},
            "capacity": f"{self._room[node]}Mi",
        }
        path = f"{STORAGE}/namespaces/default/csistoragecapacities"
        if method == "POST":
            self._bed.api("POST", path, body)
        else:
            self._bed.api("PATCH", f"{path}/{name}", {"capacity": body["capacity"]})


# -- objects -----------------------------------------------------------------------------------------------------------


def key_of(item: Item) -> str:
    """Return namespace and name."""
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def volume_for(item: Item, driver: str, node: str) -> dict[str, Any]:
    """Return a volume for a claim that only one node can mount."""
    metadata, spec = item["metadata"], item["spec"]
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    reference |= {name: metadata[name] for name in ("namespace", "name", "uid")}
    here = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pvc-{metadata['uid']}", "annotations": {MADE_BY: driver}},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec["storageClassName"],
            "claimRef": reference,
            "csi": {"driver": driver, "volumeHandle": metadata["uid"]},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
        },
    }


def add_driver(bed: Testbed, driver: str, class_name: str, *, reports_room: bool, zone: str = "") -> None:
    """Create a driver and its storage class, which waits for the first consumer; with *zone* it serves only nodes there."""
    kind = {"apiVersion": "storage.k8s.io/v1"}
    spec = {"attachRequired": False, "storageCapacity": reports_room}
    bed.api("POST", f"{STORAGE}/csidrivers", {**kind, "kind": "CSIDriver", "metadata": {"name": driver}, "spec": spec})
    body: dict[str, Any] = {**kind, "kind": "StorageClass", "metadata": {"name": class_name}, "provisioner": driver}
    if zone:
        body["allowedTopologies"] = [{"matchLabelExpressions": [{"key": "zone", "values": [zone]}]}]
    bed.api("POST", f"{STORAGE}/storageclasses", {**body, "volumeBindingMode": "WaitForFirstConsumer"})


def add_csi_node(bed: Testbed, node: str, limits: Mapping[str, int]) -> None:
    """Report the drivers of a node, and how many volumes of each it can have."""
    drivers = [{"name": name, "nodeID": node, "allocatable": {"count": count}} for name, count in limits.items()]
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node}}
    bed.api("POST", f"{STORAGE}/csinodes", {**body, "spec": {"drivers": drivers}})


def claim(name: str, class_name: str, size: int) -> dict[str, Any]:
    """Return a claim of *size* MiB; without namespace, so that it can be a template."""
    resources = {"requests": {"storage": f"{size}Mi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": class_name, "resources": resources}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def places(bed: Testbed) -> dict[str, str]:
    """Return the node of every claim in the default namespace that is bound; raises if a volume has two claims."""
    volumes = {one["metadata"]["name"]: one["spec"] for one in bed.api("GET", VOLUMES)["items"]}
    found: dict[str, str] = {}
    used: dict[str, str] = {}
    for item in bed.api("GET", "/api/v1/namespaces/default/persistentvolumeclaims")["items"]:
        name, volume = item["metadata"]["name"], item["spec"].get("volumeName")
        if item["status"].get("phase") != "Bound":
            continue
        assert volume not in used, f"{volume} belongs to {used.get(volume)} and to {name}"
        used[volume] = name
        assert volumes[volume]["claimRef"]["uid"] == item["metadata"]["uid"]
        (term,) = volumes[volume]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        (found[name],) = term["matchExpressions"][0]["values"]
    return found
