"""
Which registries may be asked, and how: the configuration that an operator writes.

    fromNodes: true                      # also registries some node has pulled from: HTTPS, public addresses
    refuse: [198.51.100.0/24]            # networks of pods and services that are not private by their numbers
    registries:
    - host: registry.example:5000        # as in image names
      private: true                      # it lies on a private address
      mirrors: [mirror.example]
      realms: [login.example]            # who else may hand out tokens for it
      caFile: ca.pem                     # beside this file

Where a registry lies is told by `lamina.clients.oci.registry_endpoints`, which addresses are refused by `addresses`. Everything not
allowed here is forbidden; a pod's image name alone makes nobody go anywhere.
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
    """It is asked without TLS."""
    private: bool = False
    """It may lie on a private, loopback or link-local address, or in a refused network."""
    mirrors: tuple[HostText, ...] = ()
    """Asked first, in this order; an entry of their own says how."""
    realms: tuple[HostText, ...] = ()
    """Further hosts that may hand out tokens for it, and are told its credentials."""
    ca_file: str = ""
    """Authorities to believe besides those of the system."""


class RegistryConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The whole configuration."""

    registries: tuple[RegistrySettings, ...] = ()
    from_nodes: bool = True
    """Whether registries that some node has pulled from may be asked: by HTTPS, on public addresses."""
    refuse: tuple[NetworkText, ...] = ()
    """Networks that count as private."""


def load_registry_config(path: Path) -> RegistryConfig:
    """Read a configuration. Raises InputError with every mistake in it."""
    document = read_yaml(read_text(path), str(path))
    rules = convert(document, RegistryConfig)
    beside = tuple(_beside(path, one) for one in rules.registries)
    rules = msgspec.structs.replace(rules, registries=beside)
    if mistakes := _that_do_not_fit(document, rules):
        raise InputError(mistakes)
    return rules


def _beside(path: Path, registry: RegistrySettings) -> RegistrySettings:
    """Let the name of a file begin where the configuration lies."""
    if not registry.ca_file:
        return registry
    return msgspec.structs.replace(registry, ca_file=str(path.parent / registry.ca_file))


def _that_do_not_fit(document: YamlDocument, rules: RegistryConfig) -> list[Mistake]:
    """List what is wrong although every field is right."""
    found: list[Mistake] = []

    def wrong(position: int, field: str, message: str) -> None:
        line = document.line(("registries", position, field))
        found.append(Mistake(document.source, message, f"registries[{position}].{field}", line))

    first: dict[str, int] = {}
    for position, registry in enumerate(rules.registries):
        if position == MOST_REGISTRIES:
            wrong(position, "host", f"too many registries; at most {MOST_REGISTRIES} are read")
            break
        host = str(parse_host(registry.host))
        if first.setdefault(host, position) != position:
            wrong(position, "host", f"{host} has an entry already, registries[{first[host]}]; make them one")
        if host == HUB and registry.plain_http:
            wrong(position, "plainHttp", "Docker Hub is never asked without TLS; remove this")
        if registry.plain_http and registry.ca_file:
            wrong(position, "caFile", "nothing to verify without TLS; remove this, or plainHttp")
        if len(registry.mirrors) > MOST_MIRRORS:
            wrong(position, "mirrors", f"too many; at most {MOST_MIRRORS}")
        if registry.ca_file and (trouble := _trouble(registry.ca_file)):
            wrong(position, "caFile", trouble)
    return found


def _trouble(ca_file: str) -> str:
    """Say why a file of authorities cannot be used; empty when it can."""
    try:
        ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        return f"{ca_file} holds no certificates; name a file in PEM"
    except (OSError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or "its name cannot be used"
        return f"{ca_file} cannot be read: {said.lower()}"
    return ""
