"""
Lamina as Batsim's decision process: a ZeroMQ socket that a simulator connects to.

The event loop turns only while a message is awaited. In between, the scheduler behind the mirrored cluster decides; it
may have an event loop of its own.
"""

import asyncio
import math
from collections.abc import Callable
from typing import Final

from lamina.apiserver.batsim.zeromq import ZeromqSocket
from lamina.model.errors import LaminaError
from lamina.serving.event_loop import new_loop
from lamina.simulator.decision_process.decision_process import DecisionProcess
from lamina.wire.batsim.messages import ProtocolError

OPTION: Final = "--socket-endpoint"


class SimulatorLostError(LaminaError):
    """The simulator sent nothing for too long."""

    exit_code = 1


class InvalidMessageError(LaminaError):
    """A message of the simulator that breaks the protocol."""

    exit_code = 1


class DecisionServer:
    """Answers one simulator, until its simulation has ended."""

    def __init__(self, endpoint: str, timeout: float = math.inf) -> None:
        """Listen at *endpoint*; wait at most *timeout* seconds for each message after the first. Raises InputError."""
        self._loop = new_loop()
        self._timeout = timeout
        try:
            self._socket = self._loop.run_until_complete(_bound(endpoint))
        except BaseException:
            self._loop.close()
            raise
        self.endpoint = self._socket.endpoint
        """Where it listens, with the port that was taken."""

    def serve(self, process: DecisionProcess, written: Callable[[bytes, bytes], object] | None = None) -> None:
        """Answer all messages; pass each with its answer to *written*. Raises LaminaError."""
        while not process.ended:
            request = self._loop.run_until_complete(self._receive(process.messages))
            try:
                reply = process.answer(request)
            except ProtocolError as error:
                raise InvalidMessageError(
                    f"message {process.messages + 1} of the simulator: {error.problem}"
                ) from error
            if written is not None:
                written(request, reply)
            self._loop.run_until_complete(self._send(reply))

    async def _receive(self, messages: int) -> bytes:
        limit = None if not messages or self._timeout == math.inf else self._timeout
        try:
            async with asyncio.timeout(limit):
                request: bytes = await self._socket.socket.recv()
        except TimeoutError:
            message = f"the simulator sent nothing for {self._timeout:g} s after message {messages}"
            raise SimulatorLostError(f"{message}; is it still running?") from None
        return request

    async def _send(self, reply: bytes) -> None:
        await self._socket.socket.send(reply)

    def close(self) -> None:
        """Close the socket; an answer that was sent is still delivered."""
        try:
            self._loop.run_until_complete(self._close())
        finally:
            self._loop.close()

    async def _close(self) -> None:
        self._socket.close(linger=True)


async def _bound(endpoint: str) -> ZeromqSocket:
    return ZeromqSocket("REP", endpoint, OPTION)
