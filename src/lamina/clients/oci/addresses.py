"""
Filter for the IP addresses that registry requests may connect to.

Any user who can create a pod can write an image name, and the owner of a host name controls its addresses. So Lamina
checks addresses, never names, and connects to exactly the address it has checked.

    always rejected          unspecified, multicast, broadcast, reserved; cloud metadata services
    only with `private`      loopback, link-local, private, shared (CGNAT), special; networks in `refuse`
    with an IPv4 inside      IPv4-mapped, NAT64, 6to4, Teredo: both the outer and the inner address are checked

Sources: IANA's special-purpose registries for IPv4 and IPv6, as in Python's ipaddress, plus the lists below.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

MACHINE_DATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, Google and most other clouds
        "169.254.170.2",  # AWS: containers
        "169.254.170.23",  # AWS: pod identities
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",  # Google
        "168.63.129.16",  # Azure: a public address that every VM's host serves
        "169.254.0.23",  # Tencent
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
    )
)
"""Cloud metadata services; many of their responses are credentials."""

# Not globally reachable by IANA's registries; versions of ipaddress differ.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; some clusters use it for pods
        "192.0.0.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",
        "240.0.0.0/4",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
    )
)
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All of IPv6 that has been allocated for global unicast."""
_BROADCAST: Final = ipaddress.IPv4Address(2**32 - 1)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


def rejection_reason(address: IpAddress, *, private: bool = False, refused: Iterable[IpNetwork] = ()) -> str:
    """Return why an address must not be connected to, in a few words; "" if it is allowed."""
    for one in (address, *_inside(address)):
        if word := _reason(one, private, refused):
            return word
    return ""


def rejection_reason_of(text: str, *, private: bool = False, refused: Iterable[IpNetwork] = ()) -> str:
    """Check an address in text form, as a resolver or a socket gives it; invalid text is rejected."""
    name, _, zone = text.partition("%")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return "no address"
    if zone and not private:
        return "link-local"
    return rejection_reason(address, private=private, refused=refused)


def _reason(address: IpAddress, private: bool, refused: Iterable[IpNetwork]) -> str:
    words = (
        ("instance metadata", address in MACHINE_DATA),
        ("unspecified", address.is_unspecified),
        ("multicast", address.is_multicast),
        ("broadcast", address == _BROADCAST),
        ("loopback", not private and address.is_loopback),
        ("link-local", not private and address.is_link_local),
        ("in a refused network", not private and any(address in network for network in refused)),
        ("private or special", not private and not _is_public(address)),
    )
    return next((word for word, holds in words if holds), "")


def _is_public(address: IpAddress) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None or address in _NAT64:
            return True  # depends on the inner address, which is checked too
        if address not in _UNICAST:
            return False
    return address.is_global and not any(address in network for network in _SPECIAL)


def _inside(address: IpAddress) -> Iterator[IpAddress]:
    """Yield the IPv4 addresses that packets to an IPv6 address may reach."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    low = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.ipv4_mapped is not None or address in _NAT64:
        yield low
    if address in _COMPATIBLE and int(address) > 1:
        yield low
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
