"""``--scheduler``, ``--settle``, ``--batsim``, ``--decisions`` and ``--replay`` of `lamina simulate`."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from lamina.apiserver.batsim.batsim_peer import PREFIX, BatsimPeer, batsim_peer, is_batsim
from lamina.apiserver.batsim.batsim_run import BatsimRun, RepeatedBatsimRun
from lamina.apiserver.foreign_run import ForeignRun, ForeignScheduler, RepeatedRun, RunFigures, chosen_scheduler
from lamina.apiserver.scheduler_profiles import PROFILES
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.simulator.batsim.message_log import MESSAGE_FORMAT
from lamina.simulator.facade.decision_log import ByteSink
from lamina.simulator.run.latency import Latency
from lamina.simulator.workloads import Scenario
from lamina.simulator.workloads.scenario_loader import place_of

HEAD: Final = 256
"""Bytes of a log in which its format is named."""
LARGEST_LOG: Final = 8 * 1024**3
"""Most bytes of a decision log that is read."""


class ForeignOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a run that is not scheduled by Lamina."""

    scheduler: str | None = None
    settle: str | None = None
    batsim: tuple[str, ...] = ()
    decisions: Path | None = None
    replay: Path | None = None

    @property
    def given(self) -> bool:
        """Whether another scheduler than Lamina's decides."""
        return self.scheduler is not None or self.replay is not None

    def check(self, profile: str | None) -> None:
        """Raise InputError for options that exclude each other."""
        first = "--scheduler" if self.scheduler is not None else "--replay"
        mistakes = []
        if self.given and profile is not None:
            mistakes.append(Mistake(first, "not together with --profile: one scheduler decides; use one of them"))
        if self.scheduler is not None and self.replay is not None:
            mistakes.append(Mistake("--replay", "repeats a run without its scheduler; omit --scheduler"))
        for name, value in (
            ("--settle", self.settle),
            ("--decisions", self.decisions),
            ("--batsim", self.batsim or None),
        ):
            if value is not None and self.scheduler is None:
                mistakes.append(Mistake(name, "is about a scheduler that --scheduler names; add it"))
        if self.scheduler is not None and is_batsim(self.scheduler):
            if self.settle is not None:
                mistakes.append(Mistake("--settle", f"a scheduler after {PREFIX} answers when it has decided; omit it"))
        elif self.batsim and self.scheduler is not None:
            mistakes.append(
                Mistake("--batsim", f"is about a scheduler that is named with {PREFIX}; write it before the name")
            )
        if mistakes:
            raise InputError(mistakes)


def scheduler_of(scenario: Scenario, file: Path) -> str:
    """
    Return the foreign scheduler that a scenario *file* names; empty if it names none.

    A file can name a registered scheduler only, so that nothing in it is executed. Raises InputError.
    """
    name = scenario.scheduler
    if not name:
        return ""
    source, line = place_of(file, "scheduler")
    if name not in PROFILES:
        message = f"{shown(name)} is no registered scheduler; use {', '.join(PROFILES)}, or --scheduler for a command"
        raise InputError.one(source, message, path="scheduler", line=line)
    if scenario.profile:
        message = "not together with profile: one scheduler decides; remove one of them"
        raise InputError.one(source, message, path="scheduler", line=line)
    return name


class ForeignChoice:
    """What decides in a run: a foreign scheduler or its decision log."""

    def __init__(self, options: ForeignOptions, seed: int, latency: Latency, *, seed_given: bool) -> None:
        """Read the log, or find the scheduler. Raises InputError."""
        self.seed = seed
        self._latency = latency
        self._scheduler: ForeignScheduler | None = None
        self._peer: BatsimPeer | None = None
        self._repeated: RepeatedRun | RepeatedBatsimRun | None = None
        if options.replay is not None:
            self._repeated = _repeated(_read(options.replay), str(options.replay), latency)
            logged = self._repeated.header.seed
            if seed_given and seed != logged:
                raise InputError.one("--seed", f"is {seed}, and {logged} in {options.replay}; omit --seed")
            self.seed = logged
        elif options.scheduler is not None and is_batsim(options.scheduler):
            if latency.kind != "free":
                raise InputError.one("--latency", f"a scheduler after {PREFIX} states how long it decides; omit it")
            self._peer = batsim_peer(options.scheduler, options.batsim)
        elif options.scheduler is not None:
            timed = latency.kind == "measured"
            self._scheduler = chosen_scheduler(options.scheduler, options.settle or "", timed=timed)

    @property
    def name(self) -> str:
        """Name of the scheduler in traces and summaries."""
        if self._repeated is not None:
            return self._repeated.name
        if self._peer is not None:
            return self._peer.name
        return "" if self._scheduler is None else self._scheduler.profile.name

    def check_scenario(self, scenario: Scenario) -> None:
        """Raise InputError if the log is about another scenario."""
        if self._repeated is not None and self._repeated.header.scenario != scenario.name:
            logged = self._repeated.header.scenario
            raise InputError.one("--replay", f"the log is about scenario {logged!r}, not {scenario.name!r}")

    @contextmanager
    def running(self, scenario: Scenario, sink: ByteSink | None) -> Iterator[RunFigures]:
        """Start what decides; stop it in the end."""
        if self._repeated is not None:
            if isinstance(self._repeated, RepeatedBatsimRun):
                self._repeated.scenario = scenario
            yield self._repeated
            return
        if self._peer is not None:
            if self._peer.endpoint:
                # On standard error, because standard output has the results.
                click.echo(f"asking the decision process at {self._peer.endpoint}, which has to listen there", err=True)
            with BatsimRun(self._peer, scenario, seed=self.seed, sink=sink) as run:
                yield run
            return
        assert self._scheduler is not None, "either a log or a scheduler"
        with ForeignRun(
            self._scheduler,
            scenario=scenario.name,
            seed=self.seed,
            sink=sink,
            announce=_announce,
            latency=self._latency,
        ) as foreign:
            yield foreign


def _repeated(data: bytes, source: str, latency: Latency) -> RepeatedRun | RepeatedBatsimRun:
    """Return the run that a log repeats: one of decisions, or one of Batsim's messages."""
    if MESSAGE_FORMAT.encode() not in data[:HEAD]:
        return RepeatedRun(data, source, latency)
    if latency.kind != "free":
        raise InputError.one("--latency", f"{source} has the times that the scheduler stated; omit it")
    return RepeatedBatsimRun(data, source)


def _announce(kubeconfig: Path, url: str) -> None:
    """Say how to attach a scheduler. On standard error, because standard output has the results."""
    file = shlex.quote(str(kubeconfig))
    click.echo(f"serving {url}; the run begins when your scheduler reads pods. In another terminal:", err=True)
    click.echo(f"  export KUBECONFIG={file}", err=True)
    click.echo(f"  kube-scheduler --kubeconfig {file} --leader-elect=false", err=True)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_LOG + 1)
    except OSError as error:
        raise InputError.one(str(path), f"cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_LOG:
        raise InputError.one(str(path), f"larger than {LARGEST_LOG} bytes; is this the right file?")
    return data
