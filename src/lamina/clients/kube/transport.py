"""
HTTP client for an API server; all requests of Lamina go through it.

    request    one request, the complete response, with a time limit and a size limit
    stream     a response that is read chunk by chunk

The client never retries, except once after a 401 with new credentials. The caller decides what a failure means.
Compressed responses are rejected, because a small body could expand without bound. Redirects are not followed, because
credentials would be sent along. Proxies from the environment are not used. Every read is bounded.

Used by the reflector, the pod writes, the event recorder and leader election. It never interprets an object.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from lamina.clients.kube import network_failures
from lamina.clients.kube.connection_pool import ApiResponse, ConnectionPool
from lamina.clients.kube.errors import ApiError, from_response
from lamina.clients.kube.request_credentials import RequestCredentials

if TYPE_CHECKING:
    from lamina.clients.kube.streams import ResponseStreams

RESPONSE_LIMIT: Final = 64 * 1024**2
"""Bytes of a response. A page of 500 pods has about 2.5 MB; etcd limits an object to 1.5 MiB."""

# Compressed responses are rejected below, so the client requests none.
ASKED: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}


class KubeClient:
    """Client for one API server."""

    def __init__(self, access: RequestCredentials, *, connections: int = 32, user_agent: str = "lamina") -> None:
        """Keep at most *connections* open for requests; each stream uses one more."""
        self._access = access
        self._base = access.server.rstrip("/")
        self._connections = connections
        self._headers = {**ASKED, "User-Agent": user_agent}
        self._pool: ConnectionPool | None = None
        self._streams: ResponseStreams | None = None

    async def request(  # noqa: PLR0913 - the parts of an HTTP request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
        limit: int = RESPONSE_LIMIT,
    ) -> bytes:
        """
        Send a request and return the body of a 2xx response.

        Raises `ApiError` for any other status, `UnreachableError` when no response came within *timeout* seconds, and
        `AnswerTooLongError` when it has more than *limit* bytes.
        """
        what = f"{method} {path}"
        extra = {"Content-Type": content_type} if body is not None else {}
        target = f"{path}?{urlencode(query)}" if query else path
        pool = self._for_requests()
        with network_failures.in_words(what, timeout):
            async with asyncio.timeout(timeout):
                for first in (True, False):
                    headers = await self._access.headers()
                    answer = await pool.ask(method, target, headers | extra, body, self._access.tls(), limit)
                    if answer.status == 401 and first:
                        self._access.refused(headers)
                        continue
                    return _accepted(what, answer)
        raise AssertionError("the second answer was returned or raised")

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, read_timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """
        Open a streamed response; the context manager gives an iterator of its chunks.

        Opening raises as `request` does. Iteration ends when the server ends the response properly. It raises
        `SilenceError` after *read_timeout* seconds without data, and `UnreachableError` when the connection breaks.
        """
        return self._for_streams().open(path, query, read_timeout)

    async def close(self) -> None:
        """Close all connections and streams."""
        if self._pool is not None:
            await self._pool.close()
        if self._streams is not None:
            await self._streams.close()
        self._pool = self._streams = None

    def _for_requests(self) -> ConnectionPool:
        if self._pool is None:
            self._pool = ConnectionPool(self._base, self._connections, self._headers)
        return self._pool

    def _for_streams(self) -> "ResponseStreams":
        if self._streams is None:
            # Imports aiohttp, about 12 MB that a process without watches does not need.
            from lamina.clients.kube.streams import ResponseStreams

            self._streams = ResponseStreams(self._access, self._base, self._headers)
        return self._streams


def _accepted(what: str, answer: ApiResponse) -> bytes:
    """Return the body of an uncompressed 2xx response; raise ApiError for any other."""
    if not 200 <= answer.status < 300:
        raise from_response(what, answer.status, answer.reason, answer.headers, answer.body)
    encoding = answer.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ApiError(what, answer.status, "Compressed", f"unexpected compression: {encoding:.40}")
    return answer.body
