"""
Bounded questions to one Prometheus server.

    query          what a PromQL expression is at one moment
    query_range    what it was at several

    bytes       at most 32 MiB, never compressed: a few bytes could stand for very many
    time        at most so many seconds in all, however slowly the answer drips; the server is told to give up then too
    redirects   none: the token would go along
    proxies     none that the environment names

Nothing is tried again here, except once on a kept connection that was closed meanwhile; who asks decides what a failure means. Every failure is a `PrometheusError` of one line.
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
"""Bytes of an answer. A series with its labels has some 150; so much is room for more series than are looked at."""
REFUSAL_LIMIT: Final = 64 * 1024
HEADER_LIMIT: Final = 16 * 1024
TIMEOUT: Final = 10.0
CONNECT_TIMEOUT: Final = 5.0
CONNECTIONS: Final = 4
LONGEST_QUERY: Final = 4096
"""Characters of a query: it stands in the address, and proxies take addresses of 8 KiB."""
SLICE: Final = 0.005
"""Seconds of reading between two chances for others."""
MOST_POINTS: Final = 11_000
"""Moments of a range query; Prometheus refuses more."""


class PrometheusClient:
    """Asks one server."""

    def __init__(self, server: PrometheusServer, *, timeout: float = TIMEOUT, user_agent: str = "lamina") -> None:
        """Read what is shown to the server; nothing is connected yet. Raises InputError."""
        self._login = PrometheusLogin(server)
        self._timeout = timeout
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": user_agent}
        self._session: aiohttp.ClientSession | None = None
        self.counts: Counter[str] = Counter()
        """Questions asked, and what became of those that failed."""

    @property
    def host(self) -> str:
        """How the server is called in messages."""
        return self._login.host

    async def query(self, expression: str, *, at: float | None = None) -> InstantResult:
        """Ask what an expression is, now by the server's own clock or at a moment in seconds since 1970."""
        asked = {"query": expression, **({} if at is None else {"time": f"{at:.3f}"})}
        return await self._ask("query", asked, query_results.read_instant)

    async def query_range(self, expression: str, start: float, end: float, step: float) -> RangeResult:
        """Ask what an expression was from *start* to *end*, every *step* seconds."""
        if not (step > 0 and 0 <= end - start <= step * MOST_POINTS):
            raise ValueError(f"a range needs a step and at most {MOST_POINTS} of them")
        asked = {"query": expression, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        unread, warnings = await self._ask("query_range", asked, query_results.open_range)
        curves: list[RangeSeries] = []
        left = query_results.MOST_SAMPLES
        since = time.perf_counter()
        for data in unread:
            curves.append(self._read(data, query_results.read_curve))
            left -= len(curves[-1].points)
            if left < 0:
                told = f"more than the {query_results.MOST_SAMPLES} numbers that are looked at; use a longer step"
                raise self._failed(TOO_MUCH, f"answers with {told}")
            if time.perf_counter() - since > SLICE:
                await asyncio.sleep(0)
                since = time.perf_counter()
        return RangeResult(tuple(curves), warnings)

    async def close(self) -> None:
        """End every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    # -- asking ------------------------------------------------------------------------------------------------------

    async def _ask(self, what: str, asked: Mapping[str, str], read: Callable[[bytes], T]) -> T:
        self.counts["asked"] += 1
        try:
            if len(asked["query"]) > LONGEST_QUERY:
                raise self._error(BAD_QUERY, f"a query may have {LONGEST_QUERY} characters; use a recording rule")
            # In plain seconds: as a duration with a unit it could have no fraction.
            body = await self._exchange(what, {**asked, "timeout": f"{self._timeout:g}"})
        except PrometheusError as error:
            self.counts[error.reason] += 1
            raise
        return self._read(body, read)

    def _read(self, data: R, read: Callable[[R], T]) -> T:
        try:
            return read(data)
        except query_results.ResultTooLargeError as error:
            raise self._failed(TOO_MUCH, f"answers with {error}; narrow the query") from None
        except ValueError as error:
            words = f"what it sends is no answer to a query ({one_line(str(error))}); check the address"
            raise self._failed(NOT_USABLE, words) from None

    def _failed(self, reason: str, problem: str) -> PrometheusError:
        self.counts[reason] += 1
        return self._error(reason, problem)

    async def _exchange(self, what: str, asked: Mapping[str, str]) -> bytes:
        """Return the body of a 200. Whatever the network raises stays here: it may carry the request it belongs to."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._get(what, asked)
        except TimeoutError:
            problem = f"no answer within {self._timeout:g} seconds; is it overloaded, and the address right?"
        except aiohttp.ClientError as error:
            problem = _in_words(error)
        except (OSError, ValueError) as error:
            problem = f"the connection broke ({type(error).__name__})"
        raise self._error(UNREACHABLE, problem)

    async def _get(self, what: str, asked: Mapping[str, str]) -> bytes:
        known, tls = self._login.current()
        url = URL(f"{self._login.url}/api/v1/{what}", encoded=True).with_query(dict(asked))
        async with self._for_all().get(url, headers=known, ssl=tls, allow_redirects=False) as response:
            try:
                if response.status != 200:
                    raise await self._refusal(response)
                return await self._body(response)
            finally:
                # A connection with a rest in it is of no use to anybody else.
                if not response.content.at_eof():
                    response.close()

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        encoding = response.headers.get("Content-Encoding", "identity").lower()
        if encoding != "identity":
            raise self._error(NOT_USABLE, f"the answer is in {one_line(encoding):.40}, which nobody asked for")
        body = bytearray()
        if (response.content_length or 0) <= LIMIT:
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > LIMIT:
                    break
            else:
                return bytes(body)
        raise self._error(TOO_MUCH, f"answers with more than the {LIMIT} bytes that are read; narrow the query")

    async def _refusal(self, response: aiohttp.ClientResponse) -> PrometheusError:
        """Say why there is no answer."""
        status = response.status
        if 300 <= status < 400:
            return self._error(REFUSED, f"redirects elsewhere ({status}), where nobody follows; name that address")
        body = bytearray()
        while len(body) < REFUSAL_LIMIT and (piece := await response.content.read(REFUSAL_LIMIT - len(body))):
            body += piece
        if status in (401, 403):
            return self._error(REFUSED, f"does not let us in ({status}); check the token, or user and password")
        said = query_results.read_error_response(bytes(body))
        if said is not None:
            return self._error(BAD_QUERY, f"refuses a query: {one_line(f'{said.kind}: {said.message}')}")
        if status == 404:
            return self._error(NOT_USABLE, "has no Prometheus API there (404); check the path of the address")
        return self._error(UNREACHABLE, f"answers {status}: is it, or a proxy before it, in trouble?")

    def _error(self, reason: str, problem: str) -> PrometheusError:
        return PrometheusError(self.host, reason, problem)

    def _for_all(self) -> aiohttp.ClientSession:
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


def _in_words(error: aiohttp.ClientError) -> str:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return "no connection in time: is the address right, and no firewall in between?"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not accepted; name the authority that signed it as the CA file"
        case aiohttp.ClientConnectorSSLError() | aiohttp.ClientSSLError():
            return "no TLS connection; is this an https server?"
        case aiohttp.ClientConnectorDNSError():
            return "its name is not known; check the address"
        case aiohttp.ClientConnectorError():
            return "no connection; is it running, and the address right?"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | aiohttp.ClientOSError():
            return "the connection broke in the middle of the answer"
        case _:
            return "this is not HTTP as a server speaks it; check the address"
