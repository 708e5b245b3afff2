"""
The client of a decision process: starts it if it is a command, sends it messages and waits for its answers.

Everything is in one thread: the event loop turns only while an answer is awaited, and reads the log of the process
meanwhile.
"""

import asyncio
import contextlib
import math
from typing import Final

from lamina.apiserver.batsim.batsim_peer import OPTION, BatsimPeer
from lamina.apiserver.batsim.zeromq import ZeromqSocket
from lamina.apiserver.child_process import ChildProcess
from lamina.apiserver.facade_run import filled, free_port
from lamina.model.errors import InputError
from lamina.serving.event_loop import new_loop
from lamina.simulator.decider import RunStoppedError

START_SECONDS: Final = 60.0
"""Real seconds that a program has at least for the first answer: it may have to be started first."""
EXCHANGE: Final = "exchange with a decision process"
"""Name of the task that waits for an answer."""
CHECK_SECONDS: Final = 0.2
"""Real seconds between two looks at whether the process still runs."""
LONGEST_TAIL: Final = 200
"""Most characters of a program's last line in a message."""
END_SECONDS: Final = 5.0
"""Real seconds that the process has to end by itself after the last message."""


class DecisionClient:
    """One decision process. Its methods must not be called from an event loop."""

    def __init__(self, peer: BatsimPeer) -> None:
        """Start *peer* if it is a command, and connect to it. Raises InputError."""
        self._peer = peer
        self._loop = new_loop()
        self._process: ChildProcess | None = None
        self._socket: ZeromqSocket | None = None
        self._answers = 0
        try:
            self._loop.run_until_complete(self._start())
        except BaseException:
            self.close()
            raise

    async def _start(self) -> None:
        endpoint = self._peer.endpoint
        if not endpoint:
            port = free_port()
            endpoint = f"tcp://127.0.0.1:{port}"
            words = [filled(one, {"endpoint": endpoint, "port": str(port)}) for one in self._peer.command]
            self._process = await ChildProcess.start(words, output=True)
        self._socket = ZeromqSocket("REQ", endpoint, OPTION)
        self._endpoint = endpoint

    def exchange(self, request: bytes) -> bytes:
        """
        Send a message and return the answer.

        Raises InputError if there is no answer to the first message, RunStoppedError if there is none to a later one.
        """
        answer = self._loop.run_until_complete(self._loop.create_task(self._exchange(request), name=EXCHANGE))
        self._answers += 1
        return answer

    async def _exchange(self, request: bytes) -> bytes:
        assert self._socket is not None, "started"
        # Without a peer, sending waits as well.
        task = asyncio.ensure_future(self._send_and_receive(self._socket, request))
        limit = self._peer.timeout
        if not self._answers:
            limit = max(limit, START_SECONDS)
        loop = asyncio.get_running_loop()
        deadline = math.inf if limit == math.inf else loop.time() + limit
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=CHECK_SECONDS)
                if done:
                    return task.result()
                self._check_alive()
                if loop.time() >= deadline:
                    raise self._lost(f"{self._peer.name} did not answer within {limit:g} s")
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task})

    @staticmethod
    async def _send_and_receive(socket: ZeromqSocket, request: bytes) -> bytes:
        await socket.socket.send(request)
        answer: bytes = await socket.socket.recv()
        return answer

    def _check_alive(self) -> None:
        process = self._process
        if process is not None and process.exit_code is not None:
            last = next((line.strip() for line in reversed(process.tail) if line.strip()), "")
            tail = f"; its last line: {last[:LONGEST_TAIL]!r}" if last else ""
            raise self._lost(f"{self._peer.name} ended with status {process.exit_code} before it answered{tail}")

    def _lost(self, message: str) -> InputError | RunStoppedError:
        """Return the error for a missing answer."""
        if self._answers:
            return RunStoppedError(f"message {self._answers + 1}: {message}")
        hint = "" if self._process is not None else f" at {self._endpoint}; is it running? It binds, Lamina connects"
        return InputError.one(OPTION, f"{message}{hint}")

    def close(self, *, ended: bool = False) -> None:
        """Close the connection and stop the process; one whose simulation has *ended* may end by itself first."""
        try:
            self._end_tasks()
            if self._process is not None:
                self._loop.run_until_complete(self._stop(self._process, END_SECONDS if ended else 0.0))
            if self._socket is not None:
                self._loop.run_until_complete(self._close(self._socket))
        finally:
            self._socket = self._process = None
            self._loop.close()

    def _end_tasks(self) -> None:
        """Cancel an exchange that an interruption has left behind."""
        tasks = [task for task in asyncio.all_tasks(self._loop) if task.get_name() == EXCHANGE]
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks))

    @staticmethod
    async def _stop(process: ChildProcess, patience: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while process.exit_code is None and loop.time() < deadline:
            await asyncio.sleep(0.01)
        await process.stop()

    @staticmethod
    async def _close(socket: ZeromqSocket) -> None:
        socket.close()
