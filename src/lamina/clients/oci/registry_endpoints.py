"""
Where registries are asked, and where they may send us.

    reference ──ways──> mirrors, then the registry itself           NOT_ALLOWED for what no rule names
    token realm ──realm──> a place that may be told credentials     or NOT_ALLOWED
    redirect ──redirect──> a place that is told nothing             or NOT_ALLOWED

A place is a scheme, a host, a port and what the rules allow there. Only names are judged here; the addresses behind
them are judged when a connection is made (`dialing`).
"""

from collections.abc import Collection
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec

from lamina.clients.oci.hosts import (
    HTTP_PORT,
    HTTPS_PORT,
    HUB,
    HUB_API,
    HUB_REALM,
    RegistryHost,
    of_one_house,
    parse_host,
)
from lamina.clients.oci.lookup_results import NOT_ALLOWED, RegistryError
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings

_LONGEST_URL: Final = 8_192
_FIRST_FREE_PORT: Final = 1_024
"""Below it, on machines that follow IANA's list, are services of the system: mail, remote shells and the like."""


class RegistryEndpoint(msgspec.Struct, frozen=True):
    """Where something is asked."""

    host: RegistryHost
    """With a port, always."""
    name: str
    """As image names and keyrings have it."""
    plain: bool = False
    private: bool = False
    ca_file: str = ""

    @property
    def base(self) -> str:
        """The beginning of all its addresses."""
        host, port = msgspec.structs.replace(self.host, port=None), self.host.port
        usual = HTTP_PORT if self.plain else HTTPS_PORT
        return f"{'http' if self.plain else 'https'}://{host if port == usual else self.host}"


class CheckedUrl(msgspec.Struct, frozen=True):
    """An address that was judged: where it is, and the whole of it."""

    place: RegistryEndpoint
    url: str

    def __repr__(self) -> str:
        return f"Target({self.place.name})"


class EndpointPolicy:
    """Knows the rules."""

    def __init__(self, rules: RegistryConfig) -> None:
        """Look the registries up by their hosts."""
        self._rules = rules
        self._entries = {spelled(one.host): one for one in rules.registries}
        self._from_nodes: frozenset[str] = frozenset()

    def seen_on_nodes(self, hosts: Collection[str]) -> None:
        """Replace the registries that nodes have pulled from."""
        self._from_nodes = frozenset(host.lower() for host in hosts)

    def ways(self, registry: str) -> tuple[RegistryEndpoint, ...]:
        """Return where to ask for images of a registry, the best first. Raises RegistryError."""
        name = self._checked(registry)
        entry = self._entries.get(name)
        if entry is None and not (self._rules.from_nodes and name in self._from_nodes):
            told = "no node has pulled from it" if self._rules.from_nodes else "only configured registries are asked"
            raise RegistryError(NOT_ALLOWED, f"{name} is not configured and {told}; add it to the registries")
        if entry is None and not _usual_port(parse_host(name)):
            # A node can claim to have pulled from anywhere, and must not make us knock at every door of a machine.
            told = f"only port {HTTPS_PORT} and those from {_FIRST_FREE_PORT} on are asked because a node names them"
            raise RegistryError(NOT_ALLOWED, f"{name} is not configured and {told}; add it to the registries")
        mirrors = entry.mirrors if entry is not None else ()
        return (*(self._place(str(parse_host(mirror))) for mirror in mirrors), self._place(name))

    def realm(self, registry: RegistryEndpoint, url: str) -> CheckedUrl:
        """Judge where a registry sends us for a token. Raises RegistryError."""
        parts, host = _taken_apart(url, registry, "token realm")
        if parts.scheme != "https" and not (registry.plain and parts.scheme == "http"):
            raise _forbidden(registry, f"its token realm on {host} is not asked without TLS")
        plain = parts.scheme == "http"
        entry = self._entries.get(registry.name, RegistrySettings(registry.name))
        configured = [_with_port(parse_host(realm), plain=plain) for realm in entry.realms]
        named = RegistryEndpoint(host, str(host), plain, registry.private, registry.ca_file)
        if host == registry.host or host in configured:
            return CheckedUrl(named, url)
        builtin = registry.name == HUB and host.name == HUB_REALM
        if host.port == HTTPS_PORT and not plain and (builtin or of_one_house(host.name, registry.host.name)):
            private = registry.private and host.name == registry.host.name
            return CheckedUrl(msgspec.structs.replace(named, private=private), url)
        message = f"its token realm is {host}, another house: if that is right, add it to the registry's realms"
        raise _forbidden(registry, message)

    def redirect(self, registry: RegistryEndpoint, here: CheckedUrl, location: str) -> CheckedUrl:
        """Judge where an answer from *here* sends us for a document. Raises RegistryError."""
        try:
            url = urljoin(here.url, location)
        except ValueError:
            raise _forbidden(registry, "its redirect is no address that can be asked") from None
        parts, host = _taken_apart(url, registry, "redirect")
        if host == here.place.host and (parts.scheme == "https") is not here.place.plain:
            return CheckedUrl(here.place, url)
        if parts.scheme != "https":
            raise _forbidden(registry, f"it redirects to {host} without TLS")
        known = self._entries.get(str(host)) or self._entries.get(host.name)
        if (
            known is not None
            and not known.plain_http
            and (place := self._place(str(parse_host(known.host)))).host == host
        ):
            return CheckedUrl(place, url)
        if host.port != HTTPS_PORT:
            raise _forbidden(registry, f"it redirects to port {host.port} of {host.name}: only 443 is asked there")
        return CheckedUrl(RegistryEndpoint(host, str(host)), url)

    def _checked(self, registry: str) -> str:
        try:
            return str(parse_host(registry))
        except ValueError as error:
            raise RegistryError(NOT_ALLOWED, f"the registry cannot be asked: {error}") from None

    def _place(self, name: str) -> RegistryEndpoint:
        entry = self._entries.get(name, RegistrySettings(name))
        host = parse_host(HUB_API if name == HUB else name)
        return RegistryEndpoint(
            _with_port(host, plain=entry.plain_http), name, entry.plain_http, entry.private, entry.ca_file
        )


def spelled(host: str) -> str:
    """Return the one spelling of a host; what is none stands for itself, and is refused when it is asked."""
    try:
        return str(parse_host(host))
    except ValueError:
        return host


def _usual_port(host: RegistryHost) -> bool:
    return host.port is None or host.port == HTTPS_PORT or host.port >= _FIRST_FREE_PORT


def _with_port(host: RegistryHost, *, plain: bool) -> RegistryHost:
    return host if host.port is not None else RegistryHost(host.name, HTTP_PORT if plain else HTTPS_PORT)


def _taken_apart(url: str, registry: RegistryEndpoint, what: str) -> tuple[SplitResult, RegistryHost]:
    """Take an address apart that a stranger wrote; the host always gets its port."""
    sound = len(url) <= _LONGEST_URL and url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    try:
        parts = urlsplit(url if sound else "")
        host = parse_host(parts.netloc)
    except ValueError:
        raise _forbidden(registry, f"its {what} is no address that can be asked") from None
    if parts.scheme not in ("http", "https"):
        raise _forbidden(registry, f"its {what} is neither https nor http")
    return parts, _with_port(host, plain=parts.scheme == "http")


def _forbidden(registry: RegistryEndpoint, message: str) -> RegistryError:
    return RegistryError(NOT_ALLOWED, f"{registry.name}: {message}")
