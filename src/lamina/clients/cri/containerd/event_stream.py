"""
Listens to containerd's events, for as long as somebody looks.

A stream that breaks is opened again, at first soon and then less often, and at once when containerd is known to be back.
Whatever happened in between was not heard, so everything counts as changed. Until a new stream has proved to last, whoever looks should not rely on it.
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
"""Seconds after which a stream on which nothing was said counts as open: the server says nothing on opening it."""
REMOVAL: Final = "/images/delete"

log: Final = logging.getLogger(__name__)


class ChangeCallback(Protocol):
    """Called when a look may be worth it."""

    def __call__(self, *, removal: bool) -> None:
        """Something happened; whether an image was removed."""


class EventListener:
    """One stream of events after another."""

    def __init__(self, calls: ContainerdClient, ledger: ContainerdEventLog, tell: ChangeCallback) -> None:
        self.deaf = False
        """Whether events may be missed at the moment."""
        self._calls, self._ledger, self._tell = calls, ledger, tell
        self._task: asyncio.Task[None] | None = None
        self._opened = 0.0
        self._pause = SOON
        self._back = asyncio.Event()

    def start(self) -> None:
        """Begin, unless that was done and still goes on."""
        if self._task is not None and self._task.done():
            # It ended by itself, in a way that nobody foresaw, and nobody has listened since.
            self.deaf = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen(), name="containerd events")

    def back(self) -> None:
        """Containerd answers again: whoever waits before opening the next stream need not wait any longer."""
        self._back.set()

    async def stop(self) -> None:
        """Hang up."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _listen(self) -> None:
        while True:
            await self._hear_one_stream()
            lasted = time.monotonic() - self._opened > LASTING
            self._pause = SOON if lasted else min(self._pause * 2, LATEST)
            self._ledger.missed()
            if not self.deaf:
                self.deaf = True
                self._tell(removal=False)
            self._back.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._back.wait()

    async def _hear_one_stream(self) -> None:
        self._opened = time.monotonic()
        proof = asyncio.get_running_loop().call_later(LASTING, self._proved)
        try:
            async with aclosing(self._calls.events(TOPICS)) as envelopes:
                async for envelope in envelopes:
                    self._proved()
                    self._enter(envelope)
        except (RuntimeSourceError, AbsentError) as error:
            log.info("event stream broke", extra={"problem": str(error)[:200]})
        finally:
            proof.cancel()

    def _proved(self) -> None:
        if self.deaf:
            self.deaf = False
            # What happened before the stream was open was not heard.
            self._ledger.missed()
            self._tell(removal=False)

    def _enter(self, envelope: types_pb2.Envelope) -> None:
        if self._ledger.enter(envelope):
            self._tell(removal=envelope.topic == REMOVAL)
