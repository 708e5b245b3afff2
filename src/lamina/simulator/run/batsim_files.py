"""
Results of a run in Batsim's formats, as version 4 writes them: ``jobs.csv``, ``schedule.csv``, ``machine_states.csv``.

Tools for Batsim's results (evalys, pybatsim) can read these files. All pods of a job of an imported Batsim workload
form one row; every other pod is a job of its own. Times are seconds of the run.

    starting_time     start of the job's last pod           waiting_time     starting_time - submission: queue and pulls
    finish_time       end of its last pod                   execution_time   finish_time - starting_time
    stretch           turnaround / execution                allocated        node numbers, in the order of the run

Values that do not exist (a job that never started) are empty. Energy is not simulated and is -1. The time between
binding and running is waiting time, because the job's program does not run yet.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from lamina.simulator.cluster.pod_runner import DEADLINE
from lamina.simulator.run.result import PodOutcome, SimulationResult
from lamina.simulator.workloads import Scenario
from lamina.simulator.workloads.imports.batsim_job import BatsimJob, job_of
from lamina.wire.batsim.interval_sets import write_intervals
from lamina.wire.batsim.job_fields import SEPARATOR
from lamina.wire.batsim.job_states import FAILED, KILLED, REJECTED, RUNNING, SUBMITTED, SUCCESS, WALLTIME

COLUMNS: Final = (
    *("job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time"),
    *("success", "final_state", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time"),
    *("stretch", "allocated_resources", "consumed_energy", "metadata"),
)
STATES: Final = ("time", "nb_sleeping", "nb_switching_on", "nb_switching_off", "nb_idle", "nb_computing")
VERSION: Final = "4.2.0"
"""The version of Batsim whose formats are used."""

NO_ENERGY: Final = -1


class BatsimJobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of ``jobs.csv``."""

    job: BatsimJob
    state: str
    submitted: float
    started: float | None
    ended: float | None
    nodes: tuple[int, ...]
    """Sorted numbers of the nodes it ran on, without duplicates."""
    seconds: float
    """Sum of the run times of its pods."""

    @property
    def is_over(self) -> bool:
        """Whether it started and ended, successfully or not."""
        return self.started is not None and self.ended is not None and self.state not in (REJECTED, RUNNING, SUBMITTED)

    @property
    def execution(self) -> float:
        """Seconds from start to end."""
        return self._ended - self._started

    @property
    def waiting(self) -> float:
        """Seconds from submission to start."""
        return self._started - self.submitted

    @property
    def turnaround(self) -> float:
        """Seconds from submission to end."""
        return self._ended - self.submitted

    @property
    def stretch(self) -> float:
        """Turnaround / execution; 1 if the execution took no time."""
        return self.turnaround / self.execution if self.execution > 0 else 1.0

    @property
    def _started(self) -> float:
        assert self.started is not None, "only defined when the job is over"
        return self.started

    @property
    def _ended(self) -> float:
        assert self.ended is not None, "only defined when the job is over"
        return self.ended


class JobNotes(msgspec.Struct, frozen=True):
    """What a decision process added to the jobs of a run."""

    registered: Mapping[str, BatsimJob] = {}
    """Jobs that it registered, by the pods of the jobs."""
    metadata: Mapping[str, str] = {}
    """Its texts about jobs, by ``workload!job``."""


NO_NOTES: Final = JobNotes()


def jobs_csv(result: SimulationResult, scenario: Scenario | None = None, notes: JobNotes = NO_NOTES) -> bytes:
    """Return one row per job, in order of submission; without *scenario*, one row per pod."""
    return _table(COLUMNS, (_row(job, notes.metadata) for job in jobs(result, scenario, notes)))


def schedule_csv(
    result: SimulationResult,
    scenario: Scenario | None = None,
    notes: JobNotes = NO_NOTES,
    *,
    scheduling_seconds: float = 0.0,
) -> bytes:
    """
    Return one row about the whole run, with keys in alphabetical order.

    *scheduling_seconds* is the measured decision time. It is 0 by default, like ``simulation_time``, so that the same
    run gives the same bytes.
    """
    figures = schedule(jobs(result, scenario, notes), len(result.nodes), scheduling_seconds)
    return _table(tuple(figures), [tuple(figures.values())])


def machine_states_csv(result: SimulationResult) -> bytes:
    """
    Return the number of machines in each state after every change.

    A machine computes while a pod runs on it. Power states are not simulated, so all others are idle.
    """
    changes: dict[float, dict[str, int]] = {0.0: {}}
    for pod in result.pods:
        if pod.started is not None:
            for time, step in ((pod.started, 1), (pod.ended, -1)):
                if time is not None:
                    at = changes.setdefault(time, {})
                    at[pod.node] = at.get(pod.node, 0) + step
    running: dict[str, int] = {}
    rows: list[tuple[object, ...]] = []
    computing = 0
    for time in sorted(changes):
        for node, step in changes[time].items():
            before = running.get(node, 0)
            running[node] = before + step
            computing += (before + step > 0) - (before > 0)
        states = (0, 0, 0, len(result.nodes) - computing, computing)
        if not rows or rows[-1][1:] != states:
            rows.append((time, *states))
    return _table(STATES, rows)


def jobs(result: SimulationResult, scenario: Scenario | None = None, notes: JobNotes = NO_NOTES) -> list[BatsimJobRow]:
    """Group the pods of a run into jobs, in order of submission."""
    arrivals = () if scenario is None else scenario.arrivals
    known = {arrival.pod.key: job_of(arrival.pod.annotations) for arrival in arrivals} | {**notes.registered}
    numbers = {node.node: number for number, node in enumerate(result.nodes)}
    pods: dict[BatsimJob, list[PodOutcome]] = {}
    for pod in result.pods:
        job = known.get(pod.pod)
        if job is None:
            walltime = -1.0 if pod.deadline is None else pod.deadline
            job = BatsimJob(result.scenario, pod.pod.removeprefix("default/"), "", 1, walltime)
        pods.setdefault(job, []).append(pod)
    return [_joined(job, found, numbers) for job, found in pods.items()]


def schedule(found: Iterable[BatsimJobRow], machines: int, scheduling_seconds: float) -> dict[str, object]:
    """Return the values of ``schedule.csv``; means are over jobs that started and ended."""
    found = list(found)
    over = [job for job in found if job.is_over]
    good = sum(job.state == SUCCESS for job in over)
    makespan = max((job.ended for job in over if job.ended is not None), default=0.0)
    computing = sum(job.seconds for job in over)
    return {
        "batsim_version": VERSION,
        "consumed_joules": NO_ENERGY,
        "makespan": makespan,
        "max_slowdown": max((job.stretch for job in over), default=0.0),
        "max_turnaround_time": max((job.turnaround for job in over), default=0.0),
        "max_waiting_time": max((job.waiting for job in over), default=0.0),
        "mean_slowdown": _mean([job.stretch for job in over]),
        "mean_turnaround_time": _mean([job.turnaround for job in over]),
        "mean_waiting_time": _mean([job.waiting for job in over]),
        "nb_computing_machines": machines,
        "nb_grouped_switches": 0,
        "nb_jobs": len(found),
        "nb_jobs_finished": len(over),
        "nb_jobs_killed": sum(job.state in (WALLTIME, KILLED) for job in over),
        "nb_jobs_success": good,
        "nb_machine_switches": 0,
        "scheduling_time": scheduling_seconds,
        "simulation_time": 0.0,
        "success_rate": good / len(found) if found else 0.0,
        "time_computing": computing,
        # Pods share nodes, so the computing time can exceed the machines' time; idle time is then 0.
        "time_idle": max(0.0, machines * makespan - computing),
        "time_sleeping": 0.0,
        "time_switching_off": 0.0,
        "time_switching_on": 0.0,
        "time_unavailable": 0.0,
    }


def _joined(job: BatsimJob, pods: list[PodOutcome], numbers: Mapping[str, int]) -> BatsimJobRow:
    starts = [pod.started for pod in pods if pod.started is not None]
    ends = [pod.ended for pod in pods if pod.ended is not None]
    used = {numbers[pod.node] for pod in pods if pod.node in numbers and pod.started is not None}
    return BatsimJobRow(
        job=job,
        state=_state(pods),
        submitted=min(pod.arrived for pod in pods),
        started=max(starts) if len(starts) == len(pods) else None,
        ended=max(ends) if len(ends) == len(pods) else None,
        nodes=tuple(sorted(used)),
        seconds=sum(pod.ended - pod.started for pod in pods if pod.ended is not None and pod.started is not None),
    )


def _state(pods: list[PodOutcome]) -> str:
    """Return Batsim's state for the worst phase among the job's pods."""
    phases = {pod.phase for pod in pods}
    if "rejected" in phases:
        return REJECTED
    if "failed" in phases:
        return WALLTIME if any(pod.phase == "failed" and pod.reason == DEADLINE for pod in pods) else FAILED
    if "removed" in phases:
        return KILLED if any(pod.bound is not None for pod in pods) else REJECTED
    if phases == {"finished"}:
        return SUCCESS
    return RUNNING if any(pod.started is not None for pod in pods) else SUBMITTED


def _row(job: BatsimJobRow, metadata: Mapping[str, str]) -> tuple[object, ...]:
    known = job.job
    over = job.is_over
    return (
        known.job,
        known.workload,
        known.profile,
        job.submitted,
        known.res,
        known.walltime,
        int(job.state == SUCCESS),
        job.state,
        job.started,
        job.execution if over else None,
        job.ended,
        job.waiting if job.started is not None else None,
        job.turnaround if over else None,
        job.stretch if over else None,
        write_intervals(job.nodes),
        NO_ENERGY,
        metadata.get(f"{known.workload}{SEPARATOR}{known.job}", ""),
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _table(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_written(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _written(value: object) -> str:
    """Return a value in Batsim's notation: floats with six decimals, None as an empty string."""
    if value is None:
        return ""
    return f"{value:.6f}" if isinstance(value, float) else str(value)
