"""
Free ports of the loopback interface.

Between choosing a port and listening on it another program may take it; whoever starts a part looks for that in the
part's log and tries again with another port (`CLASH`).
"""

import random
import socket
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
CLASH: Final = "address already in use"

# Not from the range of the kernel: while a server is down, a client that keeps trying could be given the server's own
# port for its end of the connection, and then talk to itself or keep the server from coming back.
LOWEST: Final = 20_000
RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
USUAL_END: Final = 32_768
TRIES: Final = 200

# Seeded by the machine: two testbeds must not try the same ports in the same order.
DICE: Final = random.SystemRandom()


def free() -> int:
    """A port on which nobody listens right now."""
    end = kernel_range()
    for _ in range(TRIES if end > LOWEST + TRIES else 0):
        port = DICE.randrange(LOWEST, end)
        if is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


def is_free(port: int) -> bool:
    """Whether one could listen on *port*."""
    with socket.socket() as probe:
        # As servers do: connections of a server that has gone do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def listens(port: int) -> bool:
    """Whether somebody accepts connections on *port*."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def held_by(port: int, pid: int) -> bool:
    """Whether it is the process *pid* that listens on *port*, and not somebody who was quicker."""
    # The kernel's table has the address in hexadecimal, with the state (0A: listening) in column 3.
    ending = f":{port:04X}"
    rows = (line.split() for table in TABLES for line in table.read_text(encoding="ascii").splitlines()[1:])
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(ending) and row[3] == "0A"}
    try:
        return any(str(descriptor.readlink()) in sockets for descriptor in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it has just ended, or closed what it had
        return False


def kernel_range() -> int:
    """Where the ports begin that the kernel gives to clients."""
    try:
        return int(RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return USUAL_END
