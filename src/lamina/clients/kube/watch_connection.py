"""
One watch connection: decodes lines, updates the store, and tracks the version.

A watch without a version starts with all existing objects, as ADDED events in any order. A bookmark ends them and
carries the version. Until then the version stays empty; after a broken connection, the objects stay in the store but
the list starts again.

The reflector uses it and evaluates how it ended.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from lamina.clients.kube import watch_events
from lamina.clients.kube.errors import UnreachableError, read_status
from lamina.clients.kube.reflector_counters import ReflectorCounters
from lamina.clients.kube.reflector_store import ReflectorStore
from lamina.clients.kube.time_slice import TimeSlice
from lamina.clients.kube.watch_lines import LineCutter

T = TypeVar("T")


class BrokenWatchError(UnreachableError):
    """A line is not an event, or the stream ended inside a line."""


class NotStreamedError(UnreachableError):
    """The server ignored the request for a streamed list and started a plain watch."""


class WatchConnection(Generic[T]):
    """The state of one watch connection."""

    def __init__(
        self,
        what: str,
        version: str,
        store: ReflectorStore[T],
        counts: ReflectorCounters,
        on_listed: Callable[[], None],
    ) -> None:
        """
        Continue from *version*, or start with all existing objects if it is empty.

        *on_listed* is called when the list is complete and missing objects have been removed.
        """
        self.version = version
        """The last version received; empty until the list is complete."""
        self.heard = 0
        """Lines that were events."""
        self._what = what
        self._store = store
        self._counts = counts
        self._on_listed = on_listed
        self._cutter = LineCutter()
        self._time_slice = TimeSlice()

    async def take(self, chunk: bytes) -> None:
        """Process a chunk. Raises the error of an ERROR event, and BrokenWatchError for a line that is not an event."""
        before = self._cutter.skipped
        lines = self._cutter.feed(chunk)
        self._counts.oversized += self._cutter.skipped - before
        for line in lines:
            if version := self._event(line):
                await self._finish_list(version)
            if self._time_slice.due():
                await self._time_slice.pause()

    def end(self) -> None:
        """Check what is left when the server ends the stream: a bare Status or an incomplete line raises."""
        rest = self._cutter.rest()
        if not rest:
            return
        if read_status(rest) is not None:
            raise watch_events.read_error(self._what, rest)
        raise BrokenWatchError(self._what, "the watch ended inside a line")

    def _event(self, line: bytes) -> str:
        """Process one line; return the version of the list if the line completes it, else ""."""
        event = watch_events.read_event(line)
        if event is None:
            raise BrokenWatchError(self._what, "a line of the watch is not an event")
        match event.type:
            case watch_events.ADDED | watch_events.MODIFIED | watch_events.DELETED:
                self._changed(line, event)
            case watch_events.BOOKMARK:
                return self._bookmark(watch_events.object_of(line, event))
            case watch_events.ERROR:
                raise watch_events.read_error(self._what, watch_events.object_of(line, event))
            case _ if event.kind == "Status":
                raise watch_events.read_error(self._what, line)
            case _:
                # Event types of newer servers are skipped.
                self._counts.undecodable += 1
        self.heard += 1
        return ""

    def _changed(self, line: bytes, event: watch_events.WatchEvent) -> None:
        head = event.object
        name = head.name
        if not name:
            self._counts.undecodable += 1
            return
        self._counts.events += 1
        if event.type == watch_events.DELETED:
            self._store.forget(name)
        else:
            data = watch_events.object_of(line, event)
            self._store.see(name, head.version, data, uid=head.uid, listed=not self.version)
        if self.version:
            self.version = head.version or self.version

    def _bookmark(self, data: bytes) -> str:
        bookmark = watch_events.read_bookmark(data)
        if bookmark is None or not bookmark.version:
            self._counts.undecodable += 1
            return ""
        self._counts.bookmarks += 1
        self.heard += 1
        if self.version:
            self.version = bookmark.version
            return ""
        if not bookmark.ends_list:
            raise NotStreamedError(self._what, "the streamed list has no final bookmark")
        return bookmark.version

    async def _finish_list(self, version: str) -> None:
        for _ in self._store.finish():
            if self._time_slice.due():
                await self._time_slice.pause()
        self.version = version
        self._on_listed()
