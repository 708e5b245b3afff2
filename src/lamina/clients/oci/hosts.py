"""
Parser for host names with ports, as in image names and configurations.

    host := name [":" port]        name: DNS name, IPv4 address, or IPv6 address in square brackets

Names are compared in lower case. Only ASCII is accepted, which excludes look-alike letters. This module makes no DNS
queries.
"""

import ipaddress
import re
from typing import Final

import msgspec

HUB: Final = "docker.io"
HUB_API: Final = "registry-1.docker.io"
HUB_REALM: Final = "auth.docker.io"
HTTPS_PORT: Final = 443
HTTP_PORT: Final = 80

_LONGEST_NAME: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")


class RegistryHost(msgspec.Struct, frozen=True, order=True):
    """A host with an optional port."""

    name: str
    """In lower case; an IPv6 address without brackets."""
    port: int | None = None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port is None else f"{name}:{self.port}"


def parse_host(text: str) -> RegistryHost:
    """Parse ``host`` or ``host:port``. Raises ValueError with a message for the user."""
    if "@" in text:
        raise ValueError("this is not a host; remove the user name, and never write a password into it")
    if "/" in text or "%" in text:
        raise ValueError(f"{text[:100]!r} is not a host; remove the protocol, the path and the zone")
    name, port = _split(text.lower())
    if port is not None and (not _PORT.fullmatch(port) or int(port) > 65_535):
        raise ValueError(f"{text[:100]!r}: a port is a number from 1 to 65535")
    if ":" in name:
        try:
            name = str(ipaddress.IPv6Address(name))
        except ValueError:
            raise ValueError(f"{text[:100]!r} is not an IPv6 address in square brackets") from None
    elif not name or len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError(f"{text[:100]!r} is not a host; write host or host:port, as in an image name")
    elif _NUMBER.fullmatch(name.rpartition(".")[2]) and not is_address(name):
        # The C library resolves 127.1, 2130706433 and 0x7f.1 as IPv4 addresses; no DNS name ends in a number.
        raise ValueError(f"{text[:100]!r} is not a host; write an IPv4 address as four numbers")
    return RegistryHost(name, int(port) if port is not None else None)


def _split(text: str) -> tuple[str, str | None]:
    if text.startswith("["):
        name, bracket, rest = text[1:].partition("]")
        if not bracket or ":" not in name or (rest and rest[0] != ":"):
            raise ValueError(f"{text[:100]!r} is not an IPv6 address in square brackets")
        return name, rest[1:] if rest else None
    name, colon, port = text.partition(":")
    return name, port if colon else None


def in_same_domain(one: str, other: str) -> bool:
    """
    Return whether two host names have the same owner: they are equal, or one is a subdomain of the other.

    The owner of a domain controls all names below it, so credentials for one may be sent to the other. Sharing only a
    parent is not enough, because it may be a provider's. A top-level domain is never a shared owner.
    """
    if one == other:
        return True
    if is_address(one) or is_address(other):
        return False
    upper, lower = sorted((one, other), key=len)
    return "." in upper and lower.endswith(f".{upper}")


def is_address(name: str) -> bool:
    """Return whether *name* is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
