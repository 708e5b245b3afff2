"""
HTTP server of the scheduler's endpoints, with a limit on open connections.

aiohttp limits neither connections nor their age, and every pod may be able to reach the address. A connection beyond
the limit closes the oldest one instead of being rejected. Otherwise a client that holds connections open could block
the kubelet's probe, and the kubelet would restart the scheduler. The connection is aborted: a client that does not read
could otherwise keep it open.
"""

import asyncio
from typing import Final

from aiohttp import web

MOST_CONNECTIONS: Final = 64
"""Most open connections: a few probes, scrapers and people."""
LAST_REQUESTS: Final = 1.0
"""Seconds for pending responses when the service stops."""


class EndpointServer:
    """Serves one application at one address."""

    def __init__(self, app: web.Application, most: int = MOST_CONNECTIONS) -> None:
        """Keep at most *most* connections open."""
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=LAST_REQUESTS)
        self._most = most
        self._server: asyncio.Server | None = None
        self._transports: dict[web.RequestHandler, asyncio.Transport | None] = {}
        """Transport of each open connection: aiohttp drops it when it closes a connection, even with unsent data."""

    async def open(self, host: str, port: int) -> int:
        """Start to listen; return the port, which the system chooses for 0. Raises OSError."""
        await self._runner.setup()
        self._server = await asyncio.get_running_loop().create_server(self._connect, host, port)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _connect(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None, "set up before anything connects"
        # asyncio connects the returned protocol in the next turn of the event loop, so the turn after that can count
        # it.
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
                # A close would wait until the client has read everything.
                transport.abort()
