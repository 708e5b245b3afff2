"""Listening sockets of a host name or address; a name such as localhost can have an IPv4 and an IPv6 address."""

import asyncio
import errno
import socket
from typing import Final

from lamina.model.errors import InputError, Mistake

BACKLOG: Final = 128


class ListenError(InputError):
    """No socket could be opened at an address."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        """Name the address and the reason."""
        super().__init__([Mistake(f"{host}:{port}", f"cannot listen: {reason}; try another address or port")])
        self.reason = reason


async def open_sockets(host: str, port: int) -> list[socket.socket]:
    """
    Listen at every address of *host*, all with the same port; port 0 means any free port. Raises `ListenError`.

    Addresses that this machine does not have are left out if there is another one: where IPv6 is switched off,
    localhost may still have an IPv6 address.
    """
    opened: list[socket.socket] = []
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        addresses = list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))
        for number, (family, address) in enumerate(addresses, 1):
            try:
                opened.append(_open_socket(family, address, port, alone=len(addresses) == 1))
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL or (number == len(addresses) and not opened):
                    raise
            else:
                port = opened[0].getsockname()[1]
    except (OSError, UnicodeError) as error:
        for one in opened:
            one.close()
        reason = getattr(error, "strerror", None) or (str(error) if isinstance(error, UnicodeError) else "")
        raise ListenError(host, port, reason or type(error).__name__) from None
    return opened


def _open_socket(family: int, address: str, port: int, *, alone: bool) -> socket.socket:
    # Beside a socket for IPv4, one for IPv6 must not accept IPv4 too.
    both = alone and family == socket.AF_INET6 and address == "::" and socket.has_dualstack_ipv6()
    opened = socket.create_server((address, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    opened.setblocking(False)
    return opened
