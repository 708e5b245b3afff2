"""
A resource of the API server, kept up to date on our side.

    list --all there--> watch --ends--> watch --breaks, falls silent--> compare histories --the same--> watch
     ^                    |                                                     |
     +--- it is gone -----+--------------------- it is another one -------------+

The list is a watch that begins with everything there is; where a server refuses that, it is pages. The watch goes on
from the last version heard of, so that nothing is missed between two connections. What a list no longer has is removed.

- Gone (410 in any form, a version the server has not reached, a watch that is closed at once without a word): one new
  list. Anything else (a break, an error, silence) goes on from where we were.
- After a failure the next attempt waits (`backoff.Backoff`), and no fault whatever gets more than ten attempts in ten
  seconds (`backoff.Pace`).
- A connection that brings nothing for `IDLE` seconds is given up. A live one may well be silent for longer: a server
  sends a bookmark a minute, but only when its history has moved. Then the reconnect is for nothing, and does no harm.
- After a break the server's history is compared with ours. A server restored from a backup would otherwise let us watch
  from a version it has yet to reach, and say nothing about all that happens until then.

Run by the services, one for each resource. Never decides; it tells a sink (`mirror.Sink`).
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from lamina.clients.kube import paged_list, watch_events
from lamina.clients.kube.backoff import AttemptRateLimit, TimeSource
from lamina.clients.kube.errors import ApiError, SilenceError, UnreachableError
from lamina.clients.kube.reflector_counters import ReflectorCounters
from lamina.clients.kube.reflector_store import ReflectorSink, ReflectorStore
from lamina.clients.kube.relist_policy import RelistPolicy, WatchOutcome
from lamina.clients.kube.time_slice import TimeSlice
from lamina.clients.kube.watch_connection import BrokenWatchError, WatchConnection

T = TypeVar("T")

IDLE: Final = 75.0
"""Seconds without a byte until a connection counts as dead: more than a server's minute between bookmarks."""
SHORTEST_WATCH: Final = 300
LONGEST_WATCH: Final = 600
"""Seconds after which the server is asked to end a watch, so that connections spread over its replicas anew."""

log: Final = logging.getLogger(__name__)


class ReflectedResource(msgspec.Struct, frozen=True, kw_only=True):
    """What to mirror."""

    path: str
    """``/api/v1/pods``"""
    kind: str
    """``Pod``"""
    field_selector: str = ""
    label_selector: str = ""

    @property
    def selectors(self) -> dict[str, str]:
        """The part of every query that says which objects are meant."""
        both = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {name: value for name, value in both.items() if value}


class WatchClient(paged_list.ListClient, Protocol):
    """What is needed of `lamina.clients.kube.transport.KubeClient`."""

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, read_timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open an answer that goes on."""
        ...


class Reflector(Generic[T]):
    """Mirrors one resource for as long as it runs."""

    def __init__(  # noqa: PLR0913 - what to mirror, and how its objects are read
        self,
        client: WatchClient,
        resource: ReflectedResource,
        decode: Callable[[bytes], T],
        key: Callable[[T], str],
        sink: ReflectorSink[T],
        *,
        timing: TimeSource | None = None,
        ended: Callable[[T], bool] | None = None,
    ) -> None:
        """
        Tell *sink* of every object of *resource*, read by *decode* and known to it by *key*.

        An object that has *ended* is put once and not held any more (`mirror.Mirror`).
        """
        self._client = client
        self._resource = resource
        self._sink = sink
        self._timing = timing if timing is not None else TimeSource()
        self._pace = AttemptRateLimit(self._timing)
        self.counts = ReflectorCounters()
        self._course = RelistPolicy(self._timing, self.counts)
        self.mirror = ReflectorStore(decode, key, sink, self.counts, ended)
        """What is there, as far as we know."""
        self.synced = False
        """Whether there has been a whole list; until then nothing can be said about what does not exist."""
        self.last_seen = float("-inf")
        """When the server last sent something, by the monotonic clock."""
        self.stale_since: float | None = self._timing.clock()
        """Since when we may have missed something; None while we follow. What we have is kept all the same."""
        self.problem = ""
        """What went wrong last, in words; empty while we follow."""

    async def run(self) -> None:
        """Follow the resource until cancelled, or until the sink raises."""
        while True:
            wait = await self._attempt()
            if wait > 0:
                await self._timing.sleep(wait)

    async def _attempt(self) -> float:
        """List or watch until that ends; return how long to wait before the next attempt."""
        course, ending = self._course, WatchOutcome()
        try:
            if course.version and course.doubtful:
                await self._compare_histories()
            if not course.version and not course.may_stream:
                await self._list_pages()
            await self._watch(ending)
        except (ApiError, UnreachableError) as error:
            ending.error = error
            self._note(error)
        relists = self.counts.relists.total()
        wait = course.after(ending)
        if self.counts.relists.total() > relists:
            self._lost()
        return wait

    async def _connect(self) -> None:
        await self._pace.attempt()
        self.counts.connects += 1

    async def _compare_histories(self) -> None:
        await self._connect()
        self._course.compare(
            await paged_list.current_version(self._client, self._resource.path, self._resource.selectors)
        )

    async def _list_pages(self) -> None:
        await self._connect()
        breath = TimeSlice()
        version = ""
        self.mirror.begin(trusting=self._course.trusting)
        async for page in paged_list.list_pages(self._client, self._resource.path, self._resource.selectors):
            self.last_seen = self._timing.clock()
            version = page.metadata.resource_version or version
            for data in page.items or ():
                self._see(bytes(data))
                if breath.due():
                    await breath.pause()
        if not version:
            raise UnreachableError(
                f"GET {self._resource.path}", "the list has no version; is this a Kubernetes API server?"
            )
        for _ in self.mirror.finish():
            if breath.due():
                await breath.pause()
        self._course.version = version
        self._listed()

    def _see(self, data: bytes) -> None:
        head = watch_events.read_head(data)
        if not head.name:
            self.counts.undecodable += 1
            return
        self.counts.events += 1
        self.mirror.see(head.name, head.version, data, uid=head.uid, listed=True)

    async def _watch(self, ending: WatchOutcome) -> None:
        """Watch from the version we have, or from everything there is, and write down how that goes."""
        await self._connect()
        course = self._course
        what = f"watch {self._resource.path}"
        watch = WatchConnection(what, course.version, self.mirror, self.counts, self._listed)
        ending.streams_list = not course.version
        if ending.streams_list:
            self.mirror.begin(trusting=course.trusting)
        opened_at = self._timing.clock()
        try:
            async with self._client.stream(self._resource.path, query=self._query(), read_timeout=IDLE) as chunks:
                ending.opened, opened_at = True, self._timing.clock()
                if course.version:
                    self._follow()
                async for chunk in chunks:
                    self.last_seen = self._timing.clock()
                    await watch.take(chunk)
                watch.end()
        finally:
            ending.heard, ending.lasted = watch.heard, self._timing.clock() - opened_at
            course.version = watch.version

    def _query(self) -> dict[str, str]:
        query = {
            **self._resource.selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._timing.rng.randint(SHORTEST_WATCH, LONGEST_WATCH)),
        }
        if self._course.version:
            return query | {"resourceVersion": self._course.version}
        return query | {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}

    # -------------------------------------------------------------------------------------------------- how we stand

    def _listed(self) -> None:
        """Everything has come and what is gone has been removed."""
        self._course.listed()
        self.synced = True
        self._follow()
        self._sink.synced()

    def _follow(self) -> None:
        """Nothing can escape us now."""
        self.last_seen = self._timing.clock()
        self.stale_since = None
        self.problem = ""

    def _lost(self) -> None:
        """Something may have escaped us."""
        if self.stale_since is None:
            self.stale_since = self.last_seen

    def _note(self, error: ApiError | UnreachableError) -> None:
        """
        Keep what went wrong. A fault that lasts is told once, and silence, which is often none, not at all.

        Who has never seen everything cannot begin, and may never be able to: that is told louder than an interruption.
        """
        self._lost()
        words = str(error)
        known = words == self.problem or isinstance(error, SilenceError)
        level = logging.DEBUG if known else logging.INFO if self.synced else logging.WARNING
        log.log(level, "watch interrupted", extra={"path": self._resource.path, "problem": words})
        self.problem = words
        if isinstance(error, SilenceError):
            self.counts.idle += 1
        elif isinstance(error, BrokenWatchError):
            self.counts.broken += 1
