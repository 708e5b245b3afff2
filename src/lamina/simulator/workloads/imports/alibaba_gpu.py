"""
Alibaba's GPU trace of 2023 (cluster-trace-gpu-v2023): its pods and, if the entry names the second table, its nodes.

    creation_time, deletion_time   when a pod arrives and how long it runs, from scheduled_time if set
    num_gpu, gpu_milli             thousandths of GPUs together, as the resource `GPU_MILLI`
    gpu_spec                       models that it can run on, "A|B": a required node affinity on the label `MODEL`
    pod_phase                      Failed pods fail; Pending pods were never placed and run as long as they waited

The scheduler sees one sum of GPU shares per node, so a pod's share may be spread over several GPUs. The trace names no
applications; all pods with the same requests form one, as if they came from one template.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from lamina.model.plain import plural
from lamina.model.pod import Owner
from lamina.model.resources import CPU, MEMORY, PODS, Amounts
from lamina.model.selectors import IN, NodeSelector, NodeSelectorTerm, Requirement
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.imports import import_files, pod_drafts
from lamina.simulator.workloads.imports.import_files import TableRow
from lamina.simulator.workloads.imports.import_schema import ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.imports.pod_drafts import USUAL_PODS, ImageChooser, PodDraft
from lamina.simulator.workloads.scenario import PodArrival

GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
MODEL: Final = "alibabacloud.com/gpu-model"
MIB: Final = 1024**2
APPLICATION: Final = "app"

POD_COLUMNS: Final = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase"),
    *("creation_time", "deletion_time", "scheduled_time"),
)
NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read the tables that an entry names."""
    files = entry.alibaba_gpu
    assert files is not None, "the entry is of this kind"
    nodes = pod_drafts.equal_nodes(entry, context)
    if files.nodes is not None:
        node_path = import_files.located(context, folder, files.nodes, "alibabaGpu", "nodes")
        nodes = (*nodes, *_nodes(node_path, context))
    path = import_files.located(context, folder, files.pods, "alibabaGpu", "pods")
    reader = _Pods(entry, str(path))
    taken = import_files.each(import_files.rows(path, POD_COLUMNS), reader.take)
    drafts = pod_drafts.select_drafts((draft for draft in taken if draft is not None), entry)
    pod_drafts.check_room(str(path), drafts, nodes, context)
    images = ImageChooser(entry, folder, context).choose(pod_drafts.applications(drafts))
    arrivals = pod_drafts.arrivals(drafts, images, entry)
    return Imported(nodes=nodes, arrivals=tuple(reader.bound_to_models(arrivals)), notes=tuple(reader.notes()))


def _nodes(path: Path, context: ImportContext) -> list[VirtualNodeSpec]:
    names = pod_drafts.UniqueNames()
    seen: dict[str, int] = {}

    def take(row: TableRow) -> VirtualNodeSpec:
        name = row.text("sn")
        if (first := seen.setdefault(name, row.line)) != row.line:
            raise row.wrong("sn", f"there is a second {name!r}, the first is on line {first}")
        has = {
            CPU: row.count("cpu_milli"),
            MEMORY: row.count("memory_mib") * MIB,
            PODS: USUAL_PODS,
            GPU_MILLI: row.count("gpu") * 1000,
        }
        model = row.optional("model")
        return msgspec.structs.replace(
            context.like,
            name=names.fresh(name),
            allocatable=tuple(sorted((one, amount) for one, amount in has.items() if amount)),
            labels={MODEL: model} if model else {},
        )

    return import_files.each(import_files.rows(path, NODE_COLUMNS), take)


class _Pods:
    """Converts rows to drafts of pods."""

    def __init__(self, entry: ImportEntry, source: str) -> None:
        self._window = pod_drafts.TraceWindow(entry)
        self._names = pod_drafts.UniqueNames()
        self._source = source
        self._prefix = f"{entry.name}-" if entry.name else ""
        self._seen: dict[str, int] = {}
        self._models: dict[str, NodeSelector] = {}
        self._kinds: dict[Amounts, str] = {}
        self._pending = 0

    def take(self, row: TableRow) -> PodDraft | None:
        """Return the draft of one pod; None if it is outside the window."""
        name = row.text("name")
        if (first := self._seen.setdefault(name, row.line)) != row.line:
            raise row.wrong("name", f"there is a second {name!r}, the first is on line {first}")
        pod_drafts.check_count(self._source, len(self._seen), row.line)
        created, scheduled, deleted = (row.time(f"{what}_time") for what in ("creation", "scheduled", "deletion"))
        began = (created or 0.0) if scheduled is None else scheduled
        if deleted is not None and deleted < began:
            raise row.wrong("deletion_time", f"{deleted:g} is before the pod began, at {began:g}")
        placed = self._window.place(created or 0.0, None if deleted is None else deleted - began)
        if placed is None:
            return None
        self._pending += scheduled is None
        asked = _requests(row)
        application = self._kinds.setdefault(asked, f"kind-{len(self._kinds) + 1}")
        fresh = self._names.fresh(f"{self._prefix}{name}")
        if spec := row.optional("gpu_spec"):
            models = tuple(model.strip() for model in spec.split("|"))
            self._models[fresh] = NodeSelector((NodeSelectorTerm((Requirement(MODEL, IN, models),)),))
        owner = f"{self._prefix}{application}"
        return PodDraft(
            at=placed[0],
            application=application,
            name=fresh,
            owner=Owner("ReplicaSet", owner, owner),
            asked=asked,
            life=PodLifecycle(seconds=placed[1], failures=-1 if row.optional("pod_phase") == "Failed" else 0),
            labels={APPLICATION: owner, "qos": row.optional("qos").lower()},
            line=row.line,
        )

    def bound_to_models(self, arrivals: Iterable[PodArrival]) -> Iterable[PodArrival]:
        """Add the node affinity of pods that name GPU models."""
        for arrival in arrivals:
            required = self._models.get(arrival.pod.name)
            if required is None:
                yield arrival
            else:
                pod = msgspec.structs.replace(arrival.pod, required_nodes=required)
                yield PodArrival(arrival.at, pod, arrival.life)

    def notes(self) -> Iterable[str]:
        """Yield sentences about rows that were changed or ignored."""
        if self._pending:
            yield f"{self._source}: {plural(self._pending, 'pod was', 'pods were')} never placed in the trace; they run as long as they waited"


def _requests(row: TableRow) -> Amounts:
    asked = {
        CPU: row.count("cpu_milli"),
        MEMORY: row.count("memory_mib") * MIB,
        GPU_MILLI: row.count("num_gpu") * row.count("gpu_milli"),
    }
    return tuple(sorted((name, amount) for name, amount in asked.items() if amount))
