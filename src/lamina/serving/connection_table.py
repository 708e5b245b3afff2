"""
Table of all connections of one server, with its handler and limits.

    connected --+--> admitted --+---------------------------> gone
                |               v                              ^
                +--> closing: reads why it was rejected -------+

A closing connection sends no more requests and does not count against the connection limit. Their number has a limit of
its own.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from lamina.serving.rejections import RequestRejection
from lamina.serving.request_dispatch import Handler, HandlerResponse, RequestLabel, same_label
from lamina.serving.request_slots import RequestSlots
from lamina.serving.response import HttpResponse, text_response
from lamina.serving.server_limits import ServerLimits, ServerMetrics

SPARE: Final = 16
"""Most closing connections; beyond that, the oldest is cut off."""


Admission = Callable[[asyncio.BaseTransport], RequestRejection | None]
"""Returns why a client is rejected, or None; checks its certificate if TLS is used."""


RejectionForm = Callable[[RequestRejection], HttpResponse]
"""Returns the response for a rejection, in the form that clients of the application expect."""


def rejection_text(found: RequestRejection) -> HttpResponse:
    """Return a rejection as one line of text."""
    return text_response(found.status, found.words)


def admit_all(_: asyncio.BaseTransport) -> RequestRejection | None:
    """Admit every client."""
    return None


class TrackedConnection(Protocol):
    """A connection, as the table sees it."""

    @property
    def since(self) -> float:
        """When the current state began."""

    def look(self, now: float) -> None:
        """Close or reject the connection if its time limit has passed."""

    def expire(self) -> None:
        """Close after the next response."""

    def retire(self) -> None:
        """Answer pending requests, then close."""

    def give_way(self) -> None:
        """Close to make room for a new connection."""

    def abort(self) -> None:
        """Close now."""


class ConnectionTable:
    """Tracks the connections and enforces their limit."""

    def __init__(
        self,
        handler: Handler,
        limits: ServerLimits,
        metrics: ServerMetrics,
        *,
        label: RequestLabel = same_label,
        admit: Admission = admit_all,
        rejection: RejectionForm = rejection_text,
    ) -> None:
        """Start without connections; *admit* checks each client, and *rejection* gives rejections their form."""
        self.handler, self.label = handler, label
        self.limits, self.metrics = limits, metrics
        self.admit, self.rejection = admit, rejection
        self.slots = RequestSlots(limits.large_at_once)
        self.pending: set[asyncio.Future[HandlerResponse]] = set()
        """Pending results of handlers, including cancelled ones that have not ended yet."""
        self.present: set[TrackedConnection] = set()
        """All connections, including closing ones."""
        self.empty = asyncio.Event()
        self.empty.set()
        self._admitted: dict[TrackedConnection, None] = {}
        self._leaving: dict[TrackedConnection, None] = {}
        """Both in order of arrival."""

    def make_room(self) -> bool:
        """Return whether one more connection fits; with `newcomers_first`, close the one idle for longest."""
        if len(self._admitted) < self.limits.connections:
            return True
        if not self.limits.newcomers_first:
            return False
        idle = min(self._admitted, key=lambda one: one.since)
        self.mark_closing(idle)
        idle.give_way()
        return True

    def add(self, connection: TrackedConnection, *, admitted: bool) -> None:
        """Add a new connection."""
        self.present.add(connection)
        self.empty.clear()
        if admitted:
            self._admitted[connection] = None
            self.metrics.connections(len(self._admitted))

    def mark_closing(self, connection: TrackedConnection) -> None:
        """Mark a connection as closing."""
        if connection not in self.present:
            return
        self._free(connection)
        self._leaving[connection] = None
        if len(self._leaving) > SPARE:
            oldest = next(iter(self._leaving))
            # Remove it here: its own `connection_lost` comes later, and the next overflow must cut off another one.
            del self._leaving[oldest]
            oldest.abort()

    def remove(self, connection: TrackedConnection) -> None:
        """Remove a connection that is gone."""
        self.present.discard(connection)
        self._leaving.pop(connection, None)
        self._free(connection)
        if not self.present:
            self.empty.set()

    def _free(self, connection: TrackedConnection) -> None:
        if connection in self._admitted:
            del self._admitted[connection]
            self.metrics.connections(len(self._admitted))
