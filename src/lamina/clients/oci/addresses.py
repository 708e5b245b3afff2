"""
Which addresses may be connected to.

Image names are written by whoever may create a pod, and names of hosts mean what their owners say. So an address is
judged, never a name, and exactly the address that was judged is connected to.

    never                 unspecified, multicast, broadcast, reserved; where clouds answer machines about themselves
    with `private` only   loopback, link-local, private, shared (CGNAT), special; networks the operator refuses
    an address inside     IPv4-mapped, NAT64, 6to4, Teredo: both it and what is inside are judged

Lists of special addresses: IANA's registries for IPv4 and IPv6, as Python's ipaddress has them, plus those below.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

MACHINE_DATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, Google and most others
        "169.254.170.2",  # AWS: containers
        "169.254.170.23",  # AWS: identities of pods
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",  # Google
        "168.63.129.16",  # Azure: a public number, and answered by every machine's own host
        "169.254.0.23",  # Tencent
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
    )
)
"""Where machines are told about themselves; many of the answers are credentials."""

# Not "global" in the sense of the registries, whatever a version of ipaddress says.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # shared by providers; clusters use it for pods
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
"""All that was ever given out of IPv6 to be reached from everywhere."""
_BROADCAST: Final = ipaddress.IPv4Address(2**32 - 1)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


def judge(address: IpAddress, *, private: bool = False, refused: Iterable[IpNetwork] = ()) -> str:
    """Say in a word why an address must not be connected to; empty when it may be."""
    for one in (address, *_inside(address)):
        if word := _judge(one, private, refused):
            return word
    return ""


def judge_text(text: str, *, private: bool = False, refused: Iterable[IpNetwork] = ()) -> str:
    """Judge an address as a resolver or a socket has it; what is no address is refused."""
    name, _, zone = text.partition("%")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return "no address"
    if zone and not private:
        return "link-local"
    return judge(address, private=private, refused=refused)


def _judge(address: IpAddress, private: bool, refused: Iterable[IpNetwork]) -> str:
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
            return True  # as good as the address inside, which is judged as well
        if address not in _UNICAST:
            return False
    return address.is_global and not any(address in network for network in _SPECIAL)


def _inside(address: IpAddress) -> Iterator[IpAddress]:
    """Name the IPv4 addresses that packets to an IPv6 address may end up at."""
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
