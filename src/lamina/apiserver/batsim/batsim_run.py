"""
A run under a decision process of Batsim's, or the repetition of such a run from its message log.

    BatsimRun            starts the decision process, or connects to one; can record all messages
    RepeatedBatsimRun    repeats a message log; needs no decision process and no sockets
"""

from types import TracebackType
from typing import Any, Self

from lamina.apiserver.batsim.batsim_peer import BatsimPeer
from lamina.apiserver.batsim.decision_client import DecisionClient
from lamina.model.errors import InputError, WiringError
from lamina.simulator.batsim.batsim_decider import BatsimDecider, Exchange
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.batsim.message_log import (
    MessageLogHeader,
    MessageLogWriter,
    MessageSink,
    RepeatedExchange,
    read_message_log,
)
from lamina.simulator.decider import Decider
from lamina.simulator.run.batsim_files import JobNotes
from lamina.simulator.run.latency import STATED, Latency
from lamina.simulator.run.run_parts import RunParts
from lamina.simulator.workloads import Scenario


class BatsimRun:
    """One run under a decision process. A context manager: leaving it stops the process."""

    def __init__(self, peer: BatsimPeer, scenario: Scenario, *, seed: int = 0, sink: MessageSink | None = None) -> None:
        """Prepare a run of *scenario*; write all messages to *sink*. Raises InputError."""
        check_events(scenario, peer.settings)
        self._peer = peer
        self._scenario = scenario
        self._client: DecisionClient | None = None
        self._decider: BatsimDecider | None = None
        self._log: MessageLogWriter | None = None
        if sink is not None:
            header = MessageLogHeader(scenario=scenario.name, scheduler=peer.name, seed=seed, settings=peer.settings)
            self._log = MessageLogWriter(sink, header)

    @property
    def name(self) -> str:
        """Name of the decision process."""
        return self._peer.name

    @property
    def latency(self) -> Latency:
        """Decision latency: what the decision process states."""
        return STATED

    def make_decider(self, parts: RunParts) -> Decider:
        """Start the decision process, or connect to it; return the decider."""
        client = self._client = DecisionClient(self._peer)
        exchange = client.exchange if self._log is None else self._log.logged(client.exchange)
        self._decider = batsim_decider(parts, self._scenario, exchange, self._peer.settings)
        return self._decider

    def figures(self) -> dict[str, Any]:
        """Return figures for the summary, after the run."""
        return batsim_figures(self._decider, self.name)

    @property
    def notes(self) -> JobNotes:
        """What the decision process added to the jobs."""
        return job_notes(self._decider)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the decision process."""
        if self._client is not None:
            self._client.close(ended=self._decider is not None and self._decider.ended)


class RepeatedBatsimRun:
    """The repetition of a run from its message log."""

    def __init__(self, data: bytes, source: str) -> None:
        """Read the log *data* of the file *source*. Raises InputError."""
        self.header, self._logged = read_message_log(data, source)
        self._source = source
        self._exchange = RepeatedExchange(self._logged, source)
        self._decider: BatsimDecider | None = None
        self.scenario: Scenario | None = None
        """The scenario of the run; set before the run."""

    @property
    def name(self) -> str:
        """Name of the decision process that was recorded."""
        return self.header.scheduler

    @property
    def latency(self) -> Latency:
        """Decision latency: what the decision process stated."""
        return STATED

    def make_decider(self, parts: RunParts) -> Decider:
        """Return the decider that repeats the log."""
        if self.scenario is None:
            raise WiringError("a repeated run needs its scenario")
        self._decider = batsim_decider(parts, self.scenario, self._exchange, self.header.settings)
        return self._decider

    def figures(self) -> dict[str, Any]:
        """Return the figures of the recorded run. Raises InputError if the run ended before the log."""
        if self._exchange.unused:
            message = f"{self._exchange.unused} recorded messages were not reached; use the options of the recorded run"
            raise InputError.one(self._source, f"{message}, such as --until")
        return batsim_figures(self._decider, self.name)

    @property
    def notes(self) -> JobNotes:
        """What the decision process added to the jobs."""
        return job_notes(self._decider)


def batsim_decider(parts: RunParts, scenario: Scenario, exchange: Exchange, settings: BatsimSettings) -> BatsimDecider:
    """Return the decider of a run, which also ends the simulation for the decision process."""
    decider = BatsimDecider(parts.environment, parts.cluster, parts.request_feed, scenario, exchange, settings)
    parts.endings.append(decider.end)
    return decider


def batsim_figures(decider: BatsimDecider | None, name: str) -> dict[str, Any]:
    """Return figures for the summary of a run."""
    if decider is None:
        raise WiringError("a run has no figures before its end")
    return {"batsim": {"scheduler": name, "messages": decider.messages}}


def job_notes(decider: BatsimDecider | None) -> JobNotes:
    """Return what the decision process of a run added to the jobs."""
    return JobNotes() if decider is None else JobNotes(decider.state.dynamic.registered, decider.state.metadata)


def check_events(scenario: Scenario, settings: BatsimSettings) -> None:
    """Raise InputError for external events that the settings do not allow, as Batsim does."""
    notices = [one for source in scenario.batsim for one in source.notices]
    if notices and not settings.forward_unknown_events:
        message = f"{len(notices)} external events of {scenario.name} have types that only the scheduler may know"
        raise InputError.one("--batsim", f"{message}; add forward-unknown-events, or remove them")
