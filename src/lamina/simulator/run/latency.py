"""
How long the scheduler of a run takes to decide.

    free        nothing: the policy alone is looked at
    modelled    so many seconds for each attempt to place a pod
    measured    as long as it really took; a run under it cannot be repeated to the byte

While the scheduler thinks, time goes on in the cluster. What happens meanwhile waits, and is fed to it afterwards in
its order. Attempts are made one after the other: what the third of a feed leads to happens when all three are over.
That is how Batsim charges a decision process for its time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from lamina.model.duration import seconds
from lamina.model.events import Event
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable
from lamina.simulator.cluster.lag import DrawLag, Lag
from lamina.simulator.run.decider import Decider

ReadClock = Callable[[], float]
"""Seconds of a real clock that never goes back."""


class Latency(msgspec.Struct, frozen=True):
    """What deciding costs."""

    kind: Literal["free", "modelled", "measured"]
    lag: Lag = 0.0
    """Seconds for each attempt, if modelled."""
    clock: ReadClock | None = None
    """What is measured with, if it is."""

    @property
    def name(self) -> str:
        """Say it in a summary: ``free``, ``measured``, ``0.005s`` or ``0.001s to 0.2s``."""
        if self.kind != "modelled":
            return self.kind
        if isinstance(self.lag, tuple):
            return f"{min(self.lag):g}s to {max(self.lag):g}s"
        return f"{self.lag:g}s"


FREE: Final = Latency("free")


def modelled(lag: Lag) -> Latency:
    """Charge each attempt *lag*; a list of values is drawn from."""
    return Latency("modelled", lag)


def measured(clock: ReadClock) -> Latency:
    """Charge what *clock* shows."""
    return Latency("measured", clock=clock)


def read_latency(text: str, clock: ReadClock) -> Latency:
    """Understand ``free``, ``measured`` and durations such as ``5ms``. Raises ValueError in words."""
    if text == "free":
        return FREE
    if text == "measured":
        return measured(clock)
    try:
        return modelled(seconds(text))
    except ValueError as error:
        raise ValueError(f"{error}; or write free or measured") from error


class TimedDecisions(msgspec.Struct, frozen=True):
    """What came of one feed."""

    steps: tuple[tuple[float, float, Command], ...]
    """Seconds since the feed at which each command's attempt began and was over, and the command."""
    seconds: float
    """How long all of it took."""


class DecisionTimer:
    """Times a decider, feed by feed."""

    def __init__(self, decider: Decider, latency: Latency, draw: DrawLag) -> None:
        """Charge *decider*; lags that vary are drawn by *draw*."""
        self._decider = decider
        self._lag = latency.lag
        self._clock = latency.clock
        self._draw = draw
        self._again = 0

    def feed(self, happened: Sequence[Event]) -> TimedDecisions:
        """Let it decide, and say when which command is its answer."""
        began = self._clock() if self._clock is not None else 0.0
        commands = self._decider.feed(*happened)
        if self._clock is not None:
            return _evenly(commands, self._clock() - began)
        return self._charged(commands)

    def _charged(self, commands: Sequence[Command]) -> TimedDecisions:
        steps, spent, told = [], 0.0, 0
        for command in commands:
            before = spent
            if isinstance(command, Bind | ReportUnschedulable):
                spent += self._draw(self._lag, "decision", command.pod.uid)
                told += 1
            steps.append((before, spent, command))
        # An attempt that ends as the one before is not told of, and takes its time all the same.
        for _ in range(self._decider.attempts - told):
            self._again += 1
            spent += self._draw(self._lag, "decision again", str(self._again))
        return TimedDecisions(tuple(steps), spent)


def _evenly(commands: Sequence[Command], took: float) -> TimedDecisions:
    """Charge every attempt that was told of with the same share of the time that all of them took."""
    took = max(0.0, took)
    told = sum(isinstance(command, Bind | ReportUnschedulable) for command in commands)
    return TimedDecisions(tuple(_shared(commands, took, told)), took)


def _shared(commands: Sequence[Command], took: float, told: int) -> Iterator[tuple[float, float, Command]]:
    done = 0
    for command in commands:
        before = took * done / told if told else took
        done += isinstance(command, Bind | ReportUnschedulable)
        yield before, took * done / told if told else took, command
