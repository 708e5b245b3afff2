"""
Authorization headers for registries, from the challenge of a 401.

    Basic     name and password, sent to the registry's own host
    Bearer    a pull token for one repository, fetched from the realm that the registry names

Credentials are sent only to the registry's own host and to a realm that `EndpointPolicy` permits. The requested scope
is pull of the one repository, whatever scope the challenge names. Tokens are cached until shortly before they expire.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import urlencode

import msgspec

from lamina.clients.oci.challenge import Challenge, parse_challenges
from lamina.clients.oci.keyring import Credential
from lamina.clients.oci.lookup_results import REFUSED, UNREACHABLE, RegistryError
from lamina.clients.oci.registry_endpoints import CheckedUrl, EndpointPolicy, RegistryEndpoint
from lamina.clients.oci.registry_fetcher import RegistryFetcher, RegistryResponse

MOST_KEPT: Final = 1_024
DEFAULT_LIFE: Final = 60.0
"""Seconds of a token without expires_in, by the token specification."""
LONGEST_LIFE: Final = 3_600.0
EARLY: Final = 10.0
"""Seconds before expiry when a token is no longer used, or a fifth of its lifetime if that is shorter."""
LONGEST_TOKEN: Final = 16 * 1024
_CLIENT: Final = "lamina"


class _Token(msgspec.Struct, frozen=True):
    """The response of a token realm."""

    token: str = ""
    access_token: str = ""
    expires_in: float | None = None

    def __repr__(self) -> str:
        return "_Token(...)"


Key = tuple[RegistryEndpoint, str, Credential | None]


class RegistryTokens:
    """Cached authorization headers."""

    def __init__(self, fetcher: RegistryFetcher, endpoints: EndpointPolicy, clock: Callable[[], float]) -> None:
        """Start with an empty cache."""
        self._fetcher, self._endpoints, self._clock = fetcher, endpoints, clock
        self._cache: OrderedDict[Key, tuple[float, str]] = OrderedDict()

    def cached(self, key: Key) -> str:
        """Return the header for an endpoint, a repository and a credential; "" if none is cached."""
        until, header = self._cache.get(key, (0.0, ""))
        return header if self._clock() < until else ""

    def refused(self, key: Key) -> None:
        """Remove a header that the registry rejected."""
        self._cache.pop(key, None)

    async def obtain(self, key: Key, challenges: Iterable[str]) -> str:
        """Fetch and cache a header for a challenge. Raises RegistryError."""
        endpoint, repository, credential = key
        asked = parse_challenges(challenges)
        bearer = next((one for one in asked if one.scheme == "bearer" and one.parameters.get("realm")), None)
        if bearer is not None:
            header, life = await self._token(endpoint, repository, credential, bearer)
        elif credential is not None and credential.password and any(one.scheme == "basic" for one in asked):
            header, life = credential.basic, LONGEST_LIFE
        elif credential is None:
            raise RegistryError(REFUSED, f"{endpoint.name} requires credentials; add a pull secret, or log in")
        else:
            raise RegistryError(REFUSED, f"{endpoint.name} accepts neither a token nor a password")
        self._cache[key] = (self._clock() + life - min(EARLY, life / 5), header)
        if len(self._cache) > MOST_KEPT:
            self._cache.popitem(last=False)
        return header

    async def _token(
        self, endpoint: RegistryEndpoint, repository: str, credential: Credential | None, challenge: Challenge
    ) -> tuple[str, float]:
        target = self._endpoints.realm(endpoint, challenge.parameters["realm"].partition("#")[0])
        wanted = {"service": challenge.parameters.get("service", ""), "scope": f"repository:{repository}:pull"}
        wanted = {name: value for name, value in wanted.items() if value}
        if credential is not None and credential.identity_token:
            form = {"grant_type": "refresh_token", "client_id": _CLIENT, "refresh_token": credential.identity_token}
            answer, _ = await self._fetcher.ask(target, "POST", {}, {**form, **wanted})
        else:
            joint = "&" if "?" in target.url else "?"
            target = CheckedUrl(target.endpoint, f"{target.url}{joint}{urlencode(wanted)}")
            shown = {"Authorization": credential.basic} if credential is not None else {}
            answer, _ = await self._fetcher.ask(target, "GET", shown)
        return _read_token(endpoint, target.endpoint, answer)


def _read_token(registry: RegistryEndpoint, realm: RegistryEndpoint, answer: RegistryResponse) -> tuple[str, float]:
    """Return the header and lifetime of the token in a response."""
    if answer.status in (400, 401, 403, 404):
        raise RegistryError(REFUSED, f"{registry.name}: {realm.name} issues no token for these credentials")
    if not 200 <= answer.status < 300:
        raise RegistryError(
            UNREACHABLE, f"{registry.name}: {realm.name} returned HTTP {answer.status} to a token request"
        )
    try:
        given = msgspec.json.decode(answer.body, type=_Token)
    except (ValueError, RecursionError):
        given = _Token()
    token = given.token or given.access_token
    sound = 0 < len(token) <= LONGEST_TOKEN and token.isascii() and token.isprintable() and " " not in token
    if not sound:
        raise RegistryError(UNREACHABLE, f"{registry.name}: {realm.name} returned no usable token")
    life = given.expires_in if given.expires_in is not None else DEFAULT_LIFE
    return f"Bearer {token}", min(max(life, 0.0), LONGEST_LIFE)
