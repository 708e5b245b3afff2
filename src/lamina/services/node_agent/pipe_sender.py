"""
The reader's end of the pipe: keeps the newest frames until they are sent, and never blocks the reader.

    disconnected --the publisher opens the pipe--> sending --the publisher is gone--> disconnected

A new publisher gets everything: the last inventory, the current problem if there is one, and the layers of every image.
After that it gets changes. If it reads more slowly than the runtime changes, only the newest inventory waits for it.

The layers of all images are offered again every hour: the publisher may have had no room for them, or their objects may
have been deleted.
"""

import asyncio
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from lamina.model.digest import Digest
from lamina.model.errors import InputError
from lamina.model.holdings import StoredImage
from lamina.services.node_agent.inventory_frames import describe_image, is_measured
from lamina.services.node_agent.pipe_readiness import wait_writable
from lamina.wire.node_agent_frames import (
    PROBLEM_LENGTH,
    Frame,
    HeartbeatFrame,
    InventoryFrame,
    RuntimeErrorFrame,
    encode_frame,
)

RETRY: Final = 0.5
"""Seconds between two attempts to open the pipe."""
ALIVE_EVERY: Final = 15.0
OFFER_EVERY: Final = 3600.0

log = logging.getLogger(__name__)


class PipeSender:
    """Frames for the publisher."""

    def __init__(self, open_pipe: Callable[[], int | None]) -> None:
        """Send into the pipe that *open_pipe* opens; None means that no publisher reads it yet."""
        self._open = open_pipe
        self._wake = asyncio.Event()
        self._look: InventoryFrame | None = None
        self._trouble = ""
        self._images: dict[Digest, StoredImage] = {}
        # Frames that the current publisher has not received yet.
        self._waiting: list[Frame] = []
        self._offers: dict[Digest, None] = {}
        self._offered: dict[Digest, bool] = {}
        """By digest: whether the sizes were sent as well."""
        self._gone = False

    # -- callbacks of the reader -------------------------------------------------------------------------------------

    def send(self, look: InventoryFrame, images: tuple[StoredImage, ...]) -> None:
        """Accept a new inventory."""
        # An inventory that still waits was never sent; one that ends a problem is news even if it is unchanged.
        unheard = bool(self._trouble) or any(isinstance(frame, InventoryFrame) for frame in self._waiting)
        same = self._look is not None and not unheard and _same(self._look, look)
        self._waiting = [HeartbeatFrame(look.observed_at) if same else look]
        self._look, self._trouble = look, ""
        # Large images first: they matter most.
        self._images = {image.digest: image for image in sorted(images, key=lambda one: (-one.size, one.digest))}
        self._offer()
        self._wake.set()

    def send_problem(self, problem: str) -> None:
        """Accept a problem of the runtime."""
        if problem == self._trouble:
            return
        self._trouble = problem
        looks: list[Frame] = [frame for frame in self._waiting if isinstance(frame, InventoryFrame)]
        self._waiting = [*looks, RuntimeErrorFrame(problem[:PROBLEM_LENGTH])]
        self._wake.set()

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self, *, once: bool = False) -> None:
        """Send until cancelled; with *once*, until the first publisher disconnects."""
        while True:
            pipe = await self._connect()
            self._begin()
            log.info("publisher connected")
            try:
                await self._send(pipe)
            except BrokenPipeError:
                log.info("publisher disconnected")
            finally:
                asyncio.get_running_loop().remove_reader(pipe)
                os.close(pipe)
            if once:
                return

    async def _connect(self) -> int:
        pipe = self._open()
        if pipe is None:
            log.info("waiting for the publisher to open the pipe")
        while pipe is None:
            await asyncio.sleep(RETRY)
            pipe = self._open()
        # The writing end of a pipe becomes readable only when its reader is gone.
        asyncio.get_running_loop().add_reader(pipe, self._lost, pipe)
        return pipe

    def _begin(self) -> None:
        self._gone = False
        self._offered.clear()
        self._offers.clear()
        self._waiting = [] if self._look is None else [self._look]
        if self._trouble:
            self._waiting.append(RuntimeErrorFrame(self._trouble[:PROBLEM_LENGTH]))
        self._waiting = self._waiting or [HeartbeatFrame()]
        self._offer()

    async def _send(self, pipe: int) -> None:
        loop = asyncio.get_running_loop()
        offer_at = loop.time() + OFFER_EVERY
        while not self._gone:
            if loop.time() >= offer_at:
                offer_at = loop.time() + OFFER_EVERY
                self._offered.clear()
                self._offer()
            frame = self._next()
            if frame is not None:
                await self._write(pipe, encode_frame(frame))
                continue
            self._wake.clear()
            try:
                async with asyncio.timeout(ALIVE_EVERY):
                    await self._wake.wait()
            except TimeoutError:
                self._waiting.append(HeartbeatFrame(0.0 if self._look is None else self._look.observed_at))
        raise BrokenPipeError

    async def _write(self, pipe: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(pipe, rest) :]
            except BlockingIOError:
                await wait_writable(pipe)

    def _next(self) -> Frame | None:
        if self._waiting:
            return self._waiting.pop(0)
        while self._offers:
            digest = next(iter(self._offers))
            del self._offers[digest]
            image = self._images.get(digest)
            frame = describe_image(image) if image is not None else None
            if image is not None and frame is not None:
                self._offered[digest] = is_measured(image)
                return frame
        return None

    def _offer(self) -> None:
        """Queue images whose layers were not sent, or only without sizes."""
        self._offers = {digest: None for digest in self._offers if digest in self._images}
        self._offered = {digest: told for digest, told in self._offered.items() if digest in self._images}
        for digest, image in self._images.items():
            if digest not in self._offered or (not self._offered[digest] and is_measured(image)):
                self._offers[digest] = None

    def _lost(self, pipe: int) -> None:
        # Once is enough: it would be called repeatedly until the pipe is closed.
        asyncio.get_running_loop().remove_reader(pipe)
        self._gone = True
        self._wake.set()


def open_fifo(path: Path) -> int | None:
    """Open a named pipe for writing; None while it has no reader. Raises InputError if it is not a pipe."""
    try:
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        # The pipe does not exist yet, has no reader, or was replaced by another file.
        return None
    if stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return pipe
    os.close(pipe)
    raise InputError.one(str(path), "is not a pipe; remove it, and let the publisher create one")


def _same(before: InventoryFrame, now: InventoryFrame) -> bool:
    return msgspec.structs.replace(before, observed_at=now.observed_at) == now
