"""
The server: lets callers in, looks after their time, and ends in order.

Connections are accepted one by one here instead of by asyncio, for three reasons: the certificates are chosen anew for
each, so that replaced files need no restart; handshakes under way are counted; and who comes when all places are taken is
told so. A caller beyond the limit gets 503 at once rather than waiting for its turn: to wait would look like a server that
is dead, for as long as the caller's time-out, and kube-scheduler goes on without us after a quick refusal.

An unknown peer can do no more than begin handshakes. When there are too many, the oldest is given up: a real one takes
milliseconds. Where anybody may call, as for pages that probes read, a newcomer gets the place of whoever has been idle for
longest. Callers, handshakes and those who are told that they may not ask are counted apart: none keeps the others out.
"""

import asyncio
import errno
import logging
import socket
import ssl
from typing import Final

from lamina.model.errors import InputError
from lamina.services.extender.http import rejections
from lamina.services.extender.http.connection import HttpConnection
from lamina.services.extender.http.connection_table import ConnectionTable
from lamina.services.extender.http.response import Routes
from lamina.services.extender.http.server_limits import ServerLimits, ServerMetrics
from lamina.services.extender.http.tls import ServerCertificates, ServerTlsSettings

BACKLOG: Final = 128
LOOKS: Final = 8
"""In the shortest time that is watched: how exactly time is kept."""
SHUTDOWN_SECONDS: Final = 2.0
"""For a caller to say goodbye in TLS."""
ACCEPT_PAUSE: Final = 1.0
"""Seconds after accepting has failed, which it does when the process has no file descriptors left."""

log = logging.getLogger(__name__)


class HttpServer:
    """Listens at one address."""

    def __init__(self, routes: Routes, limits: ServerLimits, watch: ServerMetrics) -> None:
        """Answer by *routes*, within *limits*, and tell *watch*."""
        self._desk = ConnectionTable(routes, limits, watch)
        self._limits, self._watch = limits, watch
        self._certificates: ServerCertificates | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """In the order they began."""
        self._unmet: set[socket.socket] = set()
        self._said = ""
        self.port = 0

    async def start(self, host: str, port: int, tls: ServerTlsSettings | None = None) -> None:
        """Listen from now on; port 0 takes any that is free. Raises `InputError`."""
        if tls is not None:
            self._certificates = ServerCertificates(tls, self._watch)
            self._desk.admit = self._certificates.admit
        self._socket = await _listen(host, port)
        self.port = self._socket.getsockname()[1]
        self._tasks = [asyncio.create_task(self._accept()), asyncio.create_task(self._mind_time())]
        if self._certificates is not None:
            self._tasks.append(asyncio.create_task(self._certificates.run(self._renew)))

    async def run(self) -> None:
        """Wait for ever; raises if a part of it breaks, which ends the process that waits."""
        await asyncio.gather(*self._tasks)

    async def stop(self, grace: float) -> None:
        """Let nobody in any more, answer what has been asked within *grace* seconds, and end the rest."""
        if not self._tasks:
            return
        accepting, *others = self._tasks
        await _end([accepting, *self._handshakes])
        for one in self._unmet:
            one.close()
        self._socket.close()
        for connection in list(self._desk.present):
            connection.retire()
        if not await self._emptied(grace):
            log.info("connections are cut off", extra={"count": len(self._desk.present)})
            for connection in list(self._desk.present):
                connection.abort()
            await self._emptied(SHUTDOWN_SECONDS)
        await _end(others)

    async def _emptied(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._desk.empty.wait()
        except TimeoutError:
            return False
        return True

    def _renew(self) -> None:
        """Let callers come back who were let in by the old certificates: each ends after its next answer."""
        for connection in self._desk.present:
            connection.expire()

    async def _mind_time(self) -> None:
        limits, loop = self._limits, asyncio.get_running_loop()
        pause = min(1.0, min(limits.read_seconds, limits.idle_seconds, limits.write_seconds) / LOOKS)
        while True:
            await asyncio.sleep(pause)
            now = loop.time()
            for connection in list(self._desk.present):
                connection.look(now)

    # -- letting in --------------------------------------------------------------------------------------------------

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                came, _ = await loop.sock_accept(self._socket)
            except OSError as error:
                if error.errno != errno.ECONNABORTED:
                    log.warning("no connection can be accepted", extra={"problem": error.strerror})
                    await asyncio.sleep(ACCEPT_PAUSE)
                continue
            self._meet(came)
            # Many may come at once, and others want their turn.
            await asyncio.sleep(0)

    def _meet(self, came: socket.socket) -> None:
        # Without certificates nobody can draw this out.
        if self._certificates is not None and len(self._handshakes) >= self._limits.connections:
            oldest = next(iter(self._handshakes))
            # At once: it takes a while to end, and is not to be given up in place of the next one.
            del self._handshakes[oldest]
            oldest.cancel()
        self._unmet.add(came)
        connection = HttpConnection(self._desk, asyncio.get_running_loop())
        task = asyncio.create_task(self._shake_hands(came, connection))
        self._handshakes[task] = None
        task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _shake_hands(self, came: socket.socket, connection: HttpConnection) -> None:
        self._unmet.discard(came)
        loop = asyncio.get_running_loop()
        try:
            if self._certificates is None:
                await loop.connect_accepted_socket(lambda: connection, came)
            else:
                await loop.connect_accepted_socket(
                    lambda: connection,
                    came,
                    ssl=self._certificates.context,
                    ssl_handshake_timeout=self._limits.read_seconds,
                    ssl_shutdown_timeout=SHUTDOWN_SECONDS,
                )
        except asyncio.CancelledError:
            # In uvloop a connection that is given up at the moment it stands is never told that it is gone.
            connection.connection_lost(None)
            self._watch.refused(rejections.BAD_HANDSHAKE)
            raise
        except OSError as error:
            self._watch.refused(rejections.BAD_HANDSHAKE)
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        """Say why a handshake failed, once in a row."""
        reason = error.reason if isinstance(error, ssl.SSLError) else str(error) or type(error).__name__
        if reason != self._said:
            log.warning("a caller could not be let in", extra={"problem": reason})
        self._said = reason


async def _listen(host: str, port: int) -> socket.socket:
    """Open the socket callers come to."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        everywhere = family == socket.AF_INET6 and address[0] == "::" and socket.has_dualstack_ipv6()
        opened = socket.create_server(address[:2], family=family, backlog=BACKLOG, dualstack_ipv6=everywhere)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError.one(
            f"{host}:{port}", f"cannot be listened at: {reason}; try another address or port"
        ) from None
    opened.setblocking(False)
    return opened


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
