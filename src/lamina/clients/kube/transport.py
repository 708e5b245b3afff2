"""
Requests to an API server: one client for everything that talks to it.

    request    one question, the whole answer, within a time and a size
    stream     an answer that goes on, chunk by chunk

Nothing is tried again here except once after a 401, with new credentials; who asks decides what a failure means. The
answer is never compressed (a few bytes could stand for very many), redirects are not followed (credentials would go
along) and proxies named in the environment are not used. Every read is bounded.

Called by the reflector, the writers, the recorder and the lease. Never interprets an object.
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
"""Bytes of an answer. A page of 500 pods has about 2.5 MB; objects themselves end at etcd's 1.5 MiB."""

# A compressed answer is refused below, so nothing is asked to be compressed.
ASKED: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}


class KubeClient:
    """Talks to one API server."""

    def __init__(self, access: RequestCredentials, *, connections: int = 32, user_agent: str = "lamina") -> None:
        """Hold at most *connections* open for requests; every stream has one of its own besides."""
        self._access = access
        self._base = access.server.rstrip("/")
        self._connections = connections
        self._headers = {**ASKED, "User-Agent": user_agent}
        self._calls: ConnectionPool | None = None
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
        Ask and return the body of a 2xx answer.

        Raise `ApiError` for any other answer, `Unreachable` when none came within *timeout* seconds, and
        `AnswerTooLongError` when it has more than *limit* bytes.
        """
        what = f"{method} {path}"
        extra = {"Content-Type": content_type} if body is not None else {}
        target = f"{path}?{urlencode(query)}" if query else path
        calls = self._for_calls()
        with network_failures.in_words(what, timeout):
            async with asyncio.timeout(timeout):
                for first in (True, False):
                    headers = await self._access.headers()
                    answer = await calls.ask(method, target, headers | extra, body, self._access.tls(), limit)
                    if answer.status == 401 and first:
                        self._access.refused(headers)
                        continue
                    return _accepted(what, answer)
        raise AssertionError("the second answer was returned or raised")

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, read_timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """
        Open an answer that goes on; what the context gives yields its chunks as they come.

        Opening raises as `request` does. Reading ends when the server ends the answer properly, raises `SilenceError`
        after *read_timeout* seconds without a byte and `Unreachable` when the connection breaks.
        """
        return self._for_streams().open(path, query, read_timeout)

    async def close(self) -> None:
        """End everything that is open."""
        if self._calls is not None:
            await self._calls.close()
        if self._streams is not None:
            await self._streams.close()
        self._calls = self._streams = None

    def _for_calls(self) -> ConnectionPool:
        if self._calls is None:
            self._calls = ConnectionPool(self._base, self._connections, self._headers)
        return self._calls

    def _for_streams(self) -> "ResponseStreams":
        if self._streams is None:
            # Loads aiohttp, a dozen megabytes that a process without watches does not need.
            from lamina.clients.kube.streams import ResponseStreams

            self._streams = ResponseStreams(self._access, self._base, self._headers)
        return self._streams


def _accepted(what: str, answer: ApiResponse) -> bytes:
    """Return the body of a 2xx answer that can be read as it is; raise for any other."""
    if not 200 <= answer.status < 300:
        raise from_response(what, answer.status, answer.reason, answer.headers, answer.body)
    encoding = answer.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ApiError(what, answer.status, "Compressed", f"the answer is in {encoding:.40}, which nobody asked for")
    return answer.body
