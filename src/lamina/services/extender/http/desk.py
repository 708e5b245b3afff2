"""What all connections of one server share: whom to ask, what is allowed, who is there."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from lamina.services.extender.http.limits import Limits, Watch
from lamina.services.extender.http.places import Places
from lamina.services.extender.http.refusals import Refusal
from lamina.services.extender.http.reply import Routes


class Present(Protocol):
    """A connection, as the one who looks after all of them sees it."""

    def look(self, now: float) -> None:
        """Do what is due at this time."""

    def expire(self) -> None:
        """End after the next answer."""

    def retire(self) -> None:
        """Answer what has been asked and end."""

    def abort(self) -> None:
        """End now."""


class Desk:
    """Looks after the connections."""

    def __init__(self, routes: Routes, limits: Limits, watch: Watch) -> None:
        """Start with nobody there."""
        self.routes, self.limits, self.watch = routes, limits, watch
        self.places = Places(limits.large_at_once)
        self.admit: Callable[[asyncio.BaseTransport], Refusal | None] = lambda transport: None
        """Says whether a caller may ask at all; by its certificate, where there are any."""
        self.present: set[Present] = set()
        """Everybody, those who are on their way out too."""
        self.empty = asyncio.Event()
        self.empty.set()
        self._admitted = 0

    @property
    def full(self) -> bool:
        """Whether there is no place for another connection."""
        return self._admitted >= self.limits.connections

    def enter(self, connection: Present, *, admitted: bool) -> None:
        """Take note of a new connection."""
        self.present.add(connection)
        self.empty.clear()
        self._count(int(admitted))

    def leave(self, connection: Present, *, admitted: bool) -> None:
        """Take note of a connection that is gone."""
        self.present.discard(connection)
        if not self.present:
            self.empty.set()
        self._count(-int(admitted))

    def _count(self, change: int) -> None:
        if change:
            self._admitted += change
            self.watch.connections(self._admitted)
