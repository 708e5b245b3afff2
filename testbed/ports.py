"""
Free ports of the loopback interface.

Another program may take a port between choosing it and listening on it. The starter of a part looks for `CLASH` in the
part's log and tries again with another port.
"""

import random
import socket
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
CLASH: Final = "address already in use"

# Not from the kernel's ephemeral range: while a server is down, a client that retries could be given the server's own
# port for its end of the connection, and then talk to itself or keep the server from coming back.
LOWEST: Final = 20_000
RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
USUAL_END: Final = 32_768
TRIES: Final = 200

# Seeded by the operating system: two testbeds must not try the same ports in the same order.
DICE: Final = random.SystemRandom()


def free() -> int:
    """Return a port on which no process listens."""
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
    """Return whether a server could listen on *port*."""
    with socket.socket() as probe:
        # As servers do: connections of a previous server do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def listens(port: int) -> bool:
    """Return whether a process accepts connections on *port*."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def held_by(port: int, pid: int) -> bool:
    """Return whether the process *pid*, and no other, listens on *port*."""
    # The kernel's table has the address in hexadecimal, with the state (0A: listening) in column 3.
    ending = f":{port:04X}"
    rows = (line.split() for table in TABLES for line in table.read_text(encoding="ascii").splitlines()[1:])
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(ending) and row[3] == "0A"}
    try:
        return any(str(descriptor.readlink()) in sockets for descriptor in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # the process has ended, or closed the descriptor
        return False


def kernel_range() -> int:
    """Return the first port of the kernel's ephemeral range."""
    try:
        return int(RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return USUAL_END
