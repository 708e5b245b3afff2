"""
Claim controller: binds claims and volumes in virtual time, and makes volumes for claims.

    volume reserved for a claim ───────────────────────────────────────> both bound
    claim with a selected node, or of a class that does not wait ──delay──> new volume, both bound
    claim deleted ─────────────────────────────────────────────────────> its volume deleted if it was made, else released

The rules are those of `volume_rules`. Bindings happen at once; a volume takes the delay that the scenario sets.
"""

import msgspec

from lamina.model.cluster_objects import ClusterObject, ObjectKey
from lamina.model.volumes import (
    AVAILABLE,
    ClaimRef,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.cluster.cluster_object_table import SYNC
from lamina.simulator.controllers.volume_rules import next_step, reach
from lamina.simulator.engine import Environment

BOUND = "Bound"
PENDING = "Pending"
RELEASED = "Released"

ClaimName = tuple[str, str]
"""Namespace and name of a claim."""


class ClaimController:
    """Binds the claims of one cluster."""

    def __init__(self, environment: Environment, cluster: VirtualCluster, delay: float) -> None:
        """Follow the objects of *cluster*; a volume takes *delay* seconds."""
        self._environment = environment
        self._cluster = cluster
        self._objects = cluster.objects
        self._delay = delay
        self._reserved: dict[ClaimName, str] = {}
        """Claim → the volume that names it."""
        self._made: dict[str, ClaimName] = {}
        """Volumes that this controller made, with their claims."""
        self._making: dict[ClaimName, tuple[str, str | None]] = {}
        """Uid and selected node of each claim for which a volume is being made."""
        self._due: dict[ClaimName, None] = {}
        self._scheduled = False
        self._objects.listeners.append(self._changed)

    def _changed(self, key: ObjectKey, found: ClusterObject | None) -> None:
        match found:
            case PersistentVolumeClaim(namespace=namespace, name=name):
                self._mark((namespace, name))
            case PersistentVolume(name=volume, claim=claim):
                if claim is not None:
                    self._reserved[claim.namespace, claim.name] = volume
                    self._mark((claim.namespace, claim.name))
                elif not found.phase:
                    self._objects.put(msgspec.structs.replace(found, phase=AVAILABLE))
            case StorageClass(name=of_class):
                for one in self._objects.all_of(PersistentVolumeClaim):
                    if one.class_name == of_class:
                        self._mark((one.namespace, one.name))
            case None if key.kind == PersistentVolumeClaim.__name__:
                self._give_up((key.namespace, key.name))
            case None if key.kind == PersistentVolume.__name__:
                self._reserved = {claim: name for claim, name in self._reserved.items() if name != key.name}

    def _mark(self, claim: ClaimName) -> None:
        self._due[claim] = None
        if not self._scheduled:
            self._scheduled = True
            self._environment.after(0.0, self._sync_all, priority=SYNC)

    def _sync_all(self) -> None:
        self._scheduled = False
        due, self._due = self._due, {}
        for claim in due:
            self._sync(claim)

    def _sync(self, name: ClaimName) -> None:
        claim = self._objects.get(PersistentVolumeClaim, *name)
        if claim is None:
            return
        volume = self._objects.get(PersistentVolume, "", claim.volume_name or self._reserved.get(name, ""))
        step = next_step(claim, volume, self._objects.get(StorageClass, "", claim.class_name))
        if step == "bind" and volume is not None:
            self._bind(claim, volume)
        elif step == "make":
            wanted = (claim.uid, claim.selected_node)
            if self._making.get(name) != wanted:
                self._making[name] = wanted
                self._environment.after(self._delay, self._make, name, wanted)
        elif not claim.phase:
            self._objects.put(msgspec.structs.replace(claim, phase=PENDING))

    def _make(self, name: ClaimName, wanted: tuple[str, str | None]) -> None:
        """Make the volume of a claim, unless the claim has changed since."""
        if self._making.get(name) != wanted:
            return
        del self._making[name]
        claim = self._objects.get(PersistentVolumeClaim, *name)
        if claim is None or (claim.uid, claim.selected_node) != wanted:
            return
        of_class = self._objects.get(StorageClass, "", claim.class_name)
        if of_class is None or next_step(claim, None, of_class) != "make":
            return
        volume = f"pvc-{claim.uid}"
        node = None if claim.selected_node is None else self._cluster.nodes.get(claim.selected_node)
        labels = {} if node is None else node.labels
        reported = None if node is None else self._objects.get(CSINode, "", node.name)
        self._made[volume] = name
        made = PersistentVolume(
            name=volume,
            size=claim.size or 0,
            access_modes=claim.access_modes,
            class_name=claim.class_name,
            affinity=reach(of_class.provisioner, reported, labels),
            driver=of_class.provisioner,
            handle=volume,
            volume_mode=claim.volume_mode,
            attributes_class=claim.attributes_class,
        )
        self._bind(claim, made)

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        bound_to = ClaimRef(claim.namespace, claim.name, claim.uid)
        self._objects.put(msgspec.structs.replace(volume, claim=bound_to, phase=BOUND))
        self._objects.put(msgspec.structs.replace(claim, volume_name=volume.name, completed=True, phase=BOUND))

    def _give_up(self, claim: ClaimName) -> None:
        """Delete or release the volume of a claim that is gone."""
        self._making.pop(claim, None)
        volume = self._objects.get(PersistentVolume, "", self._reserved.pop(claim, ""))
        if volume is None:
            return
        if self._made.pop(volume.name, None) is not None:
            self._objects.remove(ObjectKey(PersistentVolume.__name__, "", volume.name))
        else:
            self._objects.put(msgspec.structs.replace(volume, phase=RELEASED))
            self._reserved.pop(claim, None)
