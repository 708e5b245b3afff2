"""
Questions about one repository at one place, with one login: what a status means, and who is asked again.

A 401 is answered once, with what the registry says it wants to see; a second one is a refusal. Nothing else is tried
again here. How a registry is doing is told to the breaker, and one that is to be left alone is not asked.
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
"""Questions under way, whoever they are for."""
AT_ONE_HOST: Final = 8
"""Of them to one host: others are asked while that one says nothing."""
_TROUBLE: Final = (UNREACHABLE, TOO_SLOW)


class RegistrySession:
    """What all questions share."""

    def __init__(self, fetcher: RegistryFetcher, tokens: RegistryTokens, clock: Callable[[], float]) -> None:
        """Trust every registry."""
        self.fetcher, self.tokens, self.clock = fetcher, tokens, clock
        self.breaker = CircuitBreaker()
        self.free = asyncio.Semaphore(AT_ONCE)
        self._at_hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def at_host(self, host: str) -> asyncio.Semaphore:
        """Return what keeps one host from using up all questions; there as long as somebody holds it."""
        found = self._at_hosts.get(host)
        if found is None:
            found = self._at_hosts[host] = asyncio.Semaphore(AT_ONE_HOST)
        return found


class RepositoryClient:
    """One repository at one place, with one login."""

    def __init__(
        self, desk: RegistrySession, place: RegistryEndpoint, repository: str, credential: Credential | None
    ) -> None:
        """Ask nothing yet."""
        self.place = place
        self._desk = desk
        self._repository = repository
        self._key = (place, repository, credential)

    async def ask(self, method: str, path: str, headers: Mapping[str, str]) -> RegistryResponse:
        """
        Ask for something of the repository; *path* begins behind its name.

        Return an answer that is 2xx or 304, or to HEAD one that says it does not like the method. Raises RegistryError.
        """
        async with self._desk.at_host(str(self.place.host)), self._desk.free:
            return await self._ask(method, path, headers)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What was shown to others and must not be shown again."""
        _, _, credential = self._key
        shown = self._desk.tokens.kept(self._key).partition(" ")[2]
        return (shown, *(credential.secrets if credential is not None else ()))

    async def _ask(self, method: str, path: str, headers: Mapping[str, str]) -> RegistryResponse:
        breaker, host = self._desk.breaker, str(self.place.host)
        if wait := breaker.wait(host, self._desk.clock()):
            raise RegistryError(UNREACHABLE, f"{self.place.name} is in trouble and left alone for another {wait:.0f} s")
        try:
            answer = await self._answer(method, f"/v2/{self._repository}/{path}", headers)
            self._judge(method, answer)
        except RegistryError as error:
            if error.pause:
                breaker.asked_to_wait(host, error.pause, self._desk.clock())
            elif error.reason in _TROUBLE:
                breaker.failed(host, self._desk.clock())
            else:
                breaker.succeeded(host)
            raise
        except asyncio.CancelledError:
            # Whoever waits has no more time: as far as they can tell, nobody answers.
            breaker.failed(host, self._desk.clock())
            raise
        finally:
            breaker.given_up(host)
        breaker.succeeded(host)
        return answer

    async def _answer(self, method: str, path: str, headers: Mapping[str, str]) -> RegistryResponse:
        tokens, fetcher = self._desk.tokens, self._desk.fetcher
        shown = tokens.kept(self._key)
        answer = await fetcher.get(self.place, path, headers, method=method, authorization=shown)
        if answer.status != 401:
            return answer
        tokens.refused(self._key)
        shown = await tokens.obtain(self._key, answer.challenges)
        answer = await fetcher.get(self.place, path, headers, method=method, authorization=shown)
        if answer.status == 401:
            tokens.refused(self._key)
        return answer

    def _judge(self, method: str, answer: RegistryResponse) -> None:
        name, status = self.place.name, answer.status
        if 200 <= status < 300 or status == 304:
            return
        match status:
            case 401 | 403:
                raise RegistryError(REFUSED, f"{name} does not let us read {self._repository}")
            case 404:
                raise RegistryError(NO_SUCH_IMAGE, f"{name} has no such image, or shows it only to others")
            case 429:
                pause = _retry_after(answer.headers)
                raise RegistryError(BUSY, f"{name} says it is asked too often", pause)
            case 400 | 405 | 501 if method == "HEAD":
                return
            case _ if status >= 500:
                raise RegistryError(UNREACHABLE, f"{name} answers {status}")
            case _:
                raise RegistryError(NOT_USABLE, f"{name} answers {status}, which is no answer to this question")


def _retry_after(headers: Mapping[str, str]) -> float:
    """Read how long we are asked to wait: seconds, or a date, which counts from the date of the answer."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return max(float(text), 1.0)
    try:
        until, now = (parsedate_to_datetime(one) for one in (text, headers.get("Date", "")))
        return max((until - now).total_seconds(), 1.0)
    except (ValueError, TypeError, OverflowError):  # no date, or one of the two without a zone
        return FIRST
