"""
Listens for HTTP requests to the service's own endpoints, with a limit on open connections.

aiohttp limits neither connections nor their age, and the address may be reachable by every pod. A connection beyond the
limit closes the oldest one instead of being refused: a client that holds connections open must not keep a probe of the
kubelet out, for then the kubelet would restart the scheduler. The connection is aborted: a client that does not read would
otherwise keep it, and the unsent page, for as long as it likes.
"""

import asyncio
from typing import Final

from aiohttp import web

MOST_CONNECTIONS: Final = 64
"""Open at once: a few probes, scrapers and people."""
LAST_REQUESTS: Final = 1.0
"""Seconds for answers on their way to end when the service stops."""


class EndpointServer:
    """Serves one application on one address."""

    def __init__(self, app: web.Application, most: int = MOST_CONNECTIONS) -> None:
        """Hold at most *most* connections open."""
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=LAST_REQUESTS)
        self._most = most
        self._server: asyncio.Server | None = None
        self._transports: dict[web.RequestHandler, asyncio.Transport | None] = {}
        """Of the open connections: aiohttp forgets the transport of one that it closes, even while a page is unsent."""

    async def open(self, host: str, port: int) -> int:
        """Start to listen; return the port, which the system chooses for 0. Raises OSError if that is not possible."""
        await self._runner.setup()
        self._server = await asyncio.get_running_loop().create_server(self._connect, host, port)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def close(self) -> None:
        """Stop listening, and end what is open."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _connect(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None, "set up before anything connects"
        # asyncio connects what this returns in its next round, so the round after that can count it.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._limit, server)
        return server()

    def _limit(self, server: web.Server) -> None:
        # The server lists its connections by age.
        connections = server.connections
        self._transports = {one: self._transports.get(one, one.transport) for one in connections}
        for oldest in connections[: -self._most]:
            oldest.force_close()
            transport = self._transports[oldest]
            if transport is not None:
                # Closed, it would wait until the client has read everything.
                transport.abort()
