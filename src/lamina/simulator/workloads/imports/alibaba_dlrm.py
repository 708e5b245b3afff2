"""
Alibaba's trace of disaggregated recommendation models (cluster-trace-gpu-v2025): instances become pods.

    app_name             the application: its pods have one owner and run one image
    creation_time        when the pod arrives; empty: it existed before the trace and arrives at the start
    deletion_time        when it ends, counted from scheduled_time if set; empty: it runs beyond the trace
    …_request            cpu in cores, memory and disk in GiB, gpu as nvidia.com/gpu, rdma as `RDMA`, in hundredths
    max_instance_per_node  1: anti-affinity between pods of the application; more than 1 is noted and ignored

The trace has no nodes: the scenario or the entry's `nodes` must define them, with the resources that pods request.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from lamina.model.pod import Owner, PodTerm
from lamina.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, Amounts
from lamina.model.selectors import LabelSelector
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.cluster.virtual_node import HOSTNAME
from lamina.simulator.workloads.imports import import_files, pod_drafts
from lamina.simulator.workloads.imports.import_files import TableRow
from lamina.simulator.workloads.imports.import_schema import ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.imports.pod_drafts import ImageChooser, PodDraft
from lamina.simulator.workloads.scenario import PodArrival

GPU: Final = "nvidia.com/gpu"
RDMA: Final = "rdma/percent"
GIB: Final = 1024**3
APPLICATION: Final = "app"
ROLE: Final = "role"

NEEDED: Final = (
    *("instance_sn", "role", "app_name", "cpu_request", "gpu_request", "rdma_request", "memory_request"),
    *("disk_request", "max_instance_per_node", "creation_time", "scheduled_time", "deletion_time"),
)
KNOWN: Final = ("cpu_limit", "gpu_limit", "rdma_limit", "memory_limit", "disk_limit")


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read the table that an entry names."""
    assert entry.alibaba_dlrm is not None, "the entry is of this kind"
    path = import_files.located(context, folder, entry.alibaba_dlrm, "alibabaDlrm")
    reader = _Instances(entry, str(path))
    taken = import_files.each(import_files.rows(path, NEEDED, KNOWN), reader.take)
    drafts = pod_drafts.select_drafts((draft for draft in taken if draft is not None), entry)
    nodes = pod_drafts.equal_nodes(entry, context)
    pod_drafts.check_room(str(path), drafts, nodes, context, "instance")
    images = ImageChooser(entry, folder, context).choose(pod_drafts.applications(drafts))
    arrivals = pod_drafts.arrivals(drafts, images, entry)
    return Imported(nodes=nodes, arrivals=tuple(reader.apart(arrivals)), notes=tuple(reader.notes(str(path))))


class _Instances:
    """Converts rows to drafts of pods."""

    def __init__(self, entry: ImportEntry, source: str) -> None:
        self._window = pod_drafts.TraceWindow(entry)
        self._names = pod_drafts.UniqueNames()
        self._source = source
        self._prefix = f"{entry.name}-" if entry.name else ""
        self._seen: dict[str, int] = {}
        self._alone: set[str] = set()
        self._crowded: set[str] = set()

    def take(self, row: TableRow) -> PodDraft | None:
        """Return the draft of one instance; None if it is outside the window."""
        name, application = row.text("instance_sn"), row.text("app_name")
        if (first := self._seen.setdefault(name, row.line)) != row.line:
            raise row.wrong("instance_sn", f"there is a second {name!r}, the first is on line {first}")
        pod_drafts.check_count(self._source, len(self._seen), row.line)
        created, scheduled, deleted = (row.time(f"{what}_time") for what in ("creation", "scheduled", "deletion"))
        began = created if scheduled is None else scheduled
        if deleted is not None and deleted < (began or 0.0):
            raise row.wrong("deletion_time", f"{deleted:g} is before the instance began, at {began:g}")
        seconds = None if deleted is None else deleted - (began or 0.0)
        placed = self._window.place(created or 0.0, seconds)
        if placed is None:
            return None
        self._note_neighbours(row, application)
        owner = f"{self._prefix}{pod_drafts.plain_name(application)}"
        return PodDraft(
            at=placed[0],
            application=application,
            name=self._names.fresh(f"{self._prefix}{name}"),
            owner=Owner("ReplicaSet", owner, owner),
            asked=_requests(row),
            life=PodLifecycle(seconds=placed[1]),
            labels={APPLICATION: owner, ROLE: row.optional("role").lower()},
            line=row.line,
        )

    def _note_neighbours(self, row: TableRow, application: str) -> None:
        # -1 means any number.
        if row.optional("max_instance_per_node") not in ("", "-1"):
            (self._alone if row.count("max_instance_per_node") == 1 else self._crowded).add(application)

    def apart(self, arrivals: Iterable[PodArrival]) -> Iterable[PodArrival]:
        """Add anti-affinity to pods of applications that allow one instance per node."""
        owners = {f"{self._prefix}{pod_drafts.plain_name(one)}" for one in self._alone}
        for arrival in arrivals:
            name = arrival.pod.labels[APPLICATION]
            if name not in owners:
                yield arrival
                continue
            term = PodTerm(HOSTNAME, LabelSelector(((APPLICATION, name),)))
            yield PodArrival(arrival.at, msgspec.structs.replace(arrival.pod, repels=(term,)), arrival.life)

    def notes(self, source: str) -> Iterable[str]:
        """Yield sentences about rows that were changed or ignored."""
        if self._crowded:
            yield f"{source}: {len(self._crowded)} applications allow several, but not any number of, pods on a node; ignored"


def _requests(row: TableRow) -> Amounts:
    asked = {
        CPU: round(row.number("cpu_request") * 1000),
        MEMORY: round(row.number("memory_request") * GIB),
        EPHEMERAL_STORAGE: round(row.number("disk_request") * GIB),
        GPU: row.count("gpu_request"),
        RDMA: row.count("rdma_request"),
    }
    return tuple(sorted((name, amount) for name, amount in asked.items() if amount))
