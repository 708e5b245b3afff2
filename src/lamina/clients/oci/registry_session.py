"""
Requests about one repository at one endpoint with one login, and the meaning of their statuses.

After a 401 the request is repeated once, with the authorization that the registry asks for; a second 401 is a refusal.
Nothing else is retried here. Outcomes are reported to the circuit breaker; while it is open, no request is sent.
"""

import asyncio
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final
from weakref import WeakValueDictionary

from lamina.clients.oci.circuit_breaker import FIRST, CircuitBreaker
from lamina.clients.oci.keyring import Credential
from lamina.clients.oci.lookup_results import (
    BUSY,
    NO_SUCH_IMAGE,
    NOT_USABLE,
    REFUSED,
    TOO_SLOW,
    UNREACHABLE,
    RegistryError,
)
from lamina.clients.oci.registry_endpoints import RegistryEndpoint
from lamina.clients.oci.registry_fetcher import RegistryFetcher, RegistryResponse
from lamina.clients.oci.tokens import RegistryTokens

AT_ONCE: Final = 16
"""Requests in flight to all hosts."""
AT_ONE_HOST: Final = 8
"""Requests in flight to one host, so that a slow host does not use all of them."""
_TROUBLE: Final = (UNREACHABLE, TOO_SLOW)


class RegistrySession:
    """State shared by all repository clients: fetcher, tokens, circuit breaker and request limits."""

    def __init__(self, fetcher: RegistryFetcher, tokens: RegistryTokens, clock: Callable[[], float]) -> None:
        """Start with all circuit breakers closed."""
        self.fetcher, self.tokens, self.clock = fetcher, tokens, clock
        self.breaker = CircuitBreaker()
        self.free = asyncio.Semaphore(AT_ONCE)
        self._at_hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def at_host(self, host: str) -> asyncio.Semaphore:
        """Return the semaphore of one host; it exists while a request holds it."""
        found = self._at_hosts.get(host)
        if found is None:
            found = self._at_hosts[host] = asyncio.Semaphore(AT_ONE_HOST)
        return found


class RepositoryClient:
    """Client for one repository at one endpoint with one login."""

    def __init__(
        self, session: RegistrySession, endpoint: RegistryEndpoint, repository: str, credential: Credential | None
    ) -> None:
        """Store the parameters; send nothing yet."""
        self.endpoint = endpoint
        self._session = session
        self._repository = repository
        self._key = (endpoint, repository, credential)

    async def ask(self, method: str, path: str, headers: Mapping[str, str]) -> RegistryResponse:
        """
        Request a document of the repository; *path* is relative to its name.

        Return a 2xx or 304 response, or for HEAD one that rejects the method. Raises RegistryError.
        """
        async with self._session.at_host(str(self.endpoint.host)), self._session.free:
            return await self._ask(method, path, headers)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values sent to the registry that must not appear in a message."""
        _, _, credential = self._key
        authorization = self._session.tokens.cached(self._key).partition(" ")[2]
        return (authorization, *(credential.secrets if credential is not None else ()))

    async def _ask(self, method: str, path: str, headers: Mapping[str, str]) -> RegistryResponse:
        breaker, host = self._session.breaker, str(self.endpoint.host)
        if wait := breaker.wait(host, self._session.clock()):
            raise RegistryError(
                UNREACHABLE, f"{self.endpoint.name}: circuit breaker open, next request in {wait:.0f} s"
            )
        try:
            answer = await self._answer(method, f"/v2/{self._repository}/{path}", headers)
            self._check_status(method, answer)
        except RegistryError as error:
            if error.pause:
                breaker.asked_to_wait(host, error.pause, self._session.clock())
            elif error.reason in _TROUBLE:
                breaker.failed(host, self._session.clock())
            else:
                breaker.succeeded(host)
            raise
        except asyncio.CancelledError:
            # The caller's time limit passed: that is a failure of the host too.
            breaker.failed(host, self._session.clock())
            raise
        finally:
            breaker.given_up(host)
        breaker.succeeded(host)
        return answer

    async def _answer(self, method: str, path: str, headers: Mapping[str, str]) -> RegistryResponse:
        tokens, fetcher = self._session.tokens, self._session.fetcher
        authorization = tokens.cached(self._key)
        answer = await fetcher.get(self.endpoint, path, headers, method=method, authorization=authorization)
        if answer.status != 401:
            return answer
        tokens.refused(self._key)
        authorization = await tokens.obtain(self._key, answer.challenges)
        answer = await fetcher.get(self.endpoint, path, headers, method=method, authorization=authorization)
        if answer.status == 401:
            tokens.refused(self._key)
        return answer

    def _check_status(self, method: str, answer: RegistryResponse) -> None:
        name, status = self.endpoint.name, answer.status
        if 200 <= status < 300 or status == 304:
            return
        match status:
            case 401 | 403:
                raise RegistryError(REFUSED, f"{name} refuses access to {self._repository}")
            case 404:
                raise RegistryError(NO_SUCH_IMAGE, f"{name} has no such image, or hides it from these credentials")
            case 429:
                pause = _retry_after(answer.headers)
                raise RegistryError(BUSY, f"{name} limits requests (429)", pause)
            case 400 | 405 | 501 if method == "HEAD":
                return
            case _ if status >= 500:
                raise RegistryError(UNREACHABLE, f"{name} returned HTTP {status}")
            case _:
                raise RegistryError(NOT_USABLE, f"{name} returned HTTP {status}, which is not expected here")


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of a Retry-After header; a date is taken relative to the response's Date header."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return max(float(text), 1.0)
    try:
        until, now = (parsedate_to_datetime(one) for one in (text, headers.get("Date", "")))
        return max((until - now).total_seconds(), 1.0)
    except (ValueError, TypeError, OverflowError):  # no date, or only one of them has a time zone
        return FIRST
