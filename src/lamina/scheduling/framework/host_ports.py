"""
Which ports of which rows pods hold.

Few pods ask for a port of their node, so this is kept by port and not by row: a pod that asks for none costs nothing, and
one that does looks up its own ports and finds the rows where they are taken. Two pods can share a port on different
addresses of a node, but not with one that took it on all of them. Written by the columns; read through `NodeView`.
"""

from collections.abc import Iterable, Iterator

from lamina.model.pod import ANY_IP, HostPort

Where = dict[int, int]
"""Row → how many pods hold the port there; more than one if somebody placed them without asking."""


class HostPorts:
    """Ports by protocol and number, then by address, then by row."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        """Start with every port free."""
        self._held: dict[tuple[str, int], dict[str, Where]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """Note that a pod on a row holds these."""
        for port in ports:
            where = self._held.setdefault((port.protocol, port.port), {}).setdefault(port.ip, {})
            where[row] = where.get(row, 0) + 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Note that a pod on a row gave these back."""
        for port in ports:
            addresses = self._held[port.protocol, port.port]
            where = addresses[port.ip]
            where[row] -= 1
            if where[row]:
                continue
            del where[row]
            if not where:
                del addresses[port.ip]
                if not addresses:
                    del self._held[port.protocol, port.port]

    def taken(self, ports: Iterable[HostPort]) -> list[int]:
        """List the rows where one of these is taken, repeats included."""
        return [row for where in self._in_the_way(ports) for row in where]

    def taken_on(self, row: int, ports: Iterable[HostPort]) -> bool:
        """Say whether one of these is taken on a row."""
        return any(row in where for where in self._in_the_way(ports))

    def _in_the_way(self, ports: Iterable[HostPort]) -> Iterator[Where]:
        for port in ports:
            for ip, where in self._held.get((port.protocol, port.port), {}).items():
                if clash(ip, port.ip):
                    yield where


def clash(one: str, other: str) -> bool:
    """Say whether a port cannot be had on both addresses."""
    return one == other or ANY_IP in (one, other)
