"""
One bounded HTTP request to a registry.

    bytes       at most 4 MiB, never compressed: a small compressed body could expand without bound
    time        at most 10 s for the whole exchange
    redirects   at most three, each checked again; credentials are sent only to the host they are for

A failure is a `RegistryError`. Its message contains nothing from the response and no URL, because both may contain a
token.
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
"""Bytes of an error or a redirect body that are read and dropped, so that the connection can be reused."""
TRIES: Final = 3
"""Attempts of a request while each one broke on a reused connection."""
_REDIRECTING: Final = (301, 302, 303, 307, 308)
_KEPT: Final = ("Content-Type", "Date", "Docker-Content-Digest", "ETag", "Retry-After")


class RegistryResponse(msgspec.Struct, frozen=True):
    """A response of a registry."""

    status: int
    headers: dict[str, str] = {}
    """Only the headers in `_KEPT`; the first of each."""
    challenges: tuple[str, ...] = ()
    """All WWW-Authenticate headers."""
    body: bytes = b""

    def __repr__(self) -> str:
        return f"RegistryResponse({self.status}, {len(self.body)} bytes)"


class RegistryFetcher:
    """Sends requests to permitted hosts."""

    def __init__(self, connections: RegistryConnections, endpoints: EndpointPolicy, counts: Counter[str]) -> None:
        """Send over *connections*, only to hosts that *endpoints* permits."""
        self._connections, self._endpoints, self._counts = connections, endpoints, counts

    async def get(
        self,
        registry: RegistryEndpoint,
        path: str,
        headers: Mapping[str, str],
        *,
        method: str = "GET",
        authorization: str = "",
    ) -> RegistryResponse:
        """Request a document from a registry, following redirects. Raises RegistryError."""
        target = CheckedUrl(registry, registry.base + path)
        for _ in range(REDIRECTS + 1):
            # Credentials are for one host and port only.
            known = {"Authorization": authorization} if authorization and target.endpoint.host == registry.host else {}
            answer, location = await self.ask(target, method, {**headers, **known})
            if not location:
                return answer
            target = self._endpoints.redirect(registry, target, location)
        raise RegistryError(UNREACHABLE, f"{registry.name} redirects more than {REDIRECTS} times")

    async def ask(
        self, target: CheckedUrl, method: str, headers: Mapping[str, str], form: Mapping[str, str] | None = None
    ) -> tuple[RegistryResponse, str]:
        """Send one request; return the response and its redirect location. Raises RegistryError."""
        endpoint = target.endpoint
        try:
            async with asyncio.timeout(PATIENCE):
                for tries_left in reversed(range(TRIES)):
                    info = ConnectionInfo()
                    try:
                        return await self._exchange(target, method, headers, form, info)
                    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientResponseError):
                        # A reused connection may have been closed by the server; a new one shows whether it responds.
                        if not (info.used_before and tries_left):
                            raise
            raise AssertionError("the last try has returned or raised")
        except TimeoutError:
            raise RegistryError(TOO_SLOW, f"{endpoint.name} did not respond in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failure(endpoint, error) from None

    async def _exchange(
        self,
        target: CheckedUrl,
        method: str,
        headers: Mapping[str, str],
        form: Mapping[str, str] | None,
        info: ConnectionInfo,
    ) -> tuple[RegistryResponse, str]:
        endpoint = target.endpoint
        self._counts["requests"] += 1
        async with self._connections.session(private=endpoint.private).request(
            method,
            URL(target.url, encoded=True),
            headers=headers,
            data=form,
            ssl=True
            if endpoint.plain
            else self._connections.context(endpoint.ca_file),  # True: default verification, unused for http
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=PATIENCE, sock_connect=CONNECT_TIMEOUT),
            trace_request_ctx=info,
        ) as response:
            return await self._read(endpoint, response)

    async def _read(self, endpoint: RegistryEndpoint, response: aiohttp.ClientResponse) -> tuple[RegistryResponse, str]:
        try:
            kept = {name: response.headers[name] for name in _KEPT if name in response.headers}
            challenges = tuple(response.headers.getall("WWW-Authenticate", ()))
            if 200 <= response.status < 300:
                return RegistryResponse(response.status, kept, challenges, await _body(endpoint, response)), ""
            if 0 < (response.content_length or 0) <= SPARE:
                await response.content.read(SPARE)
            location = response.headers.get("Location", "") if response.status in _REDIRECTING else ""
            return RegistryResponse(response.status, kept, challenges), location
        finally:
            # A connection with unread data cannot be reused.
            if not response.content.at_eof():
                response.close()


async def _body(endpoint: RegistryEndpoint, response: aiohttp.ClientResponse) -> bytes:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise RegistryError(NOT_USABLE, f"{endpoint.name}: unexpected compression")
    if (response.content_length or 0) > LIMIT and response.method != "HEAD":
        raise RegistryError(NOT_USABLE, f"{endpoint.name} sends more than {LIMIT} bytes, the limit of a document")
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > LIMIT:
            raise RegistryError(NOT_USABLE, f"{endpoint.name} sends more than {LIMIT} bytes, the limit of a document")
    return bytes(body)


def _failure(endpoint: RegistryEndpoint, error: Exception) -> RegistryError:
    """Convert a network exception to a message that contains nothing from the response."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, RefusedAddressError):
        problem = f"{endpoint.name} has an address that is {cause.word}: to allow it, configure the registry as private"
        return RegistryError(NOT_ALLOWED, problem)
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            problem = "TLS handshake failed: see caFile and plainHttp"
        case aiohttp.ClientConnectorDNSError():
            problem = "host name not found"
        case aiohttp.ClientConnectorError():
            problem = "connection failed"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | ConnectionError():
            problem = "the connection broke"
        case _:
            problem = "the response is not HTTP"
    return RegistryError(UNREACHABLE, f"{endpoint.name}: {problem}")
