"""
Registry configuration, written by the operator: which registries are queried, and how.

    fromNodes: true                      # also registries that a node has pulled from: HTTPS, public addresses
    refuse: [198.51.100.0/24]            # pod and service networks with public addresses
    registries:
    - host: registry.example:5000        # as in image names
      private: true                      # it has a private address
      mirrors: [mirror.example]
      realms: [login.example]            # other hosts that issue tokens for it
      caFile: ca.pem                     # beside this file

`registry_endpoints` derives the hosts of requests from it, and `addresses` the rejected addresses. Hosts that the
configuration does not allow are never queried, whatever image name a pod has.
"""

import ipaddress
import ssl
from pathlib import Path
from typing import Annotated, Final

import msgspec

from lamina.clients.bounded_files import read_text
from lamina.clients.oci.hosts import HUB, parse_host
from lamina.model.conversion import convert
from lamina.model.errors import InputError, Mistake
from lamina.model.yaml_document import YamlDocument, read_yaml

MOST_REGISTRIES: Final = 1_000
MOST_MIRRORS: Final = 8


def _network(text: str) -> None:
    ipaddress.ip_network(text)


HostText = Annotated[str, msgspec.Meta(extra={"reads": parse_host})]
NetworkText = Annotated[str, msgspec.Meta(extra={"reads": _network})]


class RegistrySettings(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of the configuration."""

    host: HostText
    """As in image names: ``docker.io``, ``registry.example:5000``."""
    plain_http: bool = False
    """Use HTTP without TLS."""
    private: bool = False
    """Allow private, loopback and link-local addresses, and those in `refuse`."""
    mirrors: tuple[HostText, ...] = ()
    """Hosts queried first, in this order; each may have its own entry."""
    realms: tuple[HostText, ...] = ()
    """Further hosts that issue tokens for it; they receive its credentials."""
    ca_file: str = ""
    """CA bundle, in addition to the system's."""


class RegistryConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The whole configuration."""

    registries: tuple[RegistrySettings, ...] = ()
    from_nodes: bool = True
    """Whether registries that a node has pulled from are queried: by HTTPS, on public addresses."""
    refuse: tuple[NetworkText, ...] = ()
    """Networks treated as private."""


def load_registry_config(path: Path) -> RegistryConfig:
    """Read a configuration. Raises InputError with all its mistakes."""
    document = read_yaml(read_text(path), str(path))
    rules = convert(document, RegistryConfig)
    beside = tuple(_beside(path, one) for one in rules.registries)
    rules = msgspec.structs.replace(rules, registries=beside)
    if mistakes := _that_do_not_fit(document, rules):
        raise InputError(mistakes)
    return rules


def _beside(path: Path, registry: RegistrySettings) -> RegistrySettings:
    """Resolve *ca_file* from the configuration's folder."""
    if not registry.ca_file:
        return registry
    return msgspec.structs.replace(registry, ca_file=str(path.parent / registry.ca_file))


def _that_do_not_fit(document: YamlDocument, rules: RegistryConfig) -> list[Mistake]:
    """Return mistakes that concern several fields or entries."""
    found: list[Mistake] = []

    def wrong(position: int, field: str, message: str) -> None:
        line = document.line(("registries", position, field))
        found.append(Mistake(document.source, message, f"registries[{position}].{field}", line))

    first: dict[str, int] = {}
    for position, registry in enumerate(rules.registries):
        if position == MOST_REGISTRIES:
            wrong(position, "host", f"too many registries; at most {MOST_REGISTRIES} are allowed")
            break
        host = str(parse_host(registry.host))
        if first.setdefault(host, position) != position:
            wrong(position, "host", f"{host} already has an entry, registries[{first[host]}]: merge them")
        if host == HUB and registry.plain_http:
            wrong(position, "plainHttp", "Docker Hub requires TLS; remove this")
        if registry.plain_http and registry.ca_file:
            wrong(position, "caFile", "a CA file has no use without TLS; remove this, or plainHttp")
        if len(registry.mirrors) > MOST_MIRRORS:
            wrong(position, "mirrors", f"too many; at most {MOST_MIRRORS}")
        if registry.ca_file and (trouble := _trouble(registry.ca_file)):
            wrong(position, "caFile", trouble)
    return found


def _trouble(ca_file: str) -> str:
    """Return why a CA file is unusable; "" if it is usable."""
    try:
        ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        return f"{ca_file} contains no certificates; name a file in PEM"
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "the file name is not valid"
        return f"{ca_file} cannot be read: {reason.lower()}"
    return ""
