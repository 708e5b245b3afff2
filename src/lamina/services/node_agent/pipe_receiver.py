"""
The publisher's end of the pipe: receives frames from the reader, and detects a silent or missing reader.

    opened --first frame--> receiving --no frame for `SILENT` seconds, or closed and not reopened--> problem
                               |
                               +-----invalid frame: closed, problem at once, opened again after a while

The reader may be compromised. A frame is used only if it matches the schema. The reader cannot make this process hold
more than one frame. Data is read at `WINDOW_BYTES` per `WINDOW` seconds at most. A reader that ends soon after each
start is admitted less and less often. A new start does not resolve a problem; an inventory does.
"""

import asyncio
import logging
import os
import random
from typing import Final, Protocol

from lamina.model.digest import Digest
from lamina.services.node_agent.image_layers_writer import ImageLayersWriter
from lamina.services.node_agent.node_layers_reporter import NodeLayersReporter
from lamina.services.node_agent.pipe_readiness import wait_readable
from lamina.services.node_agent.report_backoff import ReportBackoff
from lamina.wire.node_agent_frames import (
    FrameCutter,
    FrameError,
    HeartbeatFrame,
    ImageFrame,
    InventoryFrame,
    RuntimeErrorFrame,
)

CHUNK: Final = 64 * 1024
SILENT: Final = 60.0
"""Seconds without a frame from a reader that sends one every 15 seconds."""
BACK_WITHIN: Final = 15.0
"""Seconds for a reader to reconnect before this is reported as a problem."""
WINDOW: Final = 10.0
WINDOW_BYTES: Final = 16 * 1024**2
FRAME_COST: Final = 2048
"""Bytes that each frame costs beside its own, because small frames need processing too."""
LASTING: Final = 60.0
"""Seconds that a reader must run before its back-off is reset."""
LONGEST_WAIT: Final = 30.0

IS_SILENT: Final = "the node agent's reader is silent; check its container"
IS_GONE: Final = "the node agent's reader is not running; check its container"

log = logging.getLogger(__name__)


class ReaderChannel(Protocol):
    """Connection to a reader: a named pipe, or a child process."""

    async def open(self) -> int:
        """Open a new pipe to read from, without waiting for a reader."""

    async def close(self) -> None:
        """Disconnect the reader; the caller of `open` closes the pipe."""


class PipeReceiver:
    """Receives frames from the reader."""

    def __init__(
        self, channel: ReaderChannel, reporter: NodeLayersReporter, writer: ImageLayersWriter, rng: random.Random
    ) -> None:
        """Connect readers with *channel*; pass frames to *reporter* and *writer*."""
        self._channel, self._reporter, self._writer = channel, reporter, writer
        self._backoff = ReportBackoff(rng, longest=LONGEST_WAIT)
        self._receiving_since: float | None = None
        self._runtime_trouble = ""
        self._own_trouble = ""
        self._deadline = 0.0
        self._why = IS_GONE

    async def run(self) -> None:
        """Receive until cancelled."""
        self._expect(BACK_WITHIN, IS_GONE)
        watching = asyncio.create_task(self._watch_silence())
        try:
            await self._listen()
        finally:
            watching.cancel()

    async def _listen(self) -> None:
        while True:
            try:
                await self._receive_one()
                self._expect(BACK_WITHIN, IS_GONE)
                log.info("reader disconnected")
            except FrameError as error:
                self._report_problem(f"the node agent's reader sent an invalid frame: {error.problem}")
            except OSError as error:
                self._report_problem(f"no pipe for the node agent's reader: {error.strerror or type(error).__name__}")
            since, now = self._receiving_since, asyncio.get_running_loop().time()
            if since is not None and now - since >= LASTING:
                self._backoff.went_well()
            await asyncio.sleep(self._backoff.after_failure())

    async def _receive_one(self) -> None:
        self._receiving_since = None
        pipe = await self._channel.open()
        try:
            await self._receive(pipe)
        finally:
            os.close(pipe)
            await self._channel.close()

    async def _receive(self, pipe: int) -> None:
        """Process frames until the reader disconnects."""
        loop = asyncio.get_running_loop()
        cutter = FrameCutter()
        ends, allowed = loop.time() + WINDOW, WINDOW_BYTES
        while data := await _read(pipe):
            for frame in cutter.feed(data):
                self._handle(frame)
                allowed -= FRAME_COST
            allowed -= len(data)
            now = loop.time()
            if allowed <= 0 and now < ends:
                await asyncio.sleep(ends - now)
            if allowed <= 0 or now >= ends:
                ends, allowed = loop.time() + WINDOW, WINDOW_BYTES

    def _handle(self, frame: InventoryFrame | ImageFrame | RuntimeErrorFrame | HeartbeatFrame) -> None:
        self._expect(SILENT, IS_SILENT)
        if self._receiving_since is None:
            self._receiving_since = asyncio.get_running_loop().time()
        match frame:
            case InventoryFrame():
                self._end_trouble()
                self._runtime_trouble = ""
                self._writer.hold([Digest(image.digest) for image in frame.images])
                self._reporter.look(frame)
            case ImageFrame():
                self._writer.offer(frame)
            case RuntimeErrorFrame():
                self._own_trouble = ""
                self._runtime_trouble = frame.problem
                self._reporter.trouble(frame.problem)
            case HeartbeatFrame() if frame.observed_at:
                self._end_trouble()
                self._reporter.alive(frame.observed_at)

    def _expect(self, seconds: float, why: str) -> None:
        self._deadline, self._why = asyncio.get_running_loop().time() + seconds, why

    def _report_problem(self, problem: str) -> None:
        if problem != self._own_trouble:
            log.warning("reader failed", extra={"problem": problem})
        self._own_trouble = problem
        self._reporter.trouble(problem)

    def _end_trouble(self) -> None:
        """End a problem of the reader; report the runtime's problem instead, if there is one."""
        if self._own_trouble:
            log.info("reader recovered")
            self._own_trouble = ""
            self._reporter.trouble(self._runtime_trouble)

    async def _watch_silence(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(self._deadline - loop.time(), 1.0))
            if loop.time() >= self._deadline and not self._own_trouble:
                self._report_problem(self._why)


async def _read(pipe: int) -> bytes:
    """Return the next data; empty if the writer has closed the pipe."""
    while True:
        await wait_readable(pipe)
        try:
            return os.read(pipe, CHUNK)
        except BlockingIOError:
            continue  # the pipe was opened, but has no data yet
