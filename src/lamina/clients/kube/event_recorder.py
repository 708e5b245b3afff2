"""
Event recorder (events.k8s.io/v1): `kubectl describe` shows what the scheduler did.

    record --new--> queue --worker--> POST
           --again within 6 min--> one PATCH: a series; later repeats are counted, and written when the series ends

`record` never waits and never raises, because events must not delay scheduling. Events beyond the limit of one object,
beyond the queue limit, or rejected by the server are dropped and counted. The rules are client-go's: its series
(tools/events) and its limit for each object (tools/record). Two differences: events are equal when their texts are,
whatever resourceVersion the object has, and all memory is bounded.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeAlias
from urllib.parse import quote

import msgspec

from lamina.clients.kube.api_timestamps import micro_time
from lamina.clients.kube.backoff import RetryBackoff, TimeSource
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.event import PART_LIMIT, EventMetadata, KubeEvent, ObjectReference, clipped_note, event_name
from lamina.clients.kube.pod_writes import STRATEGIC, WriteClient
from lamina.model.token_bucket import TokenBuckets

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

TRIES: Final = 3
POST_SECONDS: Final = 10.0
SWEEP_SECONDS: Final = 60.0
REFRESH_SECONDS: Final = 1800.0
"""Seconds between updates of an ongoing series; API servers delete events after an hour."""
EVENTS: Final = "/apis/events.k8s.io/v1"

_Key: TypeAlias = tuple[str, str, str, str, str, str]
"""Identity of an event: object, type, reason, action, note, and the related object."""


class RecorderLimits(msgspec.Struct, frozen=True):
    """Limits of the recorder; times in seconds."""

    queued: int = 10_000
    workers: int = 16
    """Requests in flight at once: as many as bindings, so that events do not fall behind them."""
    remembered: int = 4_096
    """Events kept so that repeats can join them as a series."""
    series: float = 360.0
    """A series ends after this time without a repeat."""
    burst: int = 25
    """Events of one object at once, then one in each *interval* (client-go's spam filter, tools/record)."""
    interval: float = 300.0
    objects: int = 4_096
    """Objects with a token bucket; an evicted object starts again with a full burst."""


class EventCounters(msgspec.Struct):
    """Outcome counts of events."""

    posted: int = 0
    patched: int = 0
    repeats: int = 0
    """Repeats, reported as the count of a series."""
    limited: int = 0
    """Dropped by the token bucket of one object."""
    overflowed: int = 0
    """Dropped because the queue was full."""
    failed: int = 0
    """Dropped because the server rejected them or was unreachable."""


class _RecordedEvent(msgspec.Struct, eq=False):
    """One event and its repeats."""

    key: _Key
    event: KubeEvent
    last: float
    """Monotonic time of the last occurrence; *seen* is the same in nanoseconds since 1970."""
    seen: int
    count: int = 1
    reported: int = 0
    """The count that the server has; 0 if it does not have the event."""
    reported_at: float = 0.0
    waiting: bool = False
    """Queued or in flight."""
    finishing: bool = False
    """Whether the series has ended and its last count must be written."""
    tries: int = 0


class EventRecorder:
    """Records events and writes them to the API server in the background."""

    def __init__(
        self,
        client: WriteClient,
        controller: str,
        instance: str,
        *,
        limits: RecorderLimits = RecorderLimits(),  # noqa: B008  frozen
        timing: TimeSource | None = None,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        """Report as *controller*, the scheduler's name, and *instance*: the name, a dash, the host."""
        self.counts = EventCounters()
        self._client, self._limits = client, limits
        self._controller, self._instance = controller, instance.encode()[:PART_LIMIT].decode(errors="ignore")
        self._timing = timing or TimeSource()
        self._clock, self._wall = self._timing.clock, wall
        self._backoff = RetryBackoff(self._timing)
        self._resume_at = -float("inf")
        self._queue: asyncio.Queue[_RecordedEvent] = asyncio.Queue()
        self._entries: OrderedDict[_Key, _RecordedEvent] = OrderedDict()
        """In the order of their last occurrence, oldest first."""
        self._events = TokenBuckets(1.0 / limits.interval, limits.burst, limits.objects)
        self._nanos = 0

    def record(
        self,
        regarding: ObjectReference,
        kind: str,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
    ) -> None:
        """Record an event; *kind* is Normal or Warning. Never waits, never raises."""
        now = self._clock()
        note = clipped_note(note)
        about = regarding.identity
        key = (about, kind, reason, action, note, related.uid if related is not None else "")
        known = self._entries.pop(key, None)
        if known is not None and now - known.last < self._limits.series:
            self._entries[key] = known
            self._again(known, now)
            return
        if known is not None:
            self._finish(known)
        if not self._events.take(about, now):
            self.counts.limited += 1
        elif self._queue.qsize() >= self._limits.queued:
            self.counts.overflowed += 1
        else:
            entry = self._entry(key, regarding, related, now)
            self._entries[key] = entry
            self._put(entry)
            if len(self._entries) > self._limits.remembered:
                self._finish(self._entries.popitem(last=False)[1])

    async def run(self) -> None:
        """Write events to the server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._limits.workers):
                group.create_task(self._work())
            while True:
                await self._timing.sleep(SWEEP_SECONDS)
                self._sweep()

    async def drain(self, timeout: float) -> bool:
        """Write all pending events and final series counts; return False if *timeout* seconds pass first."""
        for entry in self._entries.values():
            self._finish(entry)
        try:
            async with asyncio.timeout(timeout):
                await self._queue.join()
        except TimeoutError:
            return False
        return True

    def _entry(
        self, key: _Key, regarding: ObjectReference, related: ObjectReference | None, now: float
    ) -> _RecordedEvent:
        self._nanos = nanos = max(self._wall(), self._nanos + 1)
        event = KubeEvent(
            EventMetadata(event_name(regarding.name, nanos), regarding.namespace or "default"),
            micro_time(nanos),
            self._controller,
            self._instance,
            key[3],
            key[2],
            regarding,
            key[4],
            key[1],
            related,
        )
        return _RecordedEvent(key, event, now, nanos)

    def _again(self, entry: _RecordedEvent, now: float) -> None:
        """Count a repeat; write the first, then one in half an hour so that the server keeps the event."""
        self.counts.repeats += 1
        entry.count, entry.finishing = entry.count + 1, False
        entry.last, entry.seen = now, self._wall()
        if not entry.waiting and (entry.reported < 2 or now - entry.reported_at >= REFRESH_SECONDS):
            self._put(entry)

    def _finish(self, entry: _RecordedEvent) -> None:
        """Write the final count of a series."""
        entry.finishing = True
        if entry.count > 1 and entry.count != entry.reported and not entry.waiting:
            self._put(entry)

    def _put(self, entry: _RecordedEvent) -> None:
        # Series updates may exceed the queue limit: there is at most one for each remembered event.
        entry.waiting = True
        self._queue.put_nowait(entry)

    def _sweep(self) -> None:
        """Forget events without a recent repeat."""
        now = self._clock()
        while self._entries:
            entry = next(iter(self._entries.values()))
            if now - entry.last < self._limits.series:
                return
            del self._entries[entry.key]
            self._finish(entry)

    async def _work(self) -> None:
        while True:
            entry = await self._queue.get()
            while (pause := self._resume_at - self._clock()) > 0:
                await self._timing.sleep(pause)
            try:
                await self._write(entry)
            finally:
                self._queue.task_done()

    async def _write(self, entry: _RecordedEvent) -> None:
        count = entry.count
        try:
            await self._send(entry, count)
        except (ApiError, UnreachableError) as error:
            self._failed(entry, error)
            return
        entry.reported, entry.reported_at, entry.tries, entry.waiting = count, self._clock(), 0, False
        if entry.count > count and (count == 1 or entry.finishing):
            self._put(entry)

    async def _send(self, entry: _RecordedEvent, count: int) -> None:
        """POST an event, or PATCH one that the server has."""
        event, path = entry.event, f"{EVENTS}/namespaces/{quote(entry.event.metadata.namespace, safe='')}/events"
        event.repeated(count, entry.seen)
        if entry.reported:
            body = event.encoded_series()
            where = f"{path}/{quote(event.metadata.name, safe='')}"
            try:
                await self._client.request("PATCH", where, body=body, content_type=STRATEGIC, timeout=POST_SECONDS)
                self.counts.patched += 1
                return
            except ApiError as error:
                if error.status != 404:
                    raise
                entry.reported = 0  # the server has deleted it after its TTL: create it again
        try:
            await self._client.request("POST", path, body=event.encoded(), timeout=POST_SECONDS)
        except ApiError as error:
            # 409 after a retry: the first POST arrived and its response was lost.
            if error.status != 409 or not entry.tries:
                raise
        self.counts.posted += 1

    def _failed(self, entry: _RecordedEvent, error: ApiError | UnreachableError) -> None:
        """Back off after a temporary failure; drop the event after `TRIES` attempts or a rejection."""
        entry.tries += 1
        passing = isinstance(error, UnreachableError) or error.status == 429 or error.status >= 500
        if passing:
            asked = error.retry_after if isinstance(error, ApiError) else None
            self._resume_at = max(self._resume_at, self._clock() + self._backoff.after_failure(asked))
        if passing and entry.tries < TRIES:
            self._queue.put_nowait(entry)
            return
        self.counts.failed += 1
        entry.waiting = False
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]
