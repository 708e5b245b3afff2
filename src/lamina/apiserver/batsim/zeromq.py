"""ZeroMQ sockets of both ends of Batsim's protocol. pyzmq is optional, and imported only when a socket is made."""

from typing import Final, Literal

from lamina.model.errors import InputError
from lamina.wire.batsim.messages import LARGEST_REQUEST

RECONNECT_MILLISECONDS: Final = 20
"""How long a socket waits before it tries again to connect: a scheduler that was just started does not listen yet."""
LINGER_MILLISECONDS: Final = 1000
NOT_INSTALLED: Final = (
    "pyzmq is not installed: pip install 'lamina[batsim]', or in a checkout: "
    ".venv/bin/pip install -c constraints.txt -e '.[batsim]'"
)
SHAPE: Final = "write for example tcp://127.0.0.1:28000"


class ZeromqSocket:
    """One socket and its context."""

    def __init__(self, role: Literal["REQ", "REP"], endpoint: str, option: str) -> None:
        """Connect (REQ) or bind (REP) to *endpoint*. Raises InputError located at *option*."""
        try:
            import zmq
            import zmq.asyncio
        except ImportError:
            raise InputError.one(option, NOT_INSTALLED) from None
        self._context = zmq.asyncio.Context()
        self.socket = self._context.socket(zmq.REQ if role == "REQ" else zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MILLISECONDS)
        # A message above the limit of either end is reported; one far above it is not even read.
        self.socket.setsockopt(zmq.MAXMSGSIZE, LARGEST_REQUEST)
        try:
            if role == "REQ":
                self.socket.connect(endpoint)
            else:
                self.socket.bind(endpoint)
        except zmq.ZMQError as error:
            self.close()
            verb = "connect to" if role == "REQ" else "listen at"
            raise InputError.one(option, f"cannot {verb} {endpoint}: {error.strerror}; {SHAPE}") from None
        self.endpoint = self.socket.getsockopt_string(zmq.LAST_ENDPOINT)
        """The endpoint, with the port that a bound socket got."""

    def close(self, *, linger: bool = False) -> None:
        """Close socket and context; unsent messages are dropped, unless they *linger*: then for a second at most."""
        self.socket.close(LINGER_MILLISECONDS if linger else 0)
        self._context.term()
