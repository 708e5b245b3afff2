"""
Reflector: keeps a local store of one API resource up to date by list and watch.

    list --complete--> watch --ends--> watch --breaks, idle--> compare versions --same history--> watch
     ^                   |                                            |
     +---- expired ------+----------------- another history ----------+

The list is a watch that starts with all existing objects; if a server rejects that, it is a paged list. A watch goes on
from the last version received, so no change is missed between two connections. Objects missing from a list are removed.

- Expired (410 in any form, a version the server has not reached, a watch that closes at once without events): relist.
  After anything else (a break, an error, an idle connection) the reflector continues from its version.
- After a failure the next attempt is delayed (`backoff.RetryBackoff`). No fault causes more than ten attempts in ten
  seconds (`backoff.AttemptRateLimit`).
- A connection without data for `IDLE` seconds is closed. A live one may be silent for longer: a server sends a bookmark
  a minute, but only if its version has changed. That reconnect is unnecessary and harmless.
- After a break, the reflector compares the server's version with its own. Otherwise, a server restored from a backup
  would accept a watch from a future version and send nothing until it reaches that version.

Services run one reflector for each resource. It makes no decisions; it passes changes to a `ReflectorSink`.
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
"""Seconds without data after which a connection is closed: more than a server's minute between bookmarks."""
SHORTEST_WATCH: Final = 300
LONGEST_WATCH: Final = 600
"""Seconds after which the server ends a watch, drawn at random, so that connections spread over its replicas."""

log: Final = logging.getLogger(__name__)


class ReflectedResource(msgspec.Struct, frozen=True, kw_only=True):
    """The resource to reflect."""

    path: str
    """``/api/v1/pods``"""
    kind: str
    """``Pod``"""
    field_selector: str = ""
    label_selector: str = ""

    @property
    def selectors(self) -> dict[str, str]:
        """Query parameters that select the objects."""
        both = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {name: value for name, value in both.items() if value}


class WatchClient(paged_list.ListClient, Protocol):
    """The part of `lamina.clients.kube.transport.KubeClient` that reflectors need."""

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, read_timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a streamed response."""
        ...


class Reflector(Generic[T]):
    """Reflects one resource while `run` is active."""

    def __init__(  # noqa: PLR0913 - what to reflect, and how to decode it
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
        Pass every object of *resource*, decoded by *decode*, to *sink*, which identifies it by *key*.

        An object for which *ended* returns True is passed once and then no longer held (`ReflectorStore`).
        """
        self._client = client
        self._resource = resource
        self._sink = sink
        self._timing = timing if timing is not None else TimeSource()
        self._attempt_limit = AttemptRateLimit(self._timing)
        self.counts = ReflectorCounters()
        self._relist_policy = RelistPolicy(self._timing, self.counts)
        self.store = ReflectorStore(decode, key, sink, self.counts, ended)
        """The objects received so far."""
        self.synced = False
        """Whether a list has completed; before that, an object's absence means nothing."""
        self.last_seen = float("-inf")
        """When the server last sent data, by the monotonic clock."""
        self.stale_since: float | None = self._timing.clock()
        """Since when changes may be missing; None while a watch is open. The store keeps its objects meanwhile."""
        self.problem = ""
        """The last failure as text; empty while a watch is open."""

    async def run(self) -> None:
        """List and watch until cancelled, or until the sink raises."""
        while True:
            wait = await self._attempt()
            if wait > 0:
                await self._timing.sleep(wait)

    async def _attempt(self) -> float:
        """List or watch until the connection ends; return the seconds to wait before the next attempt."""
        policy, outcome = self._relist_policy, WatchOutcome()
        try:
            if policy.version and policy.doubtful:
                await self._compare_histories()
            if not policy.version and not policy.may_stream:
                await self._list_pages()
            await self._watch(outcome)
        except (ApiError, UnreachableError) as error:
            outcome.error = error
            self._note(error)
        relists = self.counts.relists.total()
        wait = policy.after(outcome)
        if self.counts.relists.total() > relists:
            self._lost()
        return wait

    async def _connect(self) -> None:
        await self._attempt_limit.attempt()
        self.counts.connects += 1

    async def _compare_histories(self) -> None:
        await self._connect()
        self._relist_policy.compare(
            await paged_list.current_version(self._client, self._resource.path, self._resource.selectors)
        )

    async def _list_pages(self) -> None:
        await self._connect()
        time_slice = TimeSlice()
        version = ""
        self.store.begin(trusting=self._relist_policy.trusting)
        async for page in paged_list.list_pages(self._client, self._resource.path, self._resource.selectors):
            self.last_seen = self._timing.clock()
            version = page.metadata.resource_version or version
            for data in page.items or ():
                self._see(bytes(data))
                if time_slice.due():
                    await time_slice.pause()
        if not version:
            raise UnreachableError(
                f"GET {self._resource.path}", "the list has no version; is this a Kubernetes API server?"
            )
        for _ in self.store.finish():
            if time_slice.due():
                await time_slice.pause()
        self._relist_policy.version = version
        self._listed()

    def _see(self, data: bytes) -> None:
        head = watch_events.read_head(data)
        if not head.name:
            self.counts.undecodable += 1
            return
        self.counts.events += 1
        self.store.see(head.name, head.version, data, uid=head.uid, listed=True)

    async def _watch(self, outcome: WatchOutcome) -> None:
        """Watch from the current version, or from a streamed list, and record the outcome in *outcome*."""
        await self._connect()
        policy = self._relist_policy
        what = f"watch {self._resource.path}"
        watch = WatchConnection(what, policy.version, self.store, self.counts, self._listed)
        outcome.streams_list = not policy.version
        if outcome.streams_list:
            self.store.begin(trusting=policy.trusting)
        opened_at = self._timing.clock()
        try:
            async with self._client.stream(self._resource.path, query=self._query(), read_timeout=IDLE) as chunks:
                outcome.opened, opened_at = True, self._timing.clock()
                if policy.version:
                    self._follow()
                async for chunk in chunks:
                    self.last_seen = self._timing.clock()
                    await watch.take(chunk)
                watch.end()
        finally:
            outcome.heard, outcome.lasted = watch.heard, self._timing.clock() - opened_at
            policy.version = watch.version

    def _query(self) -> dict[str, str]:
        query = {
            **self._resource.selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._timing.rng.randint(SHORTEST_WATCH, LONGEST_WATCH)),
        }
        if self._relist_policy.version:
            return query | {"resourceVersion": self._relist_policy.version}
        return query | {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}

    # ------------------------------------------------------------------------------------------------------- state

    def _listed(self) -> None:
        """Mark the list as complete; missing objects have been removed."""
        self._relist_policy.listed()
        self.synced = True
        self._follow()
        self._sink.synced()

    def _follow(self) -> None:
        """Mark the store as up to date."""
        self.last_seen = self._timing.clock()
        self.stale_since = None
        self.problem = ""

    def _lost(self) -> None:
        """Mark the store as stale since the last data."""
        if self.stale_since is None:
            self.stale_since = self.last_seen

    def _note(self, error: ApiError | UnreachableError) -> None:
        """
        Record a failure. The same problem is logged once; idle connections, which are often harmless, only at debug.

        Before the first list is complete the level is WARNING, because the service cannot start without it.
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
