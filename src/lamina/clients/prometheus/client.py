"""
Prometheus HTTP client with bounded queries.

    query          evaluate a PromQL expression at one time
    query_range    evaluate it at several times

    bytes       at most 32 MiB, never compressed: a small compressed body could expand without bound
    time        one timeout for the whole exchange; the server gets the same timeout as a query parameter
    redirects   not followed: the token would be sent along
    proxies     those named in the environment are not used

The client never retries, except once when a reused connection was closed by the server. The caller decides what a
failure means. Every failure is a `PrometheusError` of one line.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import aiohttp
from yarl import URL

from lamina.clients.prometheus import query_results
from lamina.clients.prometheus.errors import (
    BAD_QUERY,
    NOT_USABLE,
    REFUSED,
    TOO_MUCH,
    UNREACHABLE,
    PrometheusError,
    one_line,
)
from lamina.clients.prometheus.query_results import InstantResult, RangeResult, RangeSeries
from lamina.clients.prometheus.server import PrometheusLogin, PrometheusServer

R = TypeVar("R")
T = TypeVar("T")

LIMIT: Final = 32 * 1024 * 1024
"""Bytes of a response. A series with its labels has about 150 bytes, so this exceeds `query_results.MOST_SERIES`."""
REFUSAL_LIMIT: Final = 64 * 1024
HEADER_LIMIT: Final = 16 * 1024
TIMEOUT: Final = 10.0
CONNECT_TIMEOUT: Final = 5.0
CONNECTIONS: Final = 4
LONGEST_QUERY: Final = 4096
"""Characters of a query. The query is part of the URL, and proxies accept URLs of 8 KiB."""
SLICE: Final = 0.005
"""Seconds of decoding between two yields to the event loop."""
MOST_POINTS: Final = 11_000
"""Points of a range query; Prometheus rejects more."""


class PrometheusClient:
    """Client for one Prometheus server."""

    def __init__(self, server: PrometheusServer, *, timeout: float = TIMEOUT, user_agent: str = "lamina") -> None:
        """Read the token, password and CA files; connect later. Raises InputError."""
        self._login = PrometheusLogin(server)
        self._timeout = timeout
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": user_agent}
        self._session: aiohttp.ClientSession | None = None
        self.counts: Counter[str] = Counter()
        """Queries sent (`asked`), and failed queries by reason."""

    @property
    def host(self) -> str:
        """Host and port of the server, for messages."""
        return self._login.host

    async def query(self, expression: str, *, at: float | None = None) -> InstantResult:
        """Evaluate an expression at *at* (seconds since 1970), or at the server's current time."""
        parameters = {"query": expression, **({} if at is None else {"time": f"{at:.3f}"})}
        return await self._ask("query", parameters, query_results.read_instant)

    async def query_range(self, expression: str, start: float, end: float, step: float) -> RangeResult:
        """Evaluate an expression from *start* to *end*, every *step* seconds."""
        if not (step > 0 and 0 <= end - start <= step * MOST_POINTS):
            raise ValueError(f"a range needs a step and at most {MOST_POINTS} of them")
        parameters = {"query": expression, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        unread, warnings = await self._ask("query_range", parameters, query_results.open_range)
        curves: list[RangeSeries] = []
        left = query_results.MOST_SAMPLES
        since = time.perf_counter()
        for data in unread:
            curves.append(self._read(data, query_results.read_curve))
            left -= len(curves[-1].points)
            if left < 0:
                problem = f"more than {query_results.MOST_SAMPLES} samples, the limit; use a longer step"
                raise self._failed(TOO_MUCH, f"returned {problem}")
            if time.perf_counter() - since > SLICE:
                await asyncio.sleep(0)
                since = time.perf_counter()
        return RangeResult(tuple(curves), warnings)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    # -- requests ----------------------------------------------------------------------------------------------------

    async def _ask(self, what: str, parameters: Mapping[str, str], read: Callable[[bytes], T]) -> T:
        self.counts["asked"] += 1
        try:
            if len(parameters["query"]) > LONGEST_QUERY:
                raise self._error(BAD_QUERY, f"the query exceeds {LONGEST_QUERY} characters; use a recording rule")
            # Plain seconds: Prometheus durations with a unit cannot have a fraction.
            body = await self._exchange(what, {**parameters, "timeout": f"{self._timeout:g}"})
        except PrometheusError as error:
            self.counts[error.reason] += 1
            raise
        return self._read(body, read)

    def _read(self, data: R, read: Callable[[R], T]) -> T:
        try:
            return read(data)
        except query_results.ResultTooLargeError as error:
            raise self._failed(TOO_MUCH, f"returned {error}; narrow the query") from None
        except ValueError as error:
            words = f"the response is not a query result ({one_line(str(error))}); check the address"
            raise self._failed(NOT_USABLE, words) from None

    def _failed(self, reason: str, problem: str) -> PrometheusError:
        self.counts[reason] += 1
        return self._error(reason, problem)

    async def _exchange(self, what: str, parameters: Mapping[str, str]) -> bytes:
        """Return the body of a 200. Network exceptions are not chained: they may carry the request and its token."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._get(what, parameters)
        except TimeoutError:
            problem = f"no response within {self._timeout:g} seconds; is it overloaded, and the address right?"
        except aiohttp.ClientError as error:
            problem = _connection_problem(error)
        except (OSError, ValueError) as error:
            problem = f"the connection broke ({type(error).__name__})"
        raise self._error(UNREACHABLE, problem)

    async def _get(self, what: str, parameters: Mapping[str, str]) -> bytes:
        known, tls = self._login.current()
        url = URL(f"{self._login.url}/api/v1/{what}", encoded=True).with_query(dict(parameters))
        async with self._open_session().get(url, headers=known, ssl=tls, allow_redirects=False) as response:
            try:
                if response.status != 200:
                    raise await self._refusal(response)
                return await self._body(response)
            finally:
                # A connection with unread data cannot be reused.
                if not response.content.at_eof():
                    response.close()

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        encoding = response.headers.get("Content-Encoding", "identity").lower()
        if encoding != "identity":
            raise self._error(NOT_USABLE, f"unexpected compression: {one_line(encoding):.40}")
        body = bytearray()
        if (response.content_length or 0) <= LIMIT:
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > LIMIT:
                    break
            else:
                return bytes(body)
        raise self._error(TOO_MUCH, f"returned more than {LIMIT} bytes, the limit; narrow the query")

    async def _refusal(self, response: aiohttp.ClientResponse) -> PrometheusError:
        """Return the error for a response that is not a 200."""
        status = response.status
        if 300 <= status < 400:
            return self._error(REFUSED, f"redirects ({status}), and redirects are not followed; use the new address")
        body = bytearray()
        while len(body) < REFUSAL_LIMIT and (piece := await response.content.read(REFUSAL_LIMIT - len(body))):
            body += piece
        if status in (401, 403):
            return self._error(REFUSED, f"rejects the credentials ({status}); check the token, or user and password")
        refusal = query_results.read_error_response(bytes(body))
        if refusal is not None:
            return self._error(BAD_QUERY, f"rejects the query: {one_line(f'{refusal.kind}: {refusal.message}')}")
        if status == 404:
            return self._error(NOT_USABLE, "has no Prometheus API there (404); check the path of the address")
        return self._error(UNREACHABLE, f"returned HTTP {status}; check the server and any proxy before it")

    def _error(self, reason: str, problem: str) -> PrometheusError:
        return PrometheusError(self.host, reason, problem)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
                max_line_size=HEADER_LIMIT,
                max_field_size=HEADER_LIMIT,
                trust_env=False,
            )
        return self._session


def _connection_problem(error: aiohttp.ClientError) -> str:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return "connect timed out: is the address right, and no firewall in between?"
        case aiohttp.ClientConnectorCertificateError():
            return "TLS certificate rejected; name the authority that signed it as the CA file"
        case aiohttp.ClientConnectorSSLError() | aiohttp.ClientSSLError():
            return "TLS handshake failed; is this an https server?"
        case aiohttp.ClientConnectorDNSError():
            return "host name not found; check the address"
        case aiohttp.ClientConnectorError():
            return "connection failed; is it running, and the address right?"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | aiohttp.ClientOSError():
            return "the connection broke in the middle of the response"
        case _:
            return "the response is not HTTP; check the address"
