"""
The publisher's end of the pipe: hears what the reader says, and what it means when the reader says nothing.

    opened --first frame--> heard --nothing for `SILENT` seconds, or hung up and not back--> trouble
                              |
                              +-----what is no frame: hung up on, trouble at once, opened again after a while

The reader may have been taken over. Nothing it says is believed before it fits the schema, it cannot make this process
hold more than one frame, and it is read no faster than `WINDOW_BYTES` in `WINDOW` seconds. One that ends soon after each
start is let in less and less often, and that it has started is no news that would end a trouble: what it saw is.
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
"""Seconds without a word from a reader that says something every 15."""
BACK_WITHIN: Final = 15.0
"""Seconds for a reader that is gone to come back before anybody is told."""
WINDOW: Final = 10.0
WINDOW_BYTES: Final = 16 * 1024**2
FRAME_COST: Final = 2048
"""Bytes that a frame counts for beside its own: the smallest ones, too, have to be understood."""
LASTING: Final = 60.0
"""Seconds a reader has to be heard before it counts as one that works."""
LONGEST_WAIT: Final = 30.0

IS_SILENT: Final = "the agent's reader says nothing; look at its container"
IS_GONE: Final = "the agent's reader is gone; look at its container"

log = logging.getLogger(__name__)


class ReaderChannel(Protocol):
    """Where the reader comes in: a named pipe, or a child process."""

    async def open(self) -> int:
        """Open a new pipe to read from, without waiting for anybody to come."""

    async def close(self) -> None:
        """Let go of whoever is behind it; the pipe itself is closed by who reads it."""


class PipeReceiver:
    """Hears the reader."""

    def __init__(
        self, door: ReaderChannel, reporter: NodeLayersReporter, describer: ImageLayersWriter, rng: random.Random
    ) -> None:
        """Let readers in at *door*, and pass on what they say."""
        self._door, self._reporter, self._describer = door, reporter, describer
        self._patience = ReportBackoff(rng, longest=LONGEST_WAIT)
        self._heard_since: float | None = None
        self._runtime_trouble = ""
        self._own_trouble = ""
        self._deadline = 0.0
        self._why = IS_GONE

    async def run(self) -> None:
        """Listen for ever."""
        self._expect(BACK_WITHIN, IS_GONE)
        minding = asyncio.create_task(self._mind_silence())
        try:
            await self._listen()
        finally:
            minding.cancel()

    async def _listen(self) -> None:
        while True:
            try:
                await self._let_in()
                self._expect(BACK_WITHIN, IS_GONE)
                log.info("the reader has hung up")
            except FrameError as error:
                self._tell(f"the agent's reader cannot be understood: {error.problem}")
            except OSError as error:
                self._tell(f"there is no pipe for the agent's reader: {error.strerror or type(error).__name__}")
            since, now = self._heard_since, asyncio.get_running_loop().time()
            if since is not None and now - since >= LASTING:
                self._patience.went_well()
            await asyncio.sleep(self._patience.after_failure())

    async def _let_in(self) -> None:
        self._heard_since = None
        pipe = await self._door.open()
        try:
            await self._hear_out(pipe)
        finally:
            os.close(pipe)
            await self._door.close()

    async def _hear_out(self, pipe: int) -> None:
        """Hear what comes until the reader hangs up."""
        loop = asyncio.get_running_loop()
        cutter = FrameCutter()
        ends, allowed = loop.time() + WINDOW, WINDOW_BYTES
        while data := await _read(pipe):
            for frame in cutter.feed(data):
                self._hear(frame)
                allowed -= FRAME_COST
            allowed -= len(data)
            now = loop.time()
            if allowed <= 0 and now < ends:
                await asyncio.sleep(ends - now)
            if allowed <= 0 or now >= ends:
                ends, allowed = loop.time() + WINDOW, WINDOW_BYTES

    def _hear(self, frame: InventoryFrame | ImageFrame | RuntimeErrorFrame | HeartbeatFrame) -> None:
        self._expect(SILENT, IS_SILENT)
        if self._heard_since is None:
            self._heard_since = asyncio.get_running_loop().time()
        match frame:
            case InventoryFrame():
                self._end_trouble()
                self._runtime_trouble = ""
                self._describer.hold([Digest(image.digest) for image in frame.images])
                self._reporter.look(frame)
            case ImageFrame():
                self._describer.offer(frame)
            case RuntimeErrorFrame():
                self._own_trouble = ""
                self._runtime_trouble = frame.problem
                self._reporter.trouble(frame.problem)
            case HeartbeatFrame() if frame.observed_at:
                self._end_trouble()
                self._reporter.alive(frame.observed_at)

    def _expect(self, seconds: float, why: str) -> None:
        self._deadline, self._why = asyncio.get_running_loop().time() + seconds, why

    def _tell(self, problem: str) -> None:
        if problem != self._own_trouble:
            log.warning("the reader is in trouble", extra={"problem": problem})
        self._own_trouble = problem
        self._reporter.trouble(problem)

    def _end_trouble(self) -> None:
        """The reader speaks again: what counts is what it says of the runtime."""
        if self._own_trouble:
            log.info("the reader is heard again")
            self._own_trouble = ""
            self._reporter.trouble(self._runtime_trouble)

    async def _mind_silence(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(self._deadline - loop.time(), 1.0))
            if loop.time() >= self._deadline and not self._own_trouble:
                self._tell(self._why)


async def _read(pipe: int) -> bytes:
    """Read what has come, or wait for it; nothing means that whoever wrote has hung up."""
    while True:
        await wait_readable(pipe)
        try:
            return os.read(pipe, CHUNK)
        except BlockingIOError:
            continue  # somebody opened it and has not said anything yet
