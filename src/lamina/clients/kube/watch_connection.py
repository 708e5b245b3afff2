"""
One watch connection: lines in, the mirror kept up to date, and how far we have come.

A watch that begins without a version begins with everything there is, as ADDED events in no order; the bookmark that
ends them brings the version. Until then the version stays empty, and what a broken connection has brought is kept but
counts for nothing.

Used by the reflector, which judges how it ended.
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
    """The watch says something that is no event, or stops in the middle of one."""


class NotStreamedError(UnreachableError):
    """The server took a question for everything there is as one for what changes."""


class WatchConnection(Generic[T]):
    """One connection."""

    def __init__(
        self,
        what: str,
        version: str,
        mirror: ReflectorStore[T],
        counts: ReflectorCounters,
        on_listed: Callable[[], None],
    ) -> None:
        """
        Go on from *version*, or begin with everything there is when it is empty.

        *on_listed* is called when everything has come and what is gone has been removed.
        """
        self.version = version
        """The last version heard of; empty until everything there is has come."""
        self.heard = 0
        """Lines that were events."""
        self._what = what
        self._mirror = mirror
        self._counts = counts
        self._on_listed = on_listed
        self._cutter = LineCutter()
        self._breath = TimeSlice()

    async def take(self, chunk: bytes) -> None:
        """Take in what came; raises what an ERROR event says, and BrokenError for what is no event."""
        before = self._cutter.skipped
        lines = self._cutter.feed(chunk)
        self._counts.oversized += self._cutter.skipped - before
        for line in lines:
            if version := self._event(line):
                await self._finish_list(version)
            if self._breath.due():
                await self._breath.pause()

    def end(self) -> None:
        """Judge what is left when the server has ended the stream: a bare Status, or half a line."""
        rest = self._cutter.rest()
        if not rest:
            return
        if read_status(rest) is not None:
            raise watch_events.read_error(self._what, rest)
        raise BrokenWatchError(self._what, "the watch ended in the middle of a line")

    def _event(self, line: bytes) -> str:
        """Take in one line; return the version of the list that it ends, if it does."""
        event = watch_events.read_event(line)
        if event is None:
            raise BrokenWatchError(self._what, "a line of the watch is no event")
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
                # A kind of event that was invented after us is no reason to stop.
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
            self._mirror.forget(name)
        else:
            data = watch_events.object_of(line, event)
            self._mirror.see(name, head.version, data, uid=head.uid, listed=not self.version)
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
            raise NotStreamedError(self._what, "the list that was asked for does not end")
        return bookmark.version

    async def _finish_list(self, version: str) -> None:
        for _ in self._mirror.finish():
            if self._breath.due():
                await self._breath.pause()
        self.version = version
        self._on_listed()
