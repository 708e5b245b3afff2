"""
Many runs of one scenario, side by side in processes of their own; the results in the order they were asked for.

Called by commands that compare. Each process loads scenario and profile itself, so that nothing but names goes in and
nothing but figures comes out. No process outlives the command: not after Ctrl-C, not when a run fails, and not when
the command itself is killed.
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
from typing import Any, ClassVar, Final, Self

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lamina.cli.options.scheduler_profile import configuration
from lamina.cli.output.command_name import command_name
from lamina.cli.output.interruption import TERMINATED, Terminated
from lamina.cli.output.run_progress import QUIET_SECONDS
from lamina.model.errors import LaminaError
from lamina.simulator.run import simulate, summary
from lamina.simulator.workloads import Scenario, load_scenario

RunSummary = dict[str, Any]

ENDED_EARLY: Final = "a process ended in the middle of a run, as when memory runs out; try again with fewer --jobs"


class RunTask(msgspec.Struct, frozen=True):
    """One run that is wanted."""

    scenario: Path
    profile: str
    """A name or a file, as a person wrote it."""
    seed: int
    data: Path | None = None
    """Folder with the files that the scenario imports; None: its own."""
    file: str = ""
    """Where the profile is read from; empty: as `profile` says."""


class RunFailedError(LaminaError):
    """A run came to no end; says which one, why, and how to look at it alone."""

    exit_code: ClassVar = 1

    def __init__(self, task: RunTask, reason: str) -> None:
        super().__init__(task, reason)
        self.task, self.reason = task, reason

    def __str__(self) -> str:
        task = self.task
        words = [str(task.scenario), "--profile", task.profile, "--seed", str(task.seed)]
        words += ["--data", str(task.data)] if task.data else []
        again = f"{command_name()} simulate {shlex.join(words)}"
        return f"the run under {task.profile} with seed {task.seed} failed: {self.reason}\nto see it alone: {again}"


class PoolBrokenError(LaminaError):
    """A process that was to do runs is gone."""

    exit_code: ClassVar = 1

    def __str__(self) -> str:
        return ENDED_EARLY


def cores() -> int:
    """How many processes can run side by side here."""
    # Where a container or a batch system gives this process fewer cores than there are, that number counts.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# One is enough: tasks come seed by seed, and a large scenario takes longer to read than to keep.
@functools.lru_cache(maxsize=1)
def scenario_for(path: Path, seed: int, data: Path | None = None) -> Scenario:
    """Load a scenario as it is under a seed."""
    return load_scenario(path, seed, data)


def run_one(task: RunTask) -> RunSummary:
    """Do one run and return its summary without the lines for single nodes."""
    try:
        scenario = scenario_for(task.scenario, task.seed, task.data).under(task.profile)
        figures = summary(simulate(scenario, configuration(task.file or task.profile), seed=task.seed, detail="none"))
    except Exception as error:
        reason = str(error) if isinstance(error, LaminaError) else f"{type(error).__name__}: {error}"
        raise RunFailedError(task, reason) from error
    del figures["nodes"]
    return figures


def run_all(tasks: Sequence[RunTask], jobs: int, done: Callable[[], None]) -> list[RunSummary]:
    """
    Do all runs, *jobs* at a time, and call *done* after each.

    The first run that fails ends the others. With one job everything happens in this process.
    """
    if min(jobs, len(tasks)) > 1:
        return _in_processes(tasks, min(jobs, len(tasks)), done)
    results = []
    for task in tasks:
        results.append(run_one(task))
        done()
    return results


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
        # What is left is not wanted any more; waiting for it would be all that Ctrl-C does.
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
    Collect the signals that would interrupt the command: a process that is half started complains.

    A signal that is ignored stays ignored: in the background of a shell, Ctrl-C is meant for another program.
    """
    noted: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # Only what a handler of Python's would make an exception of; by default SIGTERM ends the process at once.
    heard = [number for number, handler in before.items() if callable(handler)]
    for number in heard:
        signal.signal(number, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        for number in heard:
            signal.signal(number, before[number])


def _submit(pool: ProcessPoolExecutor, tasks: Sequence[RunTask]) -> list[Future[RunSummary]]:
    """Start the processes, deaf to Ctrl-C: this one hears it and ends them, and they have nothing to say to it."""
    # A process inherits what is blocked in the thread that starts it.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return [pool.submit(run_one, task) for task in tasks]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _follow_the_command() -> None:
    """End this process when the one that started it is gone, however it went."""
    threading.Thread(target=_wait_and_leave, daemon=True).start()


def _wait_and_leave() -> None:
    command = multiprocessing.parent_process()
    if command is not None:
        command.join()
        os._exit(1)


class RunPoolProgress:
    """What a person sees meanwhile: nothing for two seconds, then how many runs are done; nothing at all in a pipe."""

    def __init__(self, runs: int) -> None:
        """Expect this many runs."""
        self._runs, self._done = runs, 0
        self._progress = Progress(
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} runs done"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("", total=runs)
        # A run may take minutes, and none may be done when the two seconds are over.
        self._timer = threading.Timer(QUIET_SECONDS, self._progress.start)
        self._timer.daemon = True
        self._visible = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        """Start counting; nothing is drawn yet."""
        if self._visible:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away; an interruption reports how far the work was."""
        if self._visible:
            self._timer.cancel()
            self._timer.join()
        if self._progress.live.is_started:
            self._progress.stop()
        if isinstance(error, KeyboardInterrupt | Terminated):
            error.add_note(f"{self._done} of {self._runs} runs were done")

    def done(self) -> None:
        """Count one more run."""
        self._done += 1
        self._progress.advance(self._task)
