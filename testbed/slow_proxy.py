"""
A rate-limited proxy to a server on the loopback interface, so that a pull lasts long enough to be observed.

    with SlowProxy(registry.host, bytes_per_second=1_000_000) as road:
        runtime.pull(f"{road.host}/web:1")

Requests pass at once; responses pass at the given rate, shared by all connections.
"""

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Final, Self

from testbed.ports import LOOPBACK

SMALLEST: Final = 256
LARGEST: Final = 16 * 1024
IMMEDIATELY: Final = 0.05
"""Longest delay of one piece in seconds, so that data flows evenly and a change of the rate takes effect soon."""


class SlowProxy:
    """Forwards connections in threads of this process, so that nothing is left behind."""

    def __init__(self, target: str, bytes_per_second: float) -> None:
        """Prepare a proxy to *target*, a host and a port; the rate may be changed while it runs."""
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self.bytes_per_second = bytes_per_second
        self.host = ""
        """Host and port of the proxy, once the block has begun."""
        self._turn = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None

    def __enter__(self) -> Self:
        self._listener = socket.create_server((LOOPBACK, 0))
        self.host = f"{LOOPBACK}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            # Closing alone would not wake the thread that waits for the next connection.
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Close every open connection; new ones are accepted."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(OSError))
            stack.enter_context(client)
            server = stack.enter_context(socket.create_connection(self._target))
            self._open |= {client, server}
            stack.callback(self._open.difference_update, {client, server})
            way_in = threading.Thread(target=self._pass, args=(client, server, False), daemon=True)
            way_in.start()
            self._pass(server, client, True)
            way_in.join()

    def _pass(self, source: socket.socket, sink: socket.socket, slowly: bool) -> None:
        """Forward data until its end, and then forward the end."""
        with contextlib.suppress(OSError):
            while piece := source.recv(self._piece()):
                if slowly:
                    self._wait(len(piece))
                sink.sendall(piece)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _piece(self) -> int:
        return max(SMALLEST, min(LARGEST, int(self.bytes_per_second * IMMEDIATELY)))

    def _wait(self, size: int) -> None:
        """Sleep for the time of *size* bytes; connections take turns, so that they share the rate."""
        with self._turn:
            time.sleep(size / self.bytes_per_second)
