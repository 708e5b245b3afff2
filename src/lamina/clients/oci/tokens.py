"""
How a registry lets us in: the header for a repository, once the registry has said what it wants to see.

    Basic     name and password, to the registry's own host
    Bearer    a token for pulling this one repository, fetched from the realm that the registry names

Credentials go to the registry's own host and to a realm that `places` accepts, and nowhere else. A realm is asked for
the scope we want, not for the one the challenge names. Tokens are kept until shortly before they end.
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
"""Seconds of a token that does not say, by the token specification."""
LONGEST_LIFE: Final = 3_600.0
EARLY: Final = 10.0
"""Seconds before its end a token is no longer used, or a fifth of its life if that is shorter."""
LONGEST_TOKEN: Final = 16 * 1024
_CLIENT: Final = "lamina"


class _Token(msgspec.Struct, frozen=True):
    """What a realm answers."""

    token: str = ""
    access_token: str = ""
    expires_in: float | None = None

    def __repr__(self) -> str:
        return "_Token(...)"


Key = tuple[RegistryEndpoint, str, Credential | None]


class RegistryTokens:
    """Headers that are good for now."""

    def __init__(self, fetcher: RegistryFetcher, places: EndpointPolicy, clock: Callable[[], float]) -> None:
        """Know nothing yet."""
        self._fetcher, self._places, self._clock = fetcher, places, clock
        self._kept: OrderedDict[Key, tuple[float, str]] = OrderedDict()

    def kept(self, key: Key) -> str:
        """Return the header for a place, a repository and a credential; empty when none is known."""
        until, header = self._kept.get(key, (0.0, ""))
        return header if self._clock() < until else ""

    def refused(self, key: Key) -> None:
        """Forget a header that was not taken."""
        self._kept.pop(key, None)

    async def obtain(self, key: Key, challenges: Iterable[str]) -> str:
        """Get a header that answers a challenge. Raises RegistryError."""
        place, repository, credential = key
        asked = parse_challenges(challenges)
        bearer = next((one for one in asked if one.scheme == "bearer" and one.parameters.get("realm")), None)
        if bearer is not None:
            header, life = await self._token(place, repository, credential, bearer)
        elif credential is not None and credential.password and any(one.scheme == "basic" for one in asked):
            header, life = credential.basic, LONGEST_LIFE
        elif credential is None:
            raise RegistryError(REFUSED, f"{place.name} wants credentials; add a pull secret, or log in")
        else:
            raise RegistryError(REFUSED, f"{place.name} wants neither a token nor a password")
        self._kept[key] = (self._clock() + life - min(EARLY, life / 5), header)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return header

    async def _token(
        self, place: RegistryEndpoint, repository: str, credential: Credential | None, challenge: Challenge
    ) -> tuple[str, float]:
        target = self._places.realm(place, challenge.parameters["realm"].partition("#")[0])
        wanted = {"service": challenge.parameters.get("service", ""), "scope": f"repository:{repository}:pull"}
        wanted = {name: value for name, value in wanted.items() if value}
        if credential is not None and credential.identity_token:
            form = {"grant_type": "refresh_token", "client_id": _CLIENT, "refresh_token": credential.identity_token}
            answer, _ = await self._fetcher.ask(target, "POST", {}, {**form, **wanted})
        else:
            joint = "&" if "?" in target.url else "?"
            target = CheckedUrl(target.place, f"{target.url}{joint}{urlencode(wanted)}")
            shown = {"Authorization": credential.basic} if credential is not None else {}
            answer, _ = await self._fetcher.ask(target, "GET", shown)
        return _judge(place, target.place, answer)


def _judge(registry: RegistryEndpoint, realm: RegistryEndpoint, answer: RegistryResponse) -> tuple[str, float]:
    """Take the token out of an answer."""
    if answer.status in (400, 401, 403, 404):
        raise RegistryError(REFUSED, f"{registry.name}: {realm.name} gives no token for these credentials")
    if not 200 <= answer.status < 300:
        raise RegistryError(
            UNREACHABLE, f"{registry.name}: {realm.name} answers {answer.status} to who asks for a token"
        )
    try:
        given = msgspec.json.decode(answer.body, type=_Token)
    except (ValueError, RecursionError):
        given = _Token()
    token = given.token or given.access_token
    sound = 0 < len(token) <= LONGEST_TOKEN and token.isascii() and token.isprintable() and " " not in token
    if not sound:
        raise RegistryError(UNREACHABLE, f"{registry.name}: {realm.name} gives nothing that can be a token")
    life = given.expires_in if given.expires_in is not None else DEFAULT_LIFE
    return f"Bearer {token}", min(max(life, 0.0), LONGEST_LIFE)
