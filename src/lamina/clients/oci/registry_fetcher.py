"""
One bounded question to a registry, and what came back.

    bytes       at most 4 MiB, and never compressed: a few bytes could stand for very many
    time        at most 10 s in all, however slowly the answer drips
    redirects   at most three, each judged again; credentials go no further than the host they are for

A failure is a `RegistryError` in our own words. What the other side said is never a part of it, nor is an address: both
may hold a token.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Final

import aiohttp
import msgspec
from yarl import URL

from lamina.clients.oci.lookup_results import NOT_ALLOWED, NOT_USABLE, TOO_SLOW, UNREACHABLE, RegistryError
from lamina.clients.oci.registry_connections import (
    CONNECT_TIMEOUT,
    ConnectionInfo,
    RefusedAddressError,
    RegistryConnections,
)
from lamina.clients.oci.registry_endpoints import CheckedUrl, EndpointPolicy, RegistryEndpoint

LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a manifest, an index or a configuration."""
PATIENCE: Final = 10.0
REDIRECTS: Final = 3
SPARE: Final = 16 * 1024
"""Bytes of a refusal or a redirect that are read, and not looked at, so that the connection can be used again."""
TRIES: Final = 3
"""How often a question is asked if the connection was a kept one each time, and broke."""
_REDIRECTING: Final = (301, 302, 303, 307, 308)
_KEPT: Final = ("Content-Type", "Date", "Docker-Content-Digest", "ETag", "Retry-After")


class RegistryResponse(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    headers: dict[str, str] = {}
    """Those somebody here reads, by their usual names; the first of each."""
    challenges: tuple[str, ...] = ()
    """Every WWW-Authenticate."""
    body: bytes = b""

    def __repr__(self) -> str:
        return f"Answer({self.status}, {len(self.body)} bytes)"


class RegistryFetcher:
    """Asks, wherever it may."""

    def __init__(self, lines: RegistryConnections, places: EndpointPolicy, counts: Counter[str]) -> None:
        """Ask over *lines*, and go only where *places* allows."""
        self._lines, self._places, self._counts = lines, places, counts

    async def get(
        self,
        registry: RegistryEndpoint,
        path: str,
        headers: Mapping[str, str],
        *,
        method: str = "GET",
        authorization: str = "",
    ) -> RegistryResponse:
        """Ask a registry for one of its documents, redirects followed. Raises RegistryError."""
        target = CheckedUrl(registry, registry.base + path)
        for _ in range(REDIRECTS + 1):
            # What one host may know is no other's business, not even on another port.
            known = {"Authorization": authorization} if authorization and target.place.host == registry.host else {}
            answer, location = await self.ask(target, method, {**headers, **known})
            if not location:
                return answer
            target = self._places.redirect(registry, target, location)
        raise RegistryError(UNREACHABLE, f"{registry.name} redirects more than {REDIRECTS} times")

    async def ask(
        self, target: CheckedUrl, method: str, headers: Mapping[str, str], form: Mapping[str, str] | None = None
    ) -> tuple[RegistryResponse, str]:
        """Ask one question; return the answer and where it redirects to. Raises RegistryError."""
        place = target.place
        try:
            async with asyncio.timeout(PATIENCE):
                for tries_left in reversed(range(TRIES)):
                    line = ConnectionInfo()
                    try:
                        return await self._exchange(target, method, headers, form, line)
                    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientResponseError):
                        # A kept connection may have been closed, or spoilt, since it was used last. A new one tells.
                        if not (line.used_before and tries_left):
                            raise
            raise AssertionError("the last try has returned or raised")
        except TimeoutError:
            raise RegistryError(TOO_SLOW, f"{place.name} did not answer in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _in_words(place, error) from None

    async def _exchange(
        self,
        target: CheckedUrl,
        method: str,
        headers: Mapping[str, str],
        form: Mapping[str, str] | None,
        line: ConnectionInfo,
    ) -> tuple[RegistryResponse, str]:
        place = target.place
        self._counts["requests"] += 1
        async with self._lines.session(private=place.private).request(
            method,
            URL(target.url, encoded=True),
            headers=headers,
            data=form,
            ssl=True
            if place.plain
            else self._lines.context(place.ca_file),  # True: verify as usual, should it ever matter
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=PATIENCE, sock_connect=CONNECT_TIMEOUT),
            trace_request_ctx=line,
        ) as response:
            return await self._read(place, response)

    async def _read(self, place: RegistryEndpoint, response: aiohttp.ClientResponse) -> tuple[RegistryResponse, str]:
        try:
            kept = {name: response.headers[name] for name in _KEPT if name in response.headers}
            challenges = tuple(response.headers.getall("WWW-Authenticate", ()))
            if 200 <= response.status < 300:
                return RegistryResponse(response.status, kept, challenges, await _body(place, response)), ""
            if 0 < (response.content_length or 0) <= SPARE:
                await response.content.read(SPARE)
            location = response.headers.get("Location", "") if response.status in _REDIRECTING else ""
            return RegistryResponse(response.status, kept, challenges), location
        finally:
            # A connection with a rest in it is of no use to anybody else.
            if not response.content.at_eof():
                response.close()


async def _body(place: RegistryEndpoint, response: aiohttp.ClientResponse) -> bytes:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise RegistryError(NOT_USABLE, f"{place.name} sends something compressed, which nobody asked for")
    if (response.content_length or 0) > LIMIT and response.method != "HEAD":
        raise RegistryError(NOT_USABLE, f"{place.name} sends more than the {LIMIT} bytes a document may have")
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > LIMIT:
            raise RegistryError(NOT_USABLE, f"{place.name} sends more than the {LIMIT} bytes a document may have")
    return bytes(body)


def _in_words(place: RegistryEndpoint, error: Exception) -> RegistryError:
    """Say what happened without a word of the other side."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, RefusedAddressError):
        told = f"{place.name} lies on an address that is {cause.word}: a registry may if it is configured as private"
        return RegistryError(NOT_ALLOWED, told)
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            told = "its certificate is not to be believed, or it does not speak TLS: see caFile and plainHttp"
        case aiohttp.ClientConnectorDNSError():
            told = "its name has no address"
        case aiohttp.ClientConnectorError():
            told = "no connection"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | ConnectionError():
            told = "the connection broke"
        case _:
            told = "it does not speak HTTP as registries do"
    return RegistryError(UNREACHABLE, f"{place.name}: {told}")
