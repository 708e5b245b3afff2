"""
Objects of a scenario besides nodes, pods and controllers, written as Kubernetes manifests.

An entry is the manifest itself, so that ``kubectl get -o yaml`` can be pasted. The kinds are those that a scheduler
reads: disruption budgets, claims, volumes, storage classes, what CSI drivers report, Services, PodGroups and Queues. ReplicaSets and
StatefulSets are not listed here: simulated Deployments and StatefulSets bring their own.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from lamina.model.cluster_objects import ObjectKey, key_of
from lamina.model.conversion import suggest
from lamina.model.plain import shown
from lamina.simulator.workloads.field_types import EntryStruct, object_name
from lamina.simulator.workloads.pod_entries import NamedClaim
from lamina.simulator.workloads.scenario import ScenarioObject
from lamina.simulator.workloads.scenario_files import AssemblyState, ScenarioEntry
from lamina.wire.errors import WireError
from lamina.wire.kube.cluster_object import decode_cluster_object
from lamina.wire.kube.disruption_budget import decode_budget_limits

NAMESPACED: Final = ("PodDisruptionBudget", "Service", "PersistentVolumeClaim", "CSIStorageCapacity", "PodGroup")
CLUSTER_SCOPED: Final = ("PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment", "Queue")
OBJECT_KINDS: Final = (*NAMESPACED, *CLUSTER_SCOPED)
"""Kinds of objects that a scenario can have."""
API_VERSIONS: Final[Mapping[str, str]] = {
    "PodDisruptionBudget": "policy/v1",
    "Service": "v1",
    "PersistentVolumeClaim": "v1",
    "PersistentVolume": "v1",
}
STORAGE_VERSION: Final = "storage.k8s.io/v1"
GANG_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "PodGroup": (
        "scheduling.x-k8s.io/v1alpha1",
        "scheduling.volcano.sh/v1beta1",
        "scheduling.sigs.dev/v1alpha2",
        "scheduling.incubator.k8s.io/v1alpha1",
    ),
    "Queue": (
        "scheduling.volcano.sh/v1beta1",
        "scheduling.sigs.dev/v1alpha2",
        "scheduling.incubator.k8s.io/v1alpha1",
    ),
}
"""Dialects of gangs and queues; a manifest without apiVersion has the first one."""
DEFAULT_NAMESPACE: Final = "default"
MOST_OBJECTS: Final = 100_000
"""Largest number of objects of a scenario; a typing error is then reported instead of simulated."""

ObjectEntry = dict[str, Any]
"""A manifest as written."""


class DeleteEntry(EntryStruct, frozen=True, kw_only=True):
    """The object that an event deletes."""

    kind: str
    name: str
    namespace: str = DEFAULT_NAMESPACE


def manifest_object(kind: str, manifest: Mapping[str, Any]) -> ScenarioObject:
    """
    Return the object of a manifest; a missing namespace is ``default``. Raises WireError or ValueError.

    A budget must have one of its two limits, because without a limit it would silently protect every pod.
    """
    given = manifest.get("metadata")
    metadata: dict[str, Any] = given if isinstance(given, dict) else {}
    name = metadata.get("name")
    if not isinstance(name, str):
        raise ValueError("has no name; add metadata.name")  # noqa: TRY004 - a mistake in a user's file
    object_name(name)
    if kind in NAMESPACED:
        metadata = {**metadata, "namespace": metadata.get("namespace") or DEFAULT_NAMESPACE}
    version = manifest.get("apiVersion") if kind in GANG_VERSIONS else None
    whole = {**manifest, "apiVersion": version or _versions(kind)[0], "kind": kind, "metadata": metadata}
    data = msgspec.json.encode(whole)
    found = decode_cluster_object(kind, data)
    if kind == "PodDisruptionBudget":
        limits = decode_budget_limits(data)
        if (limits.min_available is None) == (limits.max_unavailable is None):
            raise ValueError("say either minAvailable or maxUnavailable in its spec")
    return ScenarioObject(found, whole)


def _versions(kind: str) -> tuple[str, ...]:
    """Return the API versions that a manifest of a kind can have; the first is the default."""
    return GANG_VERSIONS.get(kind) or (API_VERSIONS.get(kind, STORAGE_VERSION),)


class ObjectBuilder:
    """Makes the objects of all files, and those that events apply."""

    def __init__(self, state: AssemblyState) -> None:
        """Report mistakes to *state*."""
        self._state = state
        self._listed: dict[ObjectKey, ScenarioEntry] = {}
        self._known: set[ObjectKey] = set()
        """Keys of all objects, including those of events and imports."""
        self.complete = True
        """Whether all objects could be read; only then is an unknown claim a mistake."""

    def listed(self) -> list[ScenarioObject]:
        """Return the objects under ``objects`` of all files."""
        entries = self._state.entries("objects", ObjectEntry)
        if len(entries) > MOST_OBJECTS:
            self._state.wrong(entries[MOST_OBJECTS], f"too many: there are {len(entries)}, at most {MOST_OBJECTS}")
            return []
        self.complete = len(entries) == sum(len(part.places("objects")) for part in self._state.parts)
        made = []
        for entry in entries:
            one = self.read(entry)
            if one is None:
                continue
            key = key_of(one.found)
            if key in self._listed:
                before = self._listed[key].where
                self._state.wrong(entry, f"there is a second {key}, the first is in {before}", "metadata", "name")
                continue
            self._listed[key] = entry
            made.append(one)
        return made

    def read(self, entry: ScenarioEntry) -> ScenarioObject | None:
        """Return the object of one manifest; None after a mistake."""
        kind = entry.value.get("kind")
        if kind not in OBJECT_KINDS:
            self.complete = False
            if kind is None:
                self._state.wrong(entry, f"a manifest needs kind: one of {', '.join(OBJECT_KINDS)}")
            else:
                self._state.wrong(
                    entry,
                    f"{shown(str(kind))} is no kind that is listed here; {suggest(str(kind), OBJECT_KINDS)}",
                    "kind",
                )
            return None
        version = entry.value.get("apiVersion")
        known = _versions(kind)
        if version not in (None, *known):
            self._state.wrong(entry, f"{shown(str(version))} has no {kind}; write {' or '.join(known)}", "apiVersion")
            self.complete = False
            return None
        try:
            one = manifest_object(kind, entry.value)
        except (WireError, ValueError, TypeError) as error:
            # The end of the message is for objects that a server sent.
            self._state.wrong(entry, str(error).partition("; check that a Kubernetes API server")[0])
            self.complete = False
            return None
        self._known.add(key_of(one.found))
        return one

    def imported(self, objects: Iterable[ScenarioObject]) -> list[ScenarioObject]:
        """Return imported objects, except those that the scenario lists itself."""
        fresh = [one for one in objects if key_of(one.found) not in self._listed]
        self._known.update(key_of(one.found) for one in fresh)
        return fresh

    def check_claims(self, named: Iterable[NamedClaim]) -> None:
        """Report claims that pods name and nobody lists: their pods would wait for ever."""
        if not self.complete:
            return
        claims = {
            key.name
            for key in self._known
            if key.kind == "PersistentVolumeClaim" and key.namespace == DEFAULT_NAMESPACE
        }
        for one in named:
            if one.name not in claims:
                what_to_try = suggest(one.name, claims) if claims else "list it under objects"
                message = f"there is no PersistentVolumeClaim {shown(one.name)}; {what_to_try}"
                self._state.wrong(one.entry, message, "claims", one.position)

    def key(self, entry: ScenarioEntry, given: DeleteEntry) -> ObjectKey | None:
        """Return the key of the object that an event deletes; None after a mistake."""
        if given.kind not in OBJECT_KINDS:
            self._state.wrong(
                entry,
                f"{shown(given.kind)} is no kind that is listed here; {suggest(given.kind, OBJECT_KINDS)}",
                "delete",
                "kind",
            )
            return None
        key = ObjectKey(given.kind, given.namespace if given.kind in NAMESPACED else "", given.name)
        if key not in self._known and self.complete:
            names = [one.name for one in self._known if (one.kind, one.namespace) == (key.kind, key.namespace)]
            what_to_try = suggest(given.name, names) if names else "list it under objects"
            self._state.wrong(entry, f"there is no {key}; {what_to_try}", "delete", "name")
        return key
