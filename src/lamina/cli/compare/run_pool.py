"""
Runs of one scenario in parallel processes; results are in the order of the tasks.

Each process loads scenario and profile itself: only names go in and only figures come out. No process outlives the
command: not after Ctrl-C, not after a failed run, and not after the command is killed.
"""

import functools
import multiprocessing
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lamina.cli.options.scheduler_profile import configuration
from lamina.cli.output.command_name import command_name
from lamina.cli.output.interruption import TERMINATED, Terminated
from lamina.cli.output.run_progress import QUIET_SECONDS
from lamina.model.errors import LaminaError
from lamina.scheduling.runtime.explanation import Detail
from lamina.simulator.decider import RunStoppedError
from lamina.simulator.run import SimulationResult, simulate, summary
from lamina.simulator.workloads import Scenario, load_scenario
from lamina.trace.trace_writer import atomic_write

if TYPE_CHECKING:
    from lamina.cli.report.run_observer import ReportObserver

RunSummary = dict[str, Any]
ReportPart = Literal["none", "figures", "pods"]

RECORD: Final = "report_record"
"""Key of the record for a report in what a run returns; it is no part of the summary."""

ENDED_EARLY: Final = "a process ended in the middle of a run, as when memory runs out; try again with fewer --jobs"


class RunTask(msgspec.Struct, frozen=True):
    """One run to do."""

    scenario: Path
    profile: str
    """A name or a file, as the user wrote it."""
    seed: int
    data: Path | None = None
    """Folder with the files that the scenario imports; None for the scenario's own folder."""
    file: str = ""
    """File to read the profile from; empty to use `profile`."""
    foreign: bool = False
    """Whether `profile` is a foreign scheduler: a name or a command."""
    report: ReportPart = "none"
    """What a report needs of the run; the summary then has it under `RECORD`."""
    report_share: int = 1
    """Number of runs with pods in that report."""
    keep: Path | None = None
    """File to write the summary to as soon as the run has ended."""


def reported(tasks: Sequence[RunTask]) -> list[RunTask]:
    """Return the tasks with what a report needs: pods of the first seed, figures of the others."""
    first, share = min(task.seed for task in tasks), len({task.profile for task in tasks})
    return [
        msgspec.structs.replace(task, report="pods" if task.seed == first else "figures", report_share=share)
        for task in tasks
    ]


class RunFailedError(LaminaError):
    """A run failed; the message names the run, the reason and the command that repeats it alone."""

    exit_code: ClassVar = 1

    def __init__(self, task: RunTask, reason: str) -> None:
        super().__init__(task, reason)
        self.task, self.reason = task, reason

    def __str__(self) -> str:
        task = self.task
        option = "--scheduler" if task.foreign else "--profile"
        words = [str(task.scenario), option, task.profile, "--seed", str(task.seed)]
        words += ["--data", str(task.data)] if task.data else []
        again = f"{command_name()} simulate {shlex.join(words)}"
        return f"the run under {task.profile} with seed {task.seed} failed: {self.reason}\nto see it alone: {again}"


class PoolBrokenError(LaminaError):
    """A worker process has ended unexpectedly."""

    exit_code: ClassVar = 1

    def __str__(self) -> str:
        return ENDED_EARLY


def cores() -> int:
    """Return how many processes can run in parallel here."""
    # A container or batch system may give this process fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# One entry is enough: tasks are sorted by seed, and a large scenario takes longer to read than to keep.
@functools.lru_cache(maxsize=1)
def scenario_for(path: Path, seed: int, data: Path | None = None) -> Scenario:
    """Load a scenario with the values it has under *seed*."""
    return load_scenario(path, seed, data)


def run_one(task: RunTask) -> RunSummary:
    """Do one run and return its summary without the per-node lines."""
    try:
        scenario = scenario_for(task.scenario, task.seed, task.data).under(task.profile)
        if task.foreign:
            figures = _run_foreign(task, scenario)
        else:
            config = configuration(task.file or task.profile)
            observer = _report_observer(task)
            watch = None if observer is None else observer.observe
            detail: Detail = "brief" if task.report == "pods" else "none"
            result = simulate(scenario, config, seed=task.seed, detail=detail, observer=watch)
            figures = _figures(task, scenario, result, observer)
    except Exception as error:
        reason = str(error) if isinstance(error, LaminaError) else f"{type(error).__name__}: {error}"
        raise RunFailedError(task, reason) from error
    del figures["nodes"]
    if task.keep is not None:
        atomic_write(task.keep, msgspec.json.encode(figures) + b"\n")
    return figures


def _run_foreign(task: RunTask, scenario: Scenario) -> RunSummary:
    from lamina.apiserver.batsim.batsim_peer import batsim_peer, is_batsim
    from lamina.apiserver.batsim.batsim_run import BatsimRun
    from lamina.apiserver.foreign_run import ForeignRun, chosen_scheduler

    running: BatsimRun | ForeignRun
    if is_batsim(task.profile):
        running = BatsimRun(batsim_peer(task.profile), scenario, seed=task.seed)
    else:
        running = ForeignRun(chosen_scheduler(task.profile), scenario=scenario.name, seed=task.seed)
    with running as run:
        observer = _report_observer(task)
        watch = None if observer is None else observer.observe
        result = simulate(
            scenario, decider=run.make_decider, seed=task.seed, detail="none", latency=run.latency, observer=watch
        )
        if result.stopped:
            raise RunStoppedError(result.stopped)
        return {**_figures(task, scenario, result, observer), **run.figures()}


def _report_observer(task: RunTask) -> "ReportObserver | None":
    if task.report == "none":
        return None
    from lamina.cli.report.run_observer import ReportObserver

    return ReportObserver(detail=task.report == "pods")


def _figures(
    task: RunTask, scenario: Scenario, result: SimulationResult, observer: "ReportObserver | None"
) -> RunSummary:
    """Return the summary, with the record for a report if the task wants one."""
    figures = summary(result)
    if observer is not None:
        figures[RECORD] = observer.finish(result, scenario, figures, task.report_share)
    return figures


def run_all(tasks: Sequence[RunTask], jobs: int, done: Callable[[], None]) -> list[RunSummary]:
    """
    Do all runs, *jobs* at a time, and call *done* after each.

    The first run that fails ends the others. With one job, all runs happen in this process. Runs of foreign schedulers
    come last and one after the other: in parallel, they would disturb each other's timing.
    """
    own = [task for task in tasks if not task.foreign]
    found: dict[RunTask, RunSummary] = {}
    if min(jobs, len(own)) > 1:
        found.update(zip(own, _in_processes(own, min(jobs, len(own)), done), strict=True))
    for task in tasks:
        if task not in found:
            found[task] = run_one(task)
            done()
    return [found[task] for task in tasks]


def _in_processes(tasks: Sequence[RunTask], jobs: int, done: Callable[[], None]) -> list[RunSummary]:
    others = multiprocessing.active_children()
    # Spawned, not forked: a fork copies locks that another thread may be holding.
    context = multiprocessing.get_context("spawn")
    with _noting_interrupts() as interrupts:
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_follow_the_command)
        futures = _submit(pool, tasks)
    try:
        if interrupts:
            raise KeyboardInterrupt if signal.SIGINT in interrupts else Terminated(TERMINATED)
        for future in as_completed(futures):
            future.result()
            done()
        return [future.result() for future in futures]
    except BrokenProcessPool as error:
        raise PoolBrokenError from error
    except BaseException:
        # Cancel the remaining runs: waiting for them would delay Ctrl-C.
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child not in others:
                child.terminate()
        raise
    finally:
        pool.shutdown()


@contextmanager
def _noting_interrupts() -> Iterator[list[int]]:
    """
    Collect signals that would interrupt the command while processes start: a half-started process prints a traceback.

    An ignored signal stays ignored: in the background of a shell, Ctrl-C is meant for another program.
    """
    noted: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # Only signals that a Python handler turns into an exception; by default SIGTERM ends the process at once.
    heard = [number for number, handler in before.items() if callable(handler)]
    for number in heard:
        signal.signal(number, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        for number in heard:
            signal.signal(number, before[number])


def _submit(pool: ProcessPoolExecutor, tasks: Sequence[RunTask]) -> list[Future[RunSummary]]:
    """Start the processes with Ctrl-C blocked: this process receives the signal and ends them."""
    # A process inherits the signals that are blocked in the thread that starts it.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return [pool.submit(run_one, task) for task in tasks]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _follow_the_command() -> None:
    """End this process when its parent process has ended, for whatever reason."""
    threading.Thread(target=_wait_and_leave, daemon=True).start()


def _wait_and_leave() -> None:
    command = multiprocessing.parent_process()
    if command is not None:
        command.join()
        os._exit(1)


class RunPoolProgress:
    """Progress of the runs: nothing for two seconds, then the number of finished runs; nothing in a pipe."""

    def __init__(self, runs: int) -> None:
        """Prepare a bar for this many runs."""
        self._runs, self._done = runs, 0
        self._progress = Progress(
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} runs done"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("", total=runs)
        # A run can take minutes: after two seconds, none may have finished.
        self._timer = threading.Timer(QUIET_SECONDS, self._progress.start)
        self._timer.daemon = True
        self._visible = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        """Start the timer; nothing is drawn yet."""
        if self._visible:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bar; an interruption gets a note with the number of finished runs."""
        if self._visible:
            self._timer.cancel()
            self._timer.join()
        if self._progress.live.is_started:
            self._progress.stop()
        if isinstance(error, KeyboardInterrupt | Terminated):
            error.add_note(f"{self._done} of {self._runs} runs were done")

    def done(self) -> None:
        """Count one finished run."""
        self._done += 1
        self._progress.advance(self._task)
