"""
Somebody between kube-scheduler and an extender who does not always pass questions on.

    with Between(extender.port) as between:
        between.manner = GARBAGE

Whatever it does, it is an HTTP server that somebody could have put there: a proxy, or another program on the port.
"""

import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

PASS: Final = "pass"
SLOW: Final = "slow"
"""Every question is passed on when nobody waits for an answer any more."""
GARBAGE: Final = "garbage"
"""What is answered is no JSON."""
OTHER: Final = "other"
"""What is answered is JSON, and not what was asked for."""
ERROR: Final = "error"
"""What is answered is a status nobody expects."""
CUT: Final = "cut"
"""The connection ends in the middle of an answer."""

LATE: Final = 4.0
"""Longer than a scheduler with a time-out of one second waits for all verbs of an agent, one after the other."""
ANSWERS: Final = {
    GARBAGE: (200, b"\x00\xff<html>it works</html>"),
    OTHER: (200, b'{"Score": "7.5", "NodeNames": 7, "Host": ["a"]}'),
    ERROR: (502, b"bad gateway"),
    CUT: (200, b'[{"Host":"a","Sco'),
}


class Between:
    """Listens until the block ends; *manner* may be changed at any time."""

    def __init__(self, port: int, manner: str = PASS) -> None:
        """Pass on to *port* on this machine."""
        self.manner = manner
        self.asked = 0
        """Questions that were not simply passed on."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.answer(self, port)

            def log_message(self, *_: Any) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="between", daemon=True)

    @property
    def prefix(self) -> str:
        """What a scheduler is told."""
        return f"http://127.0.0.1:{self._server.server_port}/scheduler"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, port: int) -> None:
        """Answer one question."""
        body = request.rfile.read(int(request.headers["Content-Length"]))
        manner = self.manner
        self.asked += manner != PASS
        if manner == SLOW:
            time.sleep(LATE)
        status, answer = ANSWERS.get(manner) or passed_on(request.path, body, port)
        try:
            request.send_response(status)
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(answer) + (1000 if manner == CUT else 0)))
            request.end_headers()
            request.wfile.write(answer)
        except OSError:
            # Whoever asked has given up.
            request.close_connection = True
        if manner == CUT:
            request.close_connection = True


def passed_on(path: str, body: bytes, port: int) -> tuple[int, bytes]:
    """Ask the extender, and return what it says."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10.0)
    try:
        connection.request("POST", path, body=body)
        response = connection.getresponse()
        return response.status, response.read()
    except OSError:
        return 502, b"nobody there"
    finally:
        connection.close()
