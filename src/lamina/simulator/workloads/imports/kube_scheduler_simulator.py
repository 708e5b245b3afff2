"""
Files of kube-scheduler-simulator: a snapshot (``GET /api/v1/export``), or what its ``sched-recorder`` wrote.

    snapshot    one object with pods, nodes, pvs, pvcs, storageClasses, priorityClasses, schedulerConfig, namespaces
    record      a line for each change: {"time": "…", "event": "Add | Update | Delete", "resource": {…}}

Everything of a snapshot exists from the start. A record is played at its own times, which its own replay ignores: time 0
is that of the first pod, and what came before exists from the start. A pod runs as long as it ran in the record. The
results that the simulator writes into annotations are dropped.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from lamina.model.cluster_objects import ObjectKey
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import plural
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.imports import import_files
from lamina.simulator.workloads.imports.import_files import JsonFile
from lamina.simulator.workloads.imports.import_schema import ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.imports.manifest_objects import MOST_OBJECTS, ManifestObject
from lamina.simulator.workloads.imports.manifests import ManifestCluster
from lamina.simulator.workloads.imports.pod_drafts import DECIMALS, ImageChooser
from lamina.simulator.workloads.object_entries import DEFAULT_NAMESPACE, NAMESPACED, OBJECT_KINDS, manifest_object
from lamina.simulator.workloads.scenario import ScenarioEvent
from lamina.wire.errors import WireError
from lamina.wire.timestamps import seconds

RESULTS: Final = "kube-scheduler-simulator.sigs.k8s.io/"
"""Prefix of the annotations with results."""
LISTS: Final = {
    "pods": "Pod",
    "nodes": "Node",
    "pvs": "PersistentVolume",
    "pvcs": "PersistentVolumeClaim",
    "storageClasses": "StorageClass",
}
"""Lists of a snapshot, and the kind of their objects, which do not say it themselves."""
ENDED: Final = ("Succeeded", "Failed")


class SimulatorSnapshot(msgspec.Struct, frozen=True, rename="camel"):
    """A snapshot."""

    pods: list[msgspec.Raw] | None = None
    nodes: list[msgspec.Raw] | None = None
    pvs: list[msgspec.Raw] | None = None
    pvcs: list[msgspec.Raw] | None = None
    storage_classes: list[msgspec.Raw] | None = None
    priority_classes: list[dict[str, Any]] | None = None
    scheduler_config: dict[str, Any] | None = None
    namespaces: list[dict[str, Any]] | None = None


class SimulatorRecord(msgspec.Struct, frozen=True):
    """A line of a record."""

    time: str
    event: Literal["Add", "Update", "Delete"]
    resource: dict[str, Any]


_RECORDS: Final = msgspec.json.Decoder(SimulatorRecord)


def is_record(line: bytes) -> bool:
    """Return whether a file whose first line is *line* is a record."""
    try:
        _RECORDS.decode(line)
    except (ValueError, RecursionError):
        return False
    return True


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read the file that an entry names."""
    assert entry.kube_scheduler_simulator is not None, "the entry is of this kind"
    path = import_files.located(context, folder, entry.kube_scheduler_simulator, "kubeSchedulerSimulator")
    cluster = ManifestCluster(entry, ImageChooser(entry, folder, context), context)
    if not is_record(_first_line(path)):
        notes = _take_snapshot(JsonFile(path), cluster)
        found = cluster.imported(str(path))
        return msgspec.structs.replace(found, notes=(*notes, *found.notes))
    player = _RecordPlayer(str(path), cluster, entry.at)
    player.read(path)
    found = cluster.imported(str(path), tuple(player.joining()))
    events = tuple(sorted((*found.events, *player.events), key=lambda event: event.at))
    return msgspec.structs.replace(found, events=events, notes=(*player.notes(), *found.notes))


class _NoEntry:
    """Stands for the entry of a scenario where a file is checked alone."""

    def mistake(self, message: str, *steps: str | int) -> Mistake:
        return Mistake("", message, ".".join(map(str, steps)))


def check_simulator_file(path: Path) -> None:
    """Read a file without a scenario. Raises InputError with the mistakes of its objects."""
    entry, context = ImportEntry(kube_scheduler_simulator=path.name), ImportContext(entry=_NoEntry())
    cluster = ManifestCluster(entry, ImageChooser(entry, path.parent, context), context)
    if is_record(_first_line(path)):
        _RecordPlayer(str(path), cluster, 0.0).read(path)
    else:
        _take_snapshot(JsonFile(path), cluster)


def _first_line(path: Path) -> bytes:
    return next((line for _, line in import_files.lines(path) if line.strip()), b"")


# -- snapshots -----------------------------------------------------------------------------------------------------------


def _take_snapshot(file: JsonFile, cluster: ManifestCluster) -> list[str]:
    """Read a snapshot into *cluster*; return notes about what is not used. Raises InputError."""
    snapshot = file.decode(SimulatorSnapshot)
    priorities = _priorities(snapshot.priority_classes or [])
    cluster.take_all(_listed(file, snapshot, priorities))
    notes = []
    if snapshot.scheduler_config is not None:
        notes.append(f"{file.source}: its schedulerConfig is not used; save it as a file and name it with --profile")
    if snapshot.namespaces:
        notes.append(
            f"{file.source}: {plural(len(snapshot.namespaces), 'namespace')} left out: a simulation needs none"
        )
    return notes


def _listed(file: JsonFile, snapshot: SimulatorSnapshot, priorities: dict[str, int]) -> Iterator[ManifestObject]:
    count = 0
    for field, kind in LISTS.items():
        attribute = "storage_classes" if field == "storageClasses" else field
        raws: list[msgspec.Raw] = getattr(snapshot, attribute) or []
        for index, (raw, (start, line)) in enumerate(zip(raws, file.places(raws), strict=True)):
            count += 1
            if count > MOST_OBJECTS:
                raise InputError.one(file.source, f"more than {MOST_OBJECTS} objects; leave some out", line=line)
            manifest = file.decode(dict, raw, start, f"{field}[{index}]")
            yield _manifest(file.source, line, kind, manifest, priorities)


def _priorities(classes: list[dict[str, Any]]) -> dict[str, int]:
    """Return the value of each priority class; classes of another shape have none."""
    found = {}
    for one in classes:
        metadata, value = one.get("metadata"), one.get("value")
        if isinstance(metadata, dict) and isinstance(value, int):
            found[str(metadata.get("name"))] = value
    return found


def _manifest(
    source: str, line: int, kind: str, manifest: dict[str, Any], priorities: dict[str, int]
) -> ManifestObject:
    """Return an object without the simulator's results, and with the priority of its class."""
    metadata = _mapping(manifest, "metadata")
    annotations = {
        name: text for name, text in _mapping(metadata, "annotations").items() if not name.startswith(RESULTS)
    }
    manifest = {**manifest, "kind": kind, "metadata": {**metadata, "annotations": annotations}}
    spec = _mapping(manifest, "spec")
    priority = priorities.get(str(spec.get("priorityClassName")))
    if kind == "Pod" and spec.get("priority") is None and priority is not None:
        manifest["spec"] = {**spec, "priority": priority}
    return ManifestObject(source, line, kind, msgspec.json.encode(manifest))


def _mapping(found: dict[str, Any], field: str) -> dict[str, Any]:
    value = found.get(field)
    return value if isinstance(value, dict) else {}


# -- records -------------------------------------------------------------------------------------------------------------


class _RecordedPod(msgspec.Struct):
    """One pod of a record, from its addition on."""

    found: ManifestObject
    added: float
    running: float | None = None
    ended: float | None = None
    failed: bool = False
    removed: float | None = None

    def see(self, manifest: dict[str, Any], at: float) -> None:
        """Take a later state of the pod."""
        phase = _mapping(manifest, "status").get("phase")
        if self.running is None and phase in ("Running", *ENDED):
            self.running = at
        if self.ended is None and phase in ENDED:
            self.ended, self.failed = at, phase == "Failed"

    @property
    def life(self) -> PodLifecycle | None:
        """How long it ran; None if it did not end by itself."""
        if self.ended is None or self.running is None:
            return None
        length = round(self.ended - self.running, DECIMALS)
        return PodLifecycle(seconds=length, failures=-1 if self.failed else 0)


class _RecordPlayer:
    """Turns the lines of a record into objects, pods and events."""

    def __init__(self, source: str, cluster: ManifestCluster, at: float) -> None:
        self._source, self._cluster, self._at = source, cluster, at
        self.events: list[ScenarioEvent] = []
        self._begin: float | None = None
        """Time of the first pod, in seconds since 1970; None: no pod has come yet."""
        self._pods: list[_RecordedPod] = []
        self._present: dict[tuple[str, str], _RecordedPod] = {}
        self._cordoned: dict[str, bool] = {}
        self._priorities: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    def read(self, path: Path) -> None:
        """Read all lines. Raises InputError with the mistakes of all of them."""
        mistakes: list[Mistake] = []
        for number, line in import_files.lines(path):
            if not line.strip():
                continue
            if number > MOST_OBJECTS:
                raise InputError.one(self._source, f"more than {MOST_OBJECTS} lines; split the file", line=number)
            try:
                self._line(line, number)
            except InputError as error:
                mistakes += error.mistakes
            except (ValueError, RecursionError, WireError) as error:
                mistakes.append(Mistake(self._source, str(error).partition(" - at")[0], line=number))
            if len(mistakes) >= import_files.MOST_MISTAKES:
                break
        if mistakes:
            raise InputError(mistakes)
        for pod in self._pods:
            at = None if pod.removed is None or pod.ended is not None else pod.removed
            self._cluster.take(pod.found, pod.added, pod.life, at)

    def joining(self) -> Iterator[Any]:
        """Yield the nodes that join during the record."""
        for event in self.events:
            if event.node is not None:
                yield event.node

    def notes(self) -> Iterator[str]:
        """Yield sentences about what was left out."""
        for what, count in self._left_out.items():
            yield f"{self._source}: {plural(count, 'line')} left out: {what}"

    def _line(self, line: bytes, number: int) -> None:
        record = _RECORDS.decode(line)
        time, manifest = seconds(record.time), record.resource
        kind, metadata = str(manifest.get("kind")), _mapping(manifest, "metadata")
        name, namespace = str(metadata.get("name", "")), str(metadata.get("namespace", "default"))
        if kind == "Pod" and self._begin is None:
            self._begin = time
        at = 0.0 if self._begin is None else round(max(0.0, time - self._begin), DECIMALS)
        if kind == "Pod":
            self._pod(record, (namespace, name), at, number)
        elif kind == "Node":
            self._node(record, name, at, number)
        elif kind == "PriorityClass" and isinstance(manifest.get("value"), int):
            self._priorities[name] = manifest["value"]
        elif kind in OBJECT_KINDS:
            self._object(record, kind, at, number)
        else:
            self._leave_out(kind)

    def _pod(self, record: SimulatorRecord, key: tuple[str, str], at: float, line: int) -> None:
        if record.event == "Add":
            found = _manifest(self._source, line, "Pod", record.resource, self._priorities)
            pod = _RecordedPod(found, at)
            pod.see(record.resource, at)
            if pod.ended is not None:
                self._leave_out("Pod that has ended")
                return
            self._pods.append(pod)
            self._present[key] = pod
        elif (known := self._present.get(key)) is not None:
            if record.event == "Update":
                known.see(record.resource, at)
            else:
                known.removed = at
                del self._present[key]

    def _node(self, record: SimulatorRecord, name: str, at: float, line: int) -> None:
        found = _manifest(self._source, line, "Node", record.resource, {})
        if record.event == "Delete":
            self.events.append(ScenarioEvent(self._at + at, "drop", name))
            self._cordoned.pop(name, None)
            return
        unschedulable = _mapping(record.resource, "spec").get("unschedulable") is True
        before = self._cordoned.get(name)
        self._cordoned[name] = unschedulable
        if before is None and self._begin is None:
            self._cluster.take(found)
        elif before is None:
            spec = self._cluster.node_spec(found)
            if spec is not None:
                self.events.append(ScenarioEvent(self._at + at, "join", name, node=spec))
        elif before is not unschedulable:
            self.events.append(ScenarioEvent(self._at + at, "cordon" if unschedulable else "uncordon", name))

    def _object(self, record: SimulatorRecord, kind: str, at: float, line: int) -> None:
        found = _manifest(self._source, line, kind, record.resource, {})
        if self._begin is None and record.event == "Add":
            self._cluster.take(found)
            return
        if record.event == "Update":
            self._leave_out(f"{kind} that changed")
            return
        metadata = _mapping(record.resource, "metadata")
        namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE) if kind in NAMESPACED else ""
        key = ObjectKey(kind, namespace, str(metadata.get("name", "")))
        if record.event == "Add":
            one = manifest_object(kind, msgspec.json.decode(found.data))
            self.events.append(ScenarioEvent(self._at + at, "apply", key.name, object=one))
        else:
            self.events.append(ScenarioEvent(self._at + at, "delete", key.name, key=key))

    def _leave_out(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1
