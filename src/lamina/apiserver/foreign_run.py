"""
A run under a foreign scheduler, or the repetition of such a run from its decision log.

    ForeignRun     starts the scheduler, or waits for one that the user attaches; can record all decisions
    RepeatedRun    repeats a decision log; needs no scheduler

Both make the decider of `simulate`, and afterwards return the same figures for the summary. The log keeps the figures
that only the first run can measure, so a repeated run has the same summary, byte for byte.
"""

from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, Final, Protocol, Self, get_args

import msgspec

from lamina.apiserver.facade_run import FacadeRun
from lamina.apiserver.profile_files import read_profile
from lamina.apiserver.scheduler_profiles import SchedulerProfile, SettleKind, profile_of
from lamina.apiserver.settling.scheduler_log import FLAGS
from lamina.model.duration import seconds
from lamina.model.errors import InputError, WiringError
from lamina.model.taints import untolerated
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.decider import Decider
from lamina.simulator.facade.cluster_writer import ClusterInput, ClusterWriter
from lamina.simulator.facade.decision_log import (
    ByteSink,
    DecisionLogHeader,
    DecisionLogWriter,
    FeedInputs,
    ReplayDecider,
    read_decision_log,
)
from lamina.simulator.run.batsim_files import NO_NOTES, JobNotes
from lamina.simulator.run.latency import FREE, Latency, measured_by, modelled
from lamina.simulator.run.run_parts import RunParts

ATTACH: Final = "attach"
"""In place of a scheduler: the user starts it."""
PROFILE_FILES: Final = (".yaml", ".yml")
"""In place of a scheduler: a file that describes it."""
LONGEST_SILENCE: Final = 60.0
MEASURED: Final = "measured"
SETTLED: Final = "settled"
"""Operation of the log entry with the settle figures. Its feed is 0, which no run has."""
HARD: Final = ("NoSchedule", "NoExecute")
MOST_STARVED: Final = 100
"""Most starved pods that a summary names."""

Announce = Callable[[Path, str], None]
"""Called with the kubeconfig and the address when a façade waits for a scheduler to be attached."""


class ForeignScheduler(msgspec.Struct, frozen=True):
    """A scheduler as a user names it."""

    profile: SchedulerProfile
    command: tuple[str, ...]
    """Empty: the user starts it."""


class RunFigures(Protocol):
    """A run with a decider of its own."""

    @property
    def name(self) -> str:
        """Name of the scheduler in traces and summaries."""
        ...

    @property
    def latency(self) -> Latency:
        """Decision latency of the run."""
        ...

    def make_decider(self, parts: RunParts) -> Decider:
        """Return the decider of the run."""
        ...

    def figures(self) -> dict[str, Any]:
        """Return figures for the summary, after the run."""
        ...

    @property
    def notes(self) -> JobNotes:
        """What the scheduler added to the table of jobs."""
        ...


def chosen_scheduler(text: str, settle: str = "", *, timed: bool = False) -> ForeignScheduler:
    """
    Return the scheduler for the values of ``--scheduler`` and ``--settle``. Raises InputError.

    If its decisions are *timed*, a kube-scheduler is settled by its metrics: the log would slow it down.
    """
    command: list[str] = []
    if text == ATTACH:
        profile = SchedulerProfile(name="attached", about="started by the user", program="")
    elif PurePath(text).suffix in PROFILE_FILES and len(text.split()) == 1:
        profile = read_profile(Path(text))
        command = [profile.program]
    else:
        profile, command = profile_of(text)
    if timed and not settle and profile.kube:
        settle = "metrics"
    return ForeignScheduler(_settled_by(profile, settle) if settle else profile, tuple(command))


def _settled_by(profile: SchedulerProfile, text: str) -> SchedulerProfile:
    """Return the profile with another settle method: its name, for silence with a duration."""
    kind, _, duration = text.partition("=")
    known = get_args(SettleKind)
    if kind not in known or (duration and kind != "silence"):
        raise InputError.one("--settle", f"{text!r} is no settle method; use {', '.join(known)} or silence=500ms")
    if kind != "silence" and not profile.program:
        raise InputError.one("--settle", f"{kind} needs a scheduler that Lamina starts; use silence with attach")
    arguments = tuple(one for one in profile.arguments if kind == "log" or one not in FLAGS)
    changed: SchedulerProfile = msgspec.structs.replace(profile, settle=kind, arguments=arguments)
    if not duration:
        return changed
    try:
        silence = seconds(duration)
    except ValueError as error:
        raise InputError.one("--settle", str(error)) from error
    if not 0.0 < silence <= LONGEST_SILENCE:
        raise InputError.one("--settle", f"{duration} is not above 0 and at most {LONGEST_SILENCE:g}s; try 200ms")
    return msgspec.structs.replace(changed, silence=silence)


class ForeignRun:
    """One run under a foreign scheduler. A context manager: leaving it stops the scheduler."""

    def __init__(
        self,
        scheduler: ForeignScheduler,
        *,
        scenario: str,
        seed: int = 0,
        sink: ByteSink | None = None,
        announce: Announce | None = None,
        latency: Latency = FREE,
    ) -> None:
        """Run *scheduler* with a decision *latency*; write the decision log to *sink*."""
        self._scheduler = scheduler
        self._latency = latency
        self._log: DecisionLogWriter | None = None
        if sink is not None:
            header = DecisionLogHeader(
                scenario=scenario,
                scheduler=self.name,
                seed=seed,
                names=(scheduler.profile.scheduler_name,),
                latency=latency.name,
            )
            self._log = DecisionLogWriter(sink, header)
        self._run = FacadeRun(
            scheduler.profile,
            scheduler.command,
            seed=seed,
            log=self._log,
            announce=announce,
            clock=latency.clock,
        )
        self._cluster: VirtualCluster | None = None

    @property
    def name(self) -> str:
        """Name of the scheduler."""
        return self._scheduler.profile.name

    @property
    def latency(self) -> Latency:
        """Decision latency: if measured, each decision takes until the scheduler's request arrives."""
        return measured_by(self._run.elapsed) if self._latency.kind == "measured" else self._latency

    def make_decider(self, parts: RunParts) -> Decider:
        """Start the façade and the scheduler; return the decider."""
        self._cluster = parts.cluster
        return self._run.make_decider(parts)

    def figures(self) -> dict[str, Any]:
        """Return the settle figures and the starved pods; write the former to the log."""
        found = self._run.figures
        if found is None or self._cluster is None:
            raise WiringError("a run has no figures before its end")
        cost = found.milliseconds_per_decision
        settle = {
            "scheduler": found.scheduler or self.name,
            "method": found.method,
            "proven": found.proven,
            "checks": found.checks,
            "limits_hit": found.limits_hit,
            "decisions": found.decisions,
            "ms_per_decision": None if cost is None else round(cost, 3),
        }
        if self._log is not None:
            self._log.write(FeedInputs(0, 0.0, (ClusterInput(SETTLED, object=settle),)))
        return {"settle": settle, "starved": starved_pods(self._cluster)}

    notes = NO_NOTES

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the scheduler and the façade."""
        self._run.close()


class RepeatedRun:
    """The repetition of a run from its decision log."""

    notes = NO_NOTES

    def __init__(self, data: bytes, source: str, latency: Latency = FREE) -> None:
        """Read the log *data* of the file *source*; *latency* is for logs whose times were not measured. Raises InputError."""
        self.header, feeds = read_decision_log(data, source)
        self._latency = latency
        self._source = source
        self._feeds = [one for one in feeds if one.feed]
        settled = [one.inputs[0].object for one in feeds if not one.feed and one.inputs]
        if not settled:
            raise InputError.one(source, "has no end: the run that wrote it was interrupted; record it again")
        self._settle = settled[-1]
        self._cluster: VirtualCluster | None = None
        self._decider: ReplayDecider | None = None

    @property
    def name(self) -> str:
        """Name of the scheduler that was recorded."""
        return self.header.scheduler

    @property
    def latency(self) -> Latency:
        """Decision latency of the recorded run; if it was measured, with the recorded times."""
        recorded = self.header.latency
        if recorded == MEASURED:
            return measured_by(self._elapsed)
        if recorded == FREE.name:
            # Also a log of a version that did not record the latency.
            return self._latency
        try:
            return modelled(seconds(recorded))
        except ValueError as error:
            raise InputError.one(self._source, f"latency: {error}", line=1) from None

    def _elapsed(self) -> Sequence[float]:
        return () if self._decider is None else self._decider.elapsed()

    def make_decider(self, parts: RunParts) -> Decider:
        """Return the decider that repeats the log."""
        self._cluster = parts.cluster
        writer = ClusterWriter(parts.environment, parts.cluster, parts.controllers, self.name)
        self._decider = ReplayDecider(writer, self.header, self._feeds, self._source)
        return self._decider

    def figures(self) -> dict[str, Any]:
        """Return the figures of the recorded run. Raises InputError if the run ended before the log."""
        if self._cluster is None or self._decider is None:
            raise WiringError("a run has no figures before its end")
        if self._decider.unused:
            message = f"{self._decider.unused} recorded steps were not reached; use the options of the recorded run"
            raise InputError.one(self._source, f"{message}, such as --until")
        return {"settle": self._settle, "starved": starved_pods(self._cluster)}


def starved_pods(cluster: VirtualCluster) -> dict[str, Any]:
    """
    Return the pods that are pending although a node has room for their requests.

    Only resources, cordons and tolerated taints are compared, so a pod with a node affinity may be listed wrongly.
    """
    nodes = [node for node in cluster.nodes.values() if not node.unschedulable and not node.failed]
    pending = [one.pod for one in cluster.pods.values() if one.phase == "pending"]
    found = [
        pod.key
        for pod in pending
        if any(
            not node.short_of(pod.requests) and not untolerated(node.taints, pod.tolerations, HARD) for node in nodes
        )
    ]
    return {"total": len(found), "pods": found[:MOST_STARVED]}
