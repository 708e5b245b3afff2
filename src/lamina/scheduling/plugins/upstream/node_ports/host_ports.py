"""
Which ports of which rows pods hold: the node fact of NodePorts.

Few pods ask for a port of their node, so this is kept by port and not by row: a pod that asks for none costs nothing, and
one that does looks up its own ports and finds the rows where they are taken. Two pods can share a port on different
addresses of a node, but not with one that took it on all of them.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from lamina.model.node import Node
from lamina.model.pod import ANY_IP, HostPort, Pod
from lamina.scheduling.state.node_facts import Placements

Where = dict[int, int]
"""Row → how many pods hold the port there; more than one if another scheduler placed them without asking."""
Addresses = dict[str, Where]
PortKey = tuple[str, int]
"""A protocol and a number."""

NOWHERE: Final[Addresses] = {}


class HostPorts:
    """Ports by protocol and number, then by address, then by row."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        """Start with every port free."""
        self._held: dict[PortKey, Addresses] = {}

    @property
    def name(self) -> str:
        """By what the fact is known."""
        return "host-ports"

    def counts(self, pod: Pod) -> tuple[HostPort, ...]:
        """Return the ports of the node that a pod asks for."""
        return pod.host_ports

    def put(self, row: int, node: Node | None) -> bool:
        """Ports are taken by pods, not by nodes."""
        return False

    def add(self, row: int, pod: Pod) -> bool:
        """Note that a pod on a row holds its ports."""
        for port in pod.host_ports:
            where = self._held.setdefault((port.protocol, port.port), {}).setdefault(port.ip, {})
            where[row] = where.get(row, 0) + 1
        return True

    def remove(self, row: int, pod: Pod) -> bool:
        """Note that a pod on a row gave its ports back."""
        for port in pod.host_ports:
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
        return True

    def as_if(self, gone: Placements, there: Placements) -> "HostPorts":
        """Answer as if some pods were gone and others were there."""
        return SupposedPorts(self, gone, there)

    def taken(self, ports: Iterable[HostPort]) -> list[int]:
        """List the rows where one of these is taken, repeats included."""
        return [row for where in self._in_the_way(ports) for row in where]

    def taken_on(self, row: int, ports: Iterable[HostPort]) -> bool:
        """Say whether one of these is taken on a row."""
        return any(row in where for where in self._in_the_way(ports))

    def addresses(self, key: PortKey) -> Addresses:
        """Return the addresses on which a port is taken, and where; to be read only."""
        return self._held.get(key, NOWHERE)

    def _in_the_way(self, ports: Iterable[HostPort]) -> Iterator[Where]:
        for port in ports:
            for ip, where in self.addresses((port.protocol, port.port)).items():
                if clash(ip, port.ip):
                    yield where


class SupposedPorts(HostPorts):
    """The ports as they would be: those of the pods in question are counted apart."""

    __slots__ = ("_more", "_real")

    def __init__(self, real: HostPorts, gone: Placements, there: Placements) -> None:
        """Look at *real*; take away what pods that would be *gone* hold, and add what those *there* would."""
        super().__init__()
        self._real = real
        self._more: dict[PortKey, list[tuple[str, int, int]]] = {}
        """For a port: address, row, and how many pods more (or fewer) would hold it."""
        for placements, more in ((gone, -1), (there, 1)):
            for row, pod in placements:
                for port in pod.host_ports:
                    self._more.setdefault((port.protocol, port.port), []).append((port.ip, row, more))

    def addresses(self, key: PortKey) -> Addresses:
        """Return the addresses on which a port would be taken, and where."""
        real = self._real.addresses(key)
        if key not in self._more:
            return real
        supposed = {ip: dict(where) for ip, where in real.items()}
        for ip, row, more in self._more[key]:
            where = supposed.setdefault(ip, {})
            where[row] = where.get(row, 0) + more
            if not where[row]:
                del where[row]
        return supposed


def clash(one: str, other: str) -> bool:
    """Say whether a port cannot be had on both addresses."""
    return one == other or ANY_IP in (one, other)
