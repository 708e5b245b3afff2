"""
HTTP server: accepts connections, enforces time limits, and shuts down gracefully.

The server accepts each connection itself, instead of asyncio, for three reasons. The TLS context is chosen per
connection, so replaced certificates need no restart. The number of handshakes in progress is limited. A client beyond
the connection limit gets 503 at once; if it had to wait, the server would look dead until the client's timeout.

An unknown peer can only begin handshakes. If there are too many, the oldest is cancelled: a real handshake takes
milliseconds. Where any client may connect, as for the endpoints of probes, a new connection replaces the one that was
idle for longest. Clients, handshakes and rejected connections have separate limits, so none of them can block the
others.
"""

import asyncio
import errno
import logging
import socket
import ssl
from typing import Final

from lamina.serving import rejections
from lamina.serving.connection import HttpConnection
from lamina.serving.connection_table import ConnectionTable, RejectionForm, admit_all, rejection_text
from lamina.serving.listening_sockets import open_sockets
from lamina.serving.request_dispatch import Handler, RequestLabel, same_label
from lamina.serving.server_limits import ServerLimits, ServerMetrics
from lamina.serving.tls import ServerCertificates, ServerTlsSettings

LOOKS: Final = 8
"""Checks per shortest time limit: how precisely limits are kept."""
SHUTDOWN_SECONDS: Final = 2.0
"""Seconds for a client to complete the TLS shutdown."""
ACCEPT_PAUSE: Final = 1.0
"""Seconds to wait after accept failed, which happens when the process has no file descriptors left."""

log = logging.getLogger(__name__)


class HttpServer:
    """HTTP server at one host and port."""

    def __init__(
        self,
        handler: Handler,
        limits: ServerLimits,
        metrics: ServerMetrics,
        label: RequestLabel = same_label,
        *,
        rejection: RejectionForm = rejection_text,
    ) -> None:
        """Serve *handler* within *limits*; report to *metrics*, with the labels of *label*; see `RejectionForm`."""
        self._rejection = rejection
        self._handler, self._limits, self._metrics, self._label = handler, limits, metrics, label
        self._certificates: ServerCertificates | None = None
        self._table: ConnectionTable
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """In the order they began."""
        self._accepted: set[socket.socket] = set()
        self._last_reason = ""
        self.port = 0

    async def start(self, host: str, port: int, tls: ServerTlsSettings | None = None) -> None:
        """Start to listen at every address of *host*; port 0 means any free port. Raises `InputError`."""
        self._certificates = None if tls is None else ServerCertificates(tls, self._metrics)
        admit = admit_all if self._certificates is None else self._certificates.admit
        self._table = ConnectionTable(
            self._handler, self._limits, self._metrics, label=self._label, admit=admit, rejection=self._rejection
        )
        self._sockets = await open_sockets(host, port)
        self.port = self._sockets[0].getsockname()[1]
        self._accepting = [asyncio.create_task(self._accept(listening)) for listening in self._sockets]
        self._tasks = [asyncio.create_task(self._check_time_limits())]
        if self._certificates is not None:
            self._tasks.append(asyncio.create_task(self._certificates.run(self._renew)))

    async def run(self) -> None:
        """Run until cancelled; raises if one of the server's tasks fails."""
        await asyncio.gather(*self._accepting, *self._tasks)

    async def stop(self, grace: float) -> None:
        """Accept no more connections, end streams, answer pending requests within *grace* seconds, close the rest."""
        if not self._tasks:
            return
        await _end([*self._accepting, *self._handshakes])
        for one in self._accepted:
            one.close()
        for listening in self._sockets:
            listening.close()
        for connection in list(self._table.present):
            connection.retire()
        if not await self._emptied(grace):
            log.info("shutdown: closing remaining connections", extra={"count": len(self._table.present)})
            for connection in list(self._table.present):
                connection.abort()
            await self._emptied(SHUTDOWN_SECONDS)
        if self._table.pending:
            # These are cancelled already: their clients are gone.
            await asyncio.wait(self._table.pending, timeout=SHUTDOWN_SECONDS)
        await _end(self._tasks)

    async def _emptied(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._table.empty.wait()
        except TimeoutError:
            return False
        return True

    def _renew(self) -> None:
        """Close connections that were admitted with the old certificates, each after its next response."""
        for connection in self._table.present:
            connection.expire()

    async def _check_time_limits(self) -> None:
        limits, loop = self._limits, asyncio.get_running_loop()
        shortest = min(limits.read_seconds, limits.idle_seconds, limits.write_seconds, limits.handler_seconds)
        pause = min(1.0, shortest / LOOKS)
        while True:
            await asyncio.sleep(pause)
            now = loop.time()
            for connection in list(self._table.present):
                connection.look(now)

    # -- accepting ---------------------------------------------------------------------------------------------------

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno != errno.ECONNABORTED:
                    log.warning("accept failed, retrying", extra={"problem": error.strerror})
                    await asyncio.sleep(ACCEPT_PAUSE)
                continue
            self._start_handshake(accepted)
            # Many connections may arrive at once; let other tasks run.
            await asyncio.sleep(0)

    def _start_handshake(self, accepted: socket.socket) -> None:
        # Without TLS there is no handshake that a client could delay.
        if self._certificates is not None and len(self._handshakes) >= self._limits.connections:
            oldest = next(iter(self._handshakes))
            # Remove it here: it takes a while to end, and the next overflow must cancel another one.
            del self._handshakes[oldest]
            oldest.cancel()
        self._accepted.add(accepted)
        connection = HttpConnection(self._table, asyncio.get_running_loop())
        task = asyncio.create_task(self._handshake(accepted, connection))
        self._handshakes[task] = None
        task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _handshake(self, accepted: socket.socket, connection: HttpConnection) -> None:
        self._accepted.discard(accepted)
        loop = asyncio.get_running_loop()
        try:
            if self._certificates is None:
                await loop.connect_accepted_socket(lambda: connection, accepted)
            else:
                await loop.connect_accepted_socket(
                    lambda: connection,
                    accepted,
                    ssl=self._certificates.context,
                    ssl_handshake_timeout=self._limits.read_seconds,
                    ssl_shutdown_timeout=SHUTDOWN_SECONDS,
                )
        except asyncio.CancelledError:
            # uvloop does not call `connection_lost` if it is cancelled at the moment the connection is made.
            connection.connection_lost(None)
            self._metrics.refused(rejections.BAD_HANDSHAKE)
            raise
        except OSError as error:
            self._metrics.refused(rejections.BAD_HANDSHAKE)
            self._log_failure(error)

    def _log_failure(self, error: OSError) -> None:
        """Log why a handshake failed, once for consecutive equal reasons."""
        reason = error.reason if isinstance(error, ssl.SSLError) else str(error) or type(error).__name__
        if reason != self._last_reason:
            log.warning("TLS handshake failed", extra={"problem": reason})
        self._last_reason = reason


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
