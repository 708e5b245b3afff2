"""
HTTP client for one scheduler extender.

    POST    {url}/{verb}, JSON in both directions; only status 200 is a success
    bytes   a reply is limited, and never compressed
    time    one timeout for the whole call
    redirects are not followed, and proxies named in the environment are not used

A request that may be repeated is sent a second time if the server closed a kept connection without a reply. Nothing else
is retried. Every failure is an `ExtenderError` of one line.
"""

import asyncio
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from lamina.clients.kube.connection_pool import ApiResponse, ConnectionPool, ExchangeAbortedError
from lamina.clients.kube.errors import UnreachableError, one_line
from lamina.clients.kube.network_failures import in_words
from lamina.clients.kube.tls_contexts import TlsContexts, TlsSettings
from lamina.model.errors import LaminaError

CONNECTIONS: Final = 64
"""Most connections to one extender."""
_HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": "application/json"}


class ExtenderError(LaminaError):
    """A call of an extender failed."""

    exit_code: ClassVar[int] = 1


class ExtenderClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where an extender is, and how to reach it."""

    url: str
    timeout: float
    """Seconds for one call."""
    insecure: bool = False
    """Skip verification of the server."""
    server_name: str = ""
    authority: Path | bytes | None = None
    """CA bundle; None uses the system's."""
    certificate: Path | bytes | None = None
    key: Path | bytes | None = None
    place: str = ""
    """Location of the settings, for messages."""


class ExtenderClient:
    """Client for one extender."""

    def __init__(self, target: ExtenderClientSettings, *, user_agent: str = "lamina-scheduler") -> None:
        """Read certificates; connect later. Raises InputError if a certificate or key is unusable."""
        self._url = target.url.rstrip("/")
        self._timeout = target.timeout
        self._pool = ConnectionPool(self._url, CONNECTIONS, {**_HEADERS, "User-Agent": user_agent})
        self._tls: TlsContexts | None = None
        if self._url.startswith("https:"):
            self._tls = TlsContexts(
                TlsSettings(
                    None if target.insecure else target.authority,
                    target.certificate,
                    target.key,
                    target.insecure,
                    target.server_name,
                    target.place,
                )
            )

    async def call(self, verb: str, body: bytes, limit: int, *, repeatable: bool = True) -> bytes:
        """Send a request and return the reply, of at most *limit* bytes. Raises ExtenderError."""
        target = f"/{verb.lstrip('/')}"
        what = f"POST {self._url}{target}"
        try:
            with in_words(what, self._timeout):
                async with asyncio.timeout(self._timeout):
                    reply = await self._exchange(target, body, limit, repeatable=repeatable)
        except UnreachableError as error:
            raise ExtenderError(str(error)) from None
        if reply.status != 200:
            raise ExtenderError(
                one_line(f"failed {verb} with extender at URL {self._url}{target}, code {reply.status}")
            )
        encoding = reply.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise ExtenderError(one_line(f"{what}: unexpected compression: {encoding:.40}"))
        return reply.body

    async def _exchange(self, target: str, body: bytes, limit: int, *, repeatable: bool) -> ApiResponse:
        context = None if self._tls is None else self._tls.current()
        try:
            return await self._pool.ask("POST", target, {}, body, context, limit)
        except ExchangeAbortedError:
            if not repeatable:
                raise
            return await self._pool.ask("POST", target, {}, body, context, limit)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()
