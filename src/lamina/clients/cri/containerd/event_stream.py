"""
Subscription to containerd's events.

A broken stream is opened again, with an increasing delay, and at once when a look succeeds again. Events in between are
lost, so everything is marked as changed. Until a new stream has lasted for `LASTING` seconds or delivered an event,
looks must not rely on it (`deaf`).
"""

import asyncio
import logging
import time
from contextlib import aclosing, suppress
from typing import Final, Protocol

from lamina.clients.cri.containerd.containerd_client import AbsentError, ContainerdClient
from lamina.clients.cri.containerd.event_log import TOPICS, ContainerdEventLog
from lamina.clients.cri.protos import types_pb2
from lamina.clients.cri.runtime_source import RuntimeSourceError

SOON: Final = 1.0
LATEST: Final = 30.0
LASTING: Final = 5.0
"""Seconds after which a silent stream is considered open; the server sends nothing on opening it."""
REMOVAL: Final = "/images/delete"

log: Final = logging.getLogger(__name__)


class ChangeCallback(Protocol):
    """Callback for events that make another look useful."""

    def __call__(self, *, removal: bool) -> None:
        """Report an event; *removal* if an image was removed."""


class EventListener:
    """Keeps one event stream open, reconnecting after failures."""

    def __init__(self, client: ContainerdClient, event_log: ContainerdEventLog, on_change: ChangeCallback) -> None:
        self.deaf = False
        """Whether events may be missed now."""
        self._client, self._event_log, self._on_change = client, event_log, on_change
        self._task: asyncio.Task[None] | None = None
        self._opened = 0.0
        self._pause = SOON
        self._back = asyncio.Event()

    def start(self) -> None:
        """Start the listener task, unless it runs."""
        if self._task is not None and self._task.done():
            # The task ended by an unexpected exception; events have been missed since.
            self.deaf = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen(), name="containerd events")

    def back(self) -> None:
        """Reconnect at once, because containerd responds again."""
        self._back.set()

    async def stop(self) -> None:
        """Stop the listener task."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _listen(self) -> None:
        while True:
            await self._read_one_stream()
            lasted = time.monotonic() - self._opened > LASTING
            self._pause = SOON if lasted else min(self._pause * 2, LATEST)
            self._event_log.missed()
            if not self.deaf:
                self.deaf = True
                self._on_change(removal=False)
            self._back.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._back.wait()

    async def _read_one_stream(self) -> None:
        self._opened = time.monotonic()
        confirmation = asyncio.get_running_loop().call_later(LASTING, self._confirm)
        try:
            async with aclosing(self._client.events(TOPICS)) as envelopes:
                async for envelope in envelopes:
                    self._confirm()
                    self._enter(envelope)
        except (RuntimeSourceError, AbsentError) as error:
            log.info("event stream broke, reconnecting", extra={"problem": str(error)[:200]})
        finally:
            confirmation.cancel()

    def _confirm(self) -> None:
        if self.deaf:
            self.deaf = False
            # Events before the stream was open were missed.
            self._event_log.missed()
            self._on_change(removal=False)

    def _enter(self, envelope: types_pb2.Envelope) -> None:
        if self._event_log.enter(envelope):
            self._on_change(removal=envelope.topic == REMOVAL)
