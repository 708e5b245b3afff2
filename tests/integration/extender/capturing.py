"""
An extender that keeps what kube-scheduler sent, and answers as the pod in question asks it to.

Read and written with the product's codec; the HTTP server is the standard library's. A pod says what it wants in
annotations: ``refuse``, ``refuse-for-good``, ``spare`` and ``prefer`` name nodes, ``break`` asks for an error.
"""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

import msgspec

from lamina.model.pod import Pod
from lamina.wire.extender.arguments import decode_extender_args
from lamina.wire.extender.preemption_arguments import decode_preemption_args
from lamina.wire.extender.results import (
    encode_filter_error,
    encode_filter_result,
    encode_preemption_result,
    encode_priority_list,
)

REFUSED: Final = "node(s) were too hot"
REFUSED_FOR_GOOD: Final = "node(s) were painted green"
BROKEN: Final = "cannot read ExtenderArgs: the pod asked for it"


class Captured(msgspec.Struct, frozen=True):
    """A question and its answer."""

    verb: str
    body: bytes
    answer: bytes


class CapturingExtender:
    """The server; one for each scheduler, because extenders are not told who asks."""

    def __init__(self) -> None:
        self.calls: list[Captured] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def entry(self, *, names: bool) -> dict[str, Any]:
        """Return what stands under ``extenders`` in a scheduler's configuration; *names*: nodes are sent by name."""
        return {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_port}/scheduler",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "preemptVerb": "preempt",
            # More than all that the scheduler's own plugins can give together.
            "weight": 100,
            "nodeCacheCapable": names,
        }

    def about(self, verb: str, pod: str) -> list[Captured]:
        """List the calls for a verb about a pod."""
        wanted = f'"name":"{pod}"'.encode()
        return [call for call in self.calls if call.verb == verb and wanted in call.body]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        calls = self.calls

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                verb = self.path.removeprefix("/scheduler/")
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = ANSWERS[verb](body)
                calls.append(Captured(verb, body, answer))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def _named(pod: Pod, key: str) -> list[str]:
    return [name for name in pod.annotations.get(key, "").split(",") if name]


def _filter(body: bytes) -> bytes:
    asked = decode_extender_args(body)
    if "break" in asked.pod.annotations:
        return encode_filter_error(BROKEN)
    failed = dict.fromkeys(_named(asked.pod, "refuse"), REFUSED)
    unresolvable = dict.fromkeys(_named(asked.pod, "refuse-for-good"), REFUSED_FOR_GOOD)
    return b"".join(encode_filter_result(asked, failed, unresolvable))


def _prioritize(body: bytes) -> bytes:
    asked = decode_extender_args(body)
    liked = _named(asked.pod, "prefer")
    return encode_priority_list(asked.names, [10 if name in liked else 3 for name in asked.names])


def _preempt(body: bytes) -> bytes:
    asked = decode_preemption_args(body)
    spared = _named(asked.pod, "spare")
    return encode_preemption_result({node: those for node, those in asked.victims.items() if node not in spared})


ANSWERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "filter": _filter,
    "prioritize": _prioritize,
    "preempt": _preempt,
}
