"""
A server on the loopback that takes one token, speaks TLS with a certificate that can be changed, and counts refusals.

It is no API server; what matters here happens before any object is looked at.
"""

import asyncio
import contextlib
import ssl
from typing import Self

from aiohttp import web

from tests.unit.clients.kube.kubeconfigs import authority


class RotatingServer:
    """Answers `{}` to whoever has the token of the day, and 401 to all others."""

    def __init__(self) -> None:
        self.token = "first"
        self.older = ""
        """Another token that is still good."""
        self.port = 0
        self.answered = 0
        self.refused: dict[str, int] = {}
        """How often, by the token that would have been right."""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        await self.start(0)
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.stop()

    async def start(self, authority_number: int, name: str = "127.0.0.1") -> None:
        """Serve with a certificate of one of the authorities, on the port it had before."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority(authority_number).issue_cert(name).configure_cert(context)
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context)
        for _ in range(50):
            with contextlib.suppress(OSError):
                await site.start()
                break
            await asyncio.sleep(0.1)
        assert self._runner.addresses, "the port was taken meanwhile"
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def _answer(self, request: web.Request) -> web.Response:
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if shown not in {self.token, self.older} - {""}:
            self.refused[self.token] = self.refused.get(self.token, 0) + 1
            return web.json_response({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)
        self.answered += 1
        return web.json_response({})
