"""
Decision latency: the virtual time that the scheduler of a run takes to decide.

    free        0 seconds: only the placement policy matters
    modelled    a number of seconds for each attempt to place a pod
    measured    the real time of each decision; such a run is reproducible only from its decision log
    stated      the decider applies the times that its decision process states, as Batsim does

The cluster's time advances while the scheduler decides. Events of that time wait and are fed to the scheduler
afterwards, in order. Attempts of one feed are made one after the other: the command of the third attempt takes effect
after all three. Batsim charges its decision process in the same way.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from lamina.model.duration import seconds
from lamina.model.events import Event
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable
from lamina.simulator.cluster.lag import DrawLag, Lag
from lamina.simulator.decider import Decider

ReadClock = Callable[[], float]
"""Returns the seconds of a monotonic clock."""
ReadElapsed = Callable[[], Sequence[float]]
"""Returns the seconds from the last feed to each of its commands, in the order of the commands."""


class Latency(msgspec.Struct, frozen=True):
    """Decision latency of a run."""

    kind: Literal["free", "modelled", "measured", "stated"]
    lag: Lag = 0.0
    """Seconds per attempt; used if modelled."""
    clock: ReadClock | None = None
    """The clock; used if measured."""
    elapsed: ReadElapsed | None = None
    """Measurements of a decider that takes the times of its commands itself; used if measured, instead of the clock."""

    @property
    def name(self) -> str:
        """Text for the summary: ``free``, ``measured``, ``0.005s`` or ``0.001s to 0.2s``."""
        if self.kind != "modelled":
            return self.kind
        if isinstance(self.lag, tuple):
            return f"{min(self.lag):g}s to {max(self.lag):g}s"
        return f"{self.lag:g}s"


FREE: Final = Latency("free")
STATED: Final = Latency("stated")


def modelled(lag: Lag) -> Latency:
    """Return a latency of *lag* seconds per attempt; from a list, one value is drawn per attempt."""
    return Latency("modelled", lag)


def measured(clock: ReadClock) -> Latency:
    """Return a latency that is measured with *clock*."""
    return Latency("measured", clock=clock)


def measured_by(elapsed: ReadElapsed) -> Latency:
    """Return a latency that the decider measures itself."""
    return Latency("measured", elapsed=elapsed)


def read_latency(text: str, clock: ReadClock) -> Latency:
    """Parse ``free``, ``measured`` or a duration such as ``5ms``; raise ValueError with a message for the user."""
    if text == "free":
        return FREE
    if text == "measured":
        return measured(clock)
    try:
        return modelled(seconds(text))
    except ValueError as error:
        raise ValueError(f"{error}; or write free or measured") from error


class TimedDecisions(msgspec.Struct, frozen=True):
    """The commands of one feed and their times."""

    steps: tuple[tuple[float, float, Command], ...]
    """Start and end of each command's attempt in seconds since the feed, and the command."""
    seconds: float
    """Seconds of all attempts."""


class DecisionTimer:
    """Feeds a decider and computes the latency of its commands."""

    def __init__(self, decider: Decider, latency: Latency, draw: DrawLag) -> None:
        """Time *decider*; *draw* draws lags that vary."""
        self._decider = decider
        self._lag = latency.lag
        self._clock = latency.clock
        self._elapsed = latency.elapsed
        self._draw = draw
        self._again = 0

    def feed(self, events: Sequence[Event]) -> TimedDecisions:
        """Feed the decider; return its commands with their times."""
        began = self._clock() if self._clock is not None else 0.0
        commands = self._decider.feed(*events)
        if self._elapsed is not None:
            return _stamped(commands, self._elapsed())
        if self._clock is not None:
            return _evenly(commands, self._clock() - began)
        return self._charged(commands)

    def _charged(self, commands: Sequence[Command]) -> TimedDecisions:
        steps, spent, reported = [], 0.0, 0
        for command in commands:
            before = spent
            if isinstance(command, Bind | ReportUnschedulable):
                spent += self._draw(self._lag, "decision", command.pod.uid)
                reported += 1
            steps.append((before, spent, command))
        # An attempt with the same result as the previous one reports no command, but takes time as well.
        for _ in range(self._decider.attempts - reported):
            self._again += 1
            spent += self._draw(self._lag, "decision again", str(self._again))
        return TimedDecisions(tuple(steps), spent)


def _stamped(commands: Sequence[Command], elapsed: Sequence[float]) -> TimedDecisions:
    """Let each command take effect when it was given. The scheduler is free again after its last command."""
    before, steps = 0.0, []
    for command, seconds_ in zip(commands, elapsed, strict=True):
        steps.append((before, max(before, seconds_), command))
        before = steps[-1][1]
    return TimedDecisions(tuple(steps), before)


def _evenly(commands: Sequence[Command], took: float) -> TimedDecisions:
    """Split the measured time equally over the reported attempts."""
    took = max(0.0, took)
    reported = sum(isinstance(command, Bind | ReportUnschedulable) for command in commands)
    return TimedDecisions(tuple(_shared(commands, took, reported)), took)


def _shared(commands: Sequence[Command], took: float, reported: int) -> Iterator[tuple[float, float, Command]]:
    done = 0
    for command in commands:
        before = took * done / reported if reported else took
        done += isinstance(command, Bind | ReportUnschedulable)
        yield before, took * done / reported if reported else took, command
