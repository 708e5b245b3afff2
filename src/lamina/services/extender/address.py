"""Addresses of the extender, as ADDRESS:PORT."""

from typing import Final

import msgspec

from lamina.model.plain import shown
from lamina.serving.server_limits import is_loopback

__all__ = ["HIGHEST_PORT", "LOOPBACK", "PORT", "ListenAddress", "parse_address", "parse_port"]

HIGHEST_PORT: Final = 65_535
LOOPBACK: Final = "127.0.0.1"
PORT: Final = 5401
"""Port of the first extender in all samples that run two."""


class ListenAddress(msgspec.Struct, frozen=True):
    """A host name or IP address, and a port; port 0 means any free port."""

    host: str = LOOPBACK
    port: int = PORT

    @property
    def is_loopback(self) -> bool:
        """Whether the address can be reached only from this machine or pod."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> ListenAddress:
    """Parse ADDRESS:PORT. Raises ValueError with a message for the user."""
    host, _, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    # Six digits at most: Python rejects very long numbers with an error of its own.
    if not bare or not (port.isascii() and port.isdigit()) or len(port) > 6 or int(port) > HIGHEST_PORT:
        raise ValueError(f"{shown(text)} is not ADDRESS:PORT, for example {ListenAddress()}")
    if ":" in bare and host == bare:
        raise ValueError(f"{shown(text)}; put an IPv6 address in brackets, for example [::1]:{PORT}")
    return ListenAddress(bare, int(port))


def parse_port(text: str) -> int:
    """Parse a port. Raises ValueError with a message for the user."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 6 or not 1 <= int(digits) <= HIGHEST_PORT:
        raise ValueError(f"{shown(text)} is not a port; write a number from 1 to {HIGHEST_PORT}")
    return int(digits)
