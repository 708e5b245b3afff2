"""
Decide which hosts a registry request may go to: mirrors, token realms and redirects.

    reference ──endpoints_for──> mirrors, then the registry itself      or NOT_ALLOWED
    token realm ──realm──> an endpoint that may receive credentials     or NOT_ALLOWED
    redirect ──redirect──> an endpoint that receives no credentials     or NOT_ALLOWED

An endpoint is a scheme, a host, a port and its permissions. Only names are checked here; `registry_connections` checks
the IP addresses when it connects.
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
    in_same_domain,
    parse_host,
)
from lamina.clients.oci.lookup_results import NOT_ALLOWED, RegistryError
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings

_LONGEST_URL: Final = 8_192
_FIRST_FREE_PORT: Final = 1_024
"""Lower ports belong to system services by IANA's list, such as mail and remote shells."""


class RegistryEndpoint(msgspec.Struct, frozen=True):
    """Scheme, host and port of a registry server, with its TLS and address permissions."""

    host: RegistryHost
    """Always with a port."""
    name: str
    """As in image names and keyrings."""
    plain: bool = False
    private: bool = False
    ca_file: str = ""

    @property
    def base(self) -> str:
        """Prefix of all its URLs."""
        host, port = msgspec.structs.replace(self.host, port=None), self.host.port
        usual = HTTP_PORT if self.plain else HTTPS_PORT
        return f"{'http' if self.plain else 'https'}://{host if port == usual else self.host}"


class CheckedUrl(msgspec.Struct, frozen=True):
    """A permitted URL and its endpoint."""

    endpoint: RegistryEndpoint
    url: str

    def __repr__(self) -> str:
        return f"CheckedUrl({self.endpoint.name})"


class EndpointPolicy:
    """Map image references to permitted registry hosts."""

    def __init__(self, rules: RegistryConfig) -> None:
        """Index the configured registries by host."""
        self._rules = rules
        self._entries = {spelled(one.host): one for one in rules.registries}
        self._from_nodes: frozenset[str] = frozenset()

    def seen_on_nodes(self, hosts: Collection[str]) -> None:
        """Replace the registries that nodes have pulled from."""
        self._from_nodes = frozenset(host.lower() for host in hosts)

    def endpoints_for(self, registry: str) -> tuple[RegistryEndpoint, ...]:
        """Return the endpoints for a registry's images, in the order to try them. Raises RegistryError."""
        name = self._checked(registry)
        entry = self._entries.get(name)
        if entry is None and not (self._rules.from_nodes and name in self._from_nodes):
            reason = (
                "no node has pulled from it" if self._rules.from_nodes else "only configured registries are queried"
            )
            raise RegistryError(NOT_ALLOWED, f"{name} is not configured and {reason}; add it to the registries")
        if entry is None and not _usual_port(parse_host(name)):
            # A node can report any host, and must not make Lamina probe the ports of a machine.
            reason = f"named only by nodes, so only port {HTTPS_PORT} and ports from {_FIRST_FREE_PORT} are allowed"
            raise RegistryError(NOT_ALLOWED, f"{name} is not configured and {reason}; add it to the registries")
        mirrors = entry.mirrors if entry is not None else ()
        return (*(self._endpoint(str(parse_host(mirror))) for mirror in mirrors), self._endpoint(name))

    def realm(self, registry: RegistryEndpoint, url: str) -> CheckedUrl:
        """Check the token realm of a registry. Raises RegistryError."""
        parts, host = _split_url(url, registry, "token realm")
        if parts.scheme != "https" and not (registry.plain and parts.scheme == "http"):
            raise _forbidden(registry, f"its token realm on {host} has no TLS")
        plain = parts.scheme == "http"
        entry = self._entries.get(registry.name, RegistrySettings(registry.name))
        configured = [_with_port(parse_host(realm), plain=plain) for realm in entry.realms]
        named = RegistryEndpoint(host, str(host), plain, registry.private, registry.ca_file)
        if host == registry.host or host in configured:
            return CheckedUrl(named, url)
        builtin = registry.name == HUB and host.name == HUB_REALM
        if host.port == HTTPS_PORT and not plain and (builtin or in_same_domain(host.name, registry.host.name)):
            private = registry.private and host.name == registry.host.name
            return CheckedUrl(msgspec.structs.replace(named, private=private), url)
        message = f"its token realm is {host}, in another domain: if that is right, add it to the registry's realms"
        raise _forbidden(registry, message)

    def redirect(self, registry: RegistryEndpoint, here: CheckedUrl, location: str) -> CheckedUrl:
        """Check a redirect from *here* for a document. Raises RegistryError."""
        try:
            url = urljoin(here.url, location)
        except ValueError:
            raise _forbidden(registry, "its redirect is not a valid URL") from None
        parts, host = _split_url(url, registry, "redirect")
        if host == here.endpoint.host and (parts.scheme == "https") is not here.endpoint.plain:
            return CheckedUrl(here.endpoint, url)
        if parts.scheme != "https":
            raise _forbidden(registry, f"it redirects to {host} without TLS")
        known = self._entries.get(str(host)) or self._entries.get(host.name)
        if (
            known is not None
            and not known.plain_http
            and (endpoint := self._endpoint(str(parse_host(known.host)))).host == host
        ):
            return CheckedUrl(endpoint, url)
        if host.port != HTTPS_PORT:
            raise _forbidden(registry, f"it redirects to port {host.port} of {host.name}: only 443 is allowed there")
        return CheckedUrl(RegistryEndpoint(host, str(host)), url)

    def _checked(self, registry: str) -> str:
        try:
            return str(parse_host(registry))
        except ValueError as error:
            raise RegistryError(NOT_ALLOWED, f"the registry name is not valid: {error}") from None

    def _endpoint(self, name: str) -> RegistryEndpoint:
        entry = self._entries.get(name, RegistrySettings(name))
        host = parse_host(HUB_API if name == HUB else name)
        return RegistryEndpoint(
            _with_port(host, plain=entry.plain_http), name, entry.plain_http, entry.private, entry.ca_file
        )


def spelled(host: str) -> str:
    """Return the normalised form of a host; an invalid one unchanged, because it is rejected when used."""
    try:
        return str(parse_host(host))
    except ValueError:
        return host


def _usual_port(host: RegistryHost) -> bool:
    return host.port is None or host.port == HTTPS_PORT or host.port >= _FIRST_FREE_PORT


def _with_port(host: RegistryHost, *, plain: bool) -> RegistryHost:
    return host if host.port is not None else RegistryHost(host.name, HTTP_PORT if plain else HTTPS_PORT)


def _split_url(url: str, registry: RegistryEndpoint, what: str) -> tuple[SplitResult, RegistryHost]:
    """Split an untrusted URL; the host always gets a port."""
    sound = len(url) <= _LONGEST_URL and url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    try:
        parts = urlsplit(url if sound else "")
        host = parse_host(parts.netloc)
    except ValueError:
        raise _forbidden(registry, f"its {what} is not a valid URL") from None
    if parts.scheme not in ("http", "https"):
        raise _forbidden(registry, f"its {what} is neither https nor http")
    return parts, _with_port(host, plain=parts.scheme == "http")


def _forbidden(registry: RegistryEndpoint, message: str) -> RegistryError:
    return RegistryError(NOT_ALLOWED, f"{registry.name}: {message}")
