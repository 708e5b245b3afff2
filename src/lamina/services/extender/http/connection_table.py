"""
What all connections of one server share: whom to ask, what is allowed, who is there.

    came --+--> admitted --+-------------------------> gone
           |               v                            ^
           +--> dismissed: on its way out, reads why ---+

Who is on its way out asks nothing more and takes nobody's place; how many of these there are is bounded for itself.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from lamina.services.extender.http.rejections import RequestRejection
from lamina.services.extender.http.request_slots import RequestSlots
from lamina.services.extender.http.response import Routes
from lamina.services.extender.http.server_limits import ServerLimits, ServerMetrics

SPARE: Final = 16
"""Connections on their way out; when there are more, the one that has had most time is cut off."""


class TrackedConnection(Protocol):
    """A connection, as the one who looks after all of them sees it."""

    @property
    def since(self) -> float:
        """When it last began or ended something."""

    def look(self, now: float) -> None:
        """Do what is due at this time."""

    def expire(self) -> None:
        """End after the next answer."""

    def retire(self) -> None:
        """Answer what has been asked and end."""

    def give_way(self) -> None:
        """End for the sake of somebody else."""

    def abort(self) -> None:
        """End now."""


class ConnectionTable:
    """Looks after the connections."""

    def __init__(self, routes: Routes, limits: ServerLimits, watch: ServerMetrics) -> None:
        """Start with nobody there."""
        self.routes, self.limits, self.watch = routes, limits, watch
        self.places = RequestSlots(limits.large_at_once)
        self.admit: Callable[[asyncio.BaseTransport], RequestRejection | None] = lambda transport: None
        """Says whether a caller may ask at all; by its certificate, where there are any."""
        self.present: set[TrackedConnection] = set()
        """Everybody, those who are on their way out too."""
        self.empty = asyncio.Event()
        self.empty.set()
        self._admitted: dict[TrackedConnection, None] = {}
        self._leaving: dict[TrackedConnection, None] = {}
        """Both in the order they came."""

    def find_seat(self) -> bool:
        """Tell whether there is a place for another connection; where newcomers go first there always is."""
        if len(self._admitted) < self.limits.connections:
            return True
        if not self.limits.newcomers_first:
            return False
        idle = min(self._admitted, key=lambda one: one.since)
        self.dismiss(idle)
        idle.give_way()
        return True

    def enter(self, connection: TrackedConnection, *, admitted: bool) -> None:
        """Take note of a new connection."""
        self.present.add(connection)
        self.empty.clear()
        if admitted:
            self._admitted[connection] = None
            self.watch.connections(len(self._admitted))

    def dismiss(self, connection: TrackedConnection) -> None:
        """Take note of a connection that is on its way out."""
        if connection not in self.present:
            return
        self._free(connection)
        self._leaving[connection] = None
        if len(self._leaving) > SPARE:
            oldest = next(iter(self._leaving))
            # At once: it hears only later that it is gone, and is not to be cut off in place of the next one.
            del self._leaving[oldest]
            oldest.abort()

    def leave(self, connection: TrackedConnection) -> None:
        """Take note of a connection that is gone."""
        self.present.discard(connection)
        self._leaving.pop(connection, None)
        self._free(connection)
        if not self.present:
            self.empty.set()

    def _free(self, connection: TrackedConnection) -> None:
        if connection in self._admitted:
            del self._admitted[connection]
            self.watch.connections(len(self._admitted))
