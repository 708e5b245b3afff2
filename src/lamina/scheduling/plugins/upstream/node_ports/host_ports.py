"""
Node fact of NodePorts: which host ports are in use on which rows.

Few pods request host ports, so the fact is indexed by port, not by row. A pod without host ports costs nothing, and a
pod with host ports looks up its own ports. Two pods can share a port on different addresses of a node, but not with a
pod that uses it on all addresses.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from lamina.model.node import Node
from lamina.model.pod import ANY_IP, HostPort, Pod
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.node_facts import Placements

Where = dict[int, int]
"""Row → number of pods that use the port there; more than one if another scheduler ignored the conflict."""
Addresses = dict[str, Where]
PortKey = tuple[str, int]
"""Protocol and port number."""

NOWHERE: Final[Addresses] = {}


class HostPorts:
    """Ports in use, by protocol and number, then by address, then by row."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        """Start with all ports free."""
        self._held: dict[PortKey, Addresses] = {}

    @property
    def name(self) -> str:
        """Identifies the fact."""
        return "host-ports"

    def counts(self, pod: Pod) -> tuple[HostPort, ...]:
        """Return the host ports that a pod requests."""
        return pod.host_ports

    def put(self, row: int, node: Node | None) -> bool:
        """Return False: nodes do not use ports, pods do."""
        return False

    def add(self, row: int, pod: Pod) -> bool:
        """Mark a pod's ports as in use on a row."""
        for port in pod.host_ports:
            where = self._held.setdefault((port.protocol, port.port), {}).setdefault(port.ip, {})
            where[row] = where.get(row, 0) + 1
        return True

    def remove(self, row: int, pod: Pod) -> bool:
        """Release a pod's ports on a row."""
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
        """Return the ports without the pods *gone* and with the pods *there*."""
        return SupposedPorts(self, gone, there)

    def taken(self, ports: Iterable[HostPort]) -> list[int]:
        """List the rows where one of these ports is in use, with repeats."""
        return [row for where in self._in_the_way(ports) for row in where]

    def taken_on(self, row: int, ports: Iterable[HostPort]) -> bool:
        """Return whether one of these ports is in use on a row."""
        return any(row in where for where in self._in_the_way(ports))

    def conflicts(self, ports: Iterable[HostPort], height: int) -> Ints:
        """Return how many uses of ports on each row exclude one of these ports, each counted for each of them."""
        counts: Ints = np.zeros(height, dtype=np.int64)
        for where in self._in_the_way(ports):
            counts[list(where)] += list(where.values())
        return counts

    def addresses(self, key: PortKey) -> Addresses:
        """Return the addresses on which a port is in use, with their rows; read-only."""
        return self._held.get(key, NOWHERE)

    def _in_the_way(self, ports: Iterable[HostPort]) -> Iterator[Where]:
        for port in ports:
            for ip, where in self.addresses((port.protocol, port.port)).items():
                if clash(ip, port.ip):
                    yield where


class SupposedPorts(HostPorts):
    """Ports in use under a hypothesis."""

    __slots__ = ("_more", "_real")

    def __init__(self, real: HostPorts, gone: Placements, there: Placements) -> None:
        """Read *real*, without the ports of the pods *gone* and with those of the pods *there*."""
        super().__init__()
        self._real = real
        self._more: dict[PortKey, list[tuple[str, int, int]]] = {}
        """Port → (address, row, change in the number of pods that use it)."""
        for placements, more in ((gone, -1), (there, 1)):
            for row, pod in placements:
                for port in pod.host_ports:
                    self._more.setdefault((port.protocol, port.port), []).append((port.ip, row, more))

    def addresses(self, key: PortKey) -> Addresses:
        """Return the addresses on which a port would be in use, with their rows."""
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
    """Return whether a port cannot be used on both addresses at once."""
    return one == other or ANY_IP in (one, other)


def in_conflict(one: HostPort, other: HostPort) -> bool:
    """Return whether two pods of a node cannot have these ports."""
    return (one.port, one.protocol) == (other.port, other.protocol) and clash(one.ip, other.ip)
