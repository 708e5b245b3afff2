"""
The scheduler of a run: receives events and returns commands.

    Decider            the protocol
    LoopDecider        the scheduling loop that also runs live
    FacadeDecider      schedulers behind the Kubernetes API (`lamina.simulator.facade`)
    BatsimDecider      decision processes that speak Batsim's protocol (`lamina.simulator.batsim`)

A policy under study does not need to be a loop: it can track the events itself and return `Bind` commands. Only the
host calls a decider, and never while the decision latency of the last feed is still running.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from lamina.model.errors import LaminaError
from lamina.model.events import Event
from lamina.scheduling.contract.commands import Command
from lamina.scheduling.loop.loop import Loop


class RunStoppedError(LaminaError):
    """The run cannot go on, such as after an invalid message of its scheduler. Its results so far are kept."""

    exit_code = 1


class Decider(Protocol):
    """Decides where pods are placed."""

    @property
    def names(self) -> Collection[str]:
        """Its scheduler names; pods that name no scheduler get the first."""
        ...

    @property
    def attempts(self) -> int:
        """Number of pods that the last feed tried to place, successful or not."""
        ...

    @property
    def trying(self) -> bool:
        """
        Whether the passing of time alone has an effect: a back-off, a permit wait or a wake-up requested by a plugin.

        The periodic flush of unschedulable pods does not count. Otherwise a run with one such pod would never end.
        """
        ...

    @property
    def asked_until(self) -> float | None:
        """
        The latest wake-up time that a plugin requested, or None.

        The host reads it once after each event and does not end the run before that time.
        """
        ...

    def feed(self, *events: Event) -> Sequence[Command]:
        """Process events in order; return the commands to perform, in order."""
        ...


class LoopDecider:
    """Decider that runs the scheduling loop."""

    def __init__(self, loop: Loop) -> None:
        """Wrap *loop*."""
        self._loop = loop
        self.names: Collection[str] = tuple(loop.profiles)
        # The bound method itself: a wrapper would cost one call at every time step.
        self.feed = loop.feed

    @property
    def attempts(self) -> int:
        """Number of pods that the last feed tried to place."""
        return len(self._loop.tried)

    @property
    def trying(self) -> bool:
        """Whether a pod is ready, in back-off, waiting for a permit or a plugin's time, or in a binding cycle."""
        return len(self._loop.bindings) > 0 or self._loop.queue.trying or self._loop.awaits_plugin

    @property
    def asked_until(self) -> float | None:
        """The latest time that a plugin requested: permit wait, retry or wake-up."""
        return self._loop.asked_until
