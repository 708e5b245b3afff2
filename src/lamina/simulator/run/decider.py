"""
Who decides in a run: anything that takes events and answers with commands.

    Decider            the contract, one Protocol
    LoopDecider        the loop that also runs live

A policy under study need not be a loop: it is enough to keep count of what the events say and to answer with `Bind`.
Called by the host only, and never while it is still thinking about what it was fed before.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from lamina.model.events import Event
from lamina.scheduling.contract.commands import Command
from lamina.scheduling.loop.loop import Loop


class Decider(Protocol):
    """Decides where pods go."""

    @property
    def names(self) -> Collection[str]:
        """The schedulers it stands for, by the names pods ask for; pods that name none get the first."""
        ...

    @property
    def attempts(self) -> int:
        """How many pods it tried to place at the last feed, whatever came of it."""
        ...

    @property
    def trying(self) -> bool:
        """
        Whether time alone will change something: a back-off ends, a permit wait expires, a plugin asked for a time.

        A safety flush (pods that fit nowhere are tried again every few minutes, in case a change was missed) does not
        count: otherwise a run with one such pod would never end.
        """
        ...

    @property
    def asked_until(self) -> float | None:
        """
        The latest time at which it must be woken because a plugin asked for it, or None.

        The host asks once after something happened and does not end the run before that time.
        """
        ...

    def feed(self, *happened: Event) -> Sequence[Command]:
        """Take in what happened, in order, and say what is to be done, in order."""
        ...


class LoopDecider:
    """A loop, as the host of a run sees it."""

    def __init__(self, loop: Loop) -> None:
        """Let *loop* decide."""
        self._loop = loop
        self.names: Collection[str] = tuple(loop.profiles)
        # Straight to the loop: a call in between would be paid for at every instant.
        self.feed = loop.feed

    @property
    def attempts(self) -> int:
        """How many pods the last feed tried to place."""
        return len(self._loop.tried)

    @property
    def trying(self) -> bool:
        """Whether a pod is ready to be tried, backs off, waits for a permit or a plugin's time, or is being bound."""
        return len(self._loop.bindings) > 0 or self._loop.queue.trying or self._loop.awaits_plugin

    @property
    def asked_until(self) -> float | None:
        """When the last time comes that a plugin asked for: permit waits, retries, wake-ups."""
        return self._loop.asked_until
