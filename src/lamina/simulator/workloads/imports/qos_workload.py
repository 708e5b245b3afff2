"""
The workloads of the QoS-driven scheduling experiments (Farias da Silva et al., 2020): a CSV table without a header.

    submit, task, job, user, antiAffinity, priority, duration, end, cpu, memory, class, slo
    [, kind, replicas, completions, approach, nodePort, taskSeconds]

Every row is a controller called class-job, created at its `submit` second: a Deployment, or a Job whose pods run for
`taskSeconds` (unset: `duration`). Cpu is in cores and memory in GB. Pods get the row's priority, and its promise as
annotations. A Deployment is scaled to 0 at its `end`; -1 means never. Its `duration` is not used: in the published
runs, none had passed when the run ended. Pods of a Job that are preempted do not count as failed, as in the Kubernetes
versions of the experiments.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast, get_args

import msgspec

from lamina.model.pod import Container, Owner, Pod, PodTerm, PodUid, total_requests
from lamina.model.resources import CPU, MEMORY
from lamina.model.selectors import LabelSelector
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.cluster.virtual_node import HOSTNAME
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads.imports import import_files, pod_drafts
from lamina.simulator.workloads.imports.import_files import TableRow
from lamina.simulator.workloads.imports.import_schema import ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.imports.pod_drafts import ImageChooser, PodDraft
from lamina.simulator.workloads.qos_entries import QosEntry, QosMeasuring, with_promise
from lamina.simulator.workloads.scenario import ScenarioEvent

NEEDED: Final = (
    *("submit", "task", "job", "user", "antiAffinity", "priority"),
    *("duration", "end", "cpu", "memory", "class", "slo"),
)
COLUMNS: Final = (*NEEDED, "kind", "replicas", "completions", "approach", "nodePort", "taskSeconds")
KINDS: Final = ("deployment", "job")
GIGABYTE: Final = 10**9
NEVER: Final = "-1"
APPLICATION: Final = "app"
MOST_PRIORITY: Final = 2**31 - 1


class QosRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row, checked."""

    draft: PodDraft
    job: bool
    promise: QosEntry
    priority: int
    replicas: int
    completions: int
    alone: bool
    """Whether its pods must be on different nodes."""
    end: float | None


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read the table that an entry names."""
    assert entry.qos_workload is not None, "the entry is of this kind"
    path = import_files.located(context, folder, entry.qos_workload, "qosWorkload")
    table = _QosTable(entry, str(path))
    taken = import_files.each(import_files.headless_rows(path, COLUMNS), table.take)
    taken = sorted(taken, key=lambda row: row.draft.at)[: entry.limit]
    drafts = [row.draft for row in taken]
    nodes = pod_drafts.equal_nodes(entry, context)
    pod_drafts.check_room(str(path), drafts, nodes, context, "row")
    images = ImageChooser(entry, folder, context).choose(pod_drafts.applications(drafts))
    made = tuple(_controller(row, images[row.draft.application], entry.scheduler) for row in taken)
    ends = tuple(ScenarioEvent(row.end, "scale", row.draft.name) for row in taken if row.end is not None)
    return Imported(nodes=nodes, controllers=made, events=ends)


class _QosTable:
    """Checks rows."""

    def __init__(self, entry: ImportEntry, source: str) -> None:
        self._at = entry.at
        self._prefix = f"{entry.name}-" if entry.name else ""
        self._source = source
        self._lines: dict[str, int] = {}
        self._pods = 0

    def take(self, row: TableRow) -> QosRow:
        """Return a row, checked."""
        import_files.check_length(row, COLUMNS, len(NEEDED))
        kind = (row.optional("kind") or KINDS[0]).lower()
        if kind not in KINDS:
            raise row.wrong("kind", f"{row.text('kind')!r} is not a kind of controller; write deployment or job")
        job, name = kind == "job", self._name(row)
        replicas, completions = (_optional_count(row, field) for field in ("replicas", "completions"))
        self._pods += max(1, completions if job else replicas)
        pod_drafts.check_count(self._source, self._pods, row.line)
        submit = _seconds(row, "submit")
        return QosRow(
            draft=PodDraft(
                at=round(self._at + submit, pod_drafts.DECIMALS),
                application=row.text("class"),
                name=name,
                owner=Owner("Job" if job else "Deployment", name, name),
                asked=((CPU, round(row.number("cpu") * 1000)), (MEMORY, round(row.number("memory") * GIGABYTE))),
                life=_life(row, job=job),
                labels={APPLICATION: name},
                line=row.line,
            ),
            job=job,
            promise=_promise(row),
            priority=_priority(row),
            replicas=replicas,
            completions=completions,
            alone=_flag(row, "antiAffinity"),
            end=self._end(row, submit, job=job),
        )

    def _name(self, row: TableRow) -> str:
        name = pod_drafts.plain_name(f"{self._prefix}{row.text('class')}-{row.text('job')}")
        if (first := self._lines.setdefault(name, row.line)) != row.line:
            raise row.wrong("job", f"there is a second {name!r}, the first is on line {first}; number the jobs")
        return name

    def _end(self, row: TableRow, submit: float, *, job: bool) -> float | None:
        """Return when a Deployment is scaled to 0."""
        if job or row.optional("end") in ("", NEVER):
            return None
        if (end := _seconds(row, "end")) < submit:
            raise row.wrong("end", f"{end:g} is before the row's submission at {submit:g}; write -1 for no end")
        return round(self._at + end, pod_drafts.DECIMALS)


def _seconds(row: TableRow, column: str) -> float:
    row.text(column)
    return row.time(column) or 0.0


def _optional_count(row: TableRow, column: str) -> int:
    return row.count(column) if row.optional(column) else 1


def _flag(row: TableRow, column: str) -> bool:
    if (number := row.count(column)) > 1:
        raise row.wrong(column, f"{number} is neither 0 (no) nor 1 (yes)")
    return number == 1


def _priority(row: TableRow) -> int:
    if (priority := row.count("priority")) > MOST_PRIORITY:
        raise row.wrong("priority", f"{priority} is above the largest priority, {MOST_PRIORITY}")
    return priority


def _promise(row: TableRow) -> QosEntry:
    if (slo := row.number("slo")) > 1.0:
        raise row.wrong("slo", f"{slo:g} is above 1; write the availability as a share, for example 0.9")
    approach = row.optional("approach").lower()
    if approach and approach not in get_args(QosMeasuring):
        raise row.wrong("approach", f"{approach!r} is no approach; write {', '.join(get_args(QosMeasuring))}")
    measuring = cast(QosMeasuring, approach) if approach else None
    return QosEntry(slo=slo, name=pod_drafts.plain_name(row.text("class")), measuring=measuring)


def _life(row: TableRow, *, job: bool) -> PodLifecycle:
    duration = _seconds(row, "duration")
    if not job:
        return PodLifecycle(restart="Always")
    seconds = _seconds(row, "taskSeconds") if row.optional("taskSeconds") else duration
    if not seconds:
        raise row.wrong("taskSeconds", "the pods of a job have to run for more than 0 seconds")
    return PodLifecycle(seconds=seconds)


def _controller(row: QosRow, image: str, scheduler: str) -> ControllerSpec:
    draft = row.draft
    containers = (Container(image, draft.asked),)
    requests, ranked = total_requests(containers)
    pod = Pod(
        uid=PodUid(draft.name),
        name=draft.name,
        containers=containers,
        requests=requests,
        scoring_requests=ranked,
        priority=row.priority,
        scheduler_name=scheduler,
        labels=draft.labels,
        repels=tuple(_apart(draft.name) if row.alone else ()),
    )
    return ControllerSpec(
        kind="Job" if row.job else "Deployment",
        name=draft.name,
        at=draft.at,
        template=with_promise(pod, draft.name, row.promise),
        life=draft.life,
        replicas=row.completions if row.job else row.replicas,
        parallelism=row.replicas,
        ignore_disruptions=row.job,
    )


def _apart(name: str) -> Iterator[PodTerm]:
    yield PodTerm(HOSTNAME, LabelSelector(((APPLICATION, name),)))
