"""
HTTP endpoints that every service has, for probes, scrapers and operators.

    /livez, /healthz    the process works
    /readyz             the caches are synced
    /version            the program's version
    /metrics            Prometheus
    /debug/...          the service's own, for operators

Debug endpoints contain names of pods and nodes, so they are served to loopback only; `kubectl port-forward` uses
loopback.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Final
from urllib.parse import unquote

from lamina.model.errors import LaminaError
from lamina.serving.request import HttpRequest
from lamina.serving.request_dispatch import HandlerResponse, HandlerResult
from lamina.serving.response import HttpResponse, StreamingResponse, text_response
from lamina.serving.routes import READING, GetHandler, Routes, method_not_allowed
from lamina.serving.server_limits import is_loopback

DEBUG: Final = "/debug/"
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LOOPBACK_ONLY: Final = "debug endpoints are served to loopback only; use kubectl port-forward"

DebugHandler = Callable[[str], HandlerResult]
"""Handles GET of a debug endpoint; gets the part of the path behind the endpoint's name."""


class ServiceEndpoints:
    """Handler of a service's endpoints."""

    def __init__(
        self,
        *,
        unsynced: Callable[[], Sequence[str]],
        exposition: Callable[[], bytes],
        about: Mapping[str, object] | None = None,
        debug: Mapping[str, DebugHandler] | None = None,
    ) -> None:
        """
        Serve these.

        *unsynced* returns the resources that are not synced, *exposition* the metrics. *about* are more fields of
        /version. *debug* has handlers by path below /debug/; a path that ends with a slash includes all paths below it.
        """
        self._unsynced, self._exposition = unsynced, exposition
        self._version = json.dumps({"version": version("lamina"), **(about or {})}).encode() + b"\n"
        self._debug = debug or {}
        self._routes = Routes(posts={}, gets=self.gets())

    def gets(self) -> dict[str, GetHandler]:
        """Return the handlers of the endpoints that every client may read."""
        return {
            "/version": lambda: HttpResponse(pieces=(self._version,)),
            "/livez": self.livez,
            "/healthz": self.livez,
            "/readyz": self.readyz,
            "/metrics": lambda: HttpResponse(pieces=(self._exposition(),), content_type=METRICS_TYPE),
        }

    def __call__(self, request: HttpRequest) -> HandlerResult:
        """Handle a request."""
        path = unquote(request.path)
        if not self._debug or not path.startswith(DEBUG):
            return self._routes(request)
        if not from_loopback(request):
            return text_response(403, LOOPBACK_ONLY)
        return self._handle_debug(request.method, path)

    def livez(self) -> HttpResponse:
        """Return 200: the event loop runs. A part that fails ends the process, so there is nothing else to check."""
        return text_response(200, "ok")

    def readyz(self) -> HttpResponse:
        """Return 200 if the caches are synced, else 503 with the missing resources."""
        unsynced = self._unsynced()
        if unsynced:
            return text_response(503, f"not everything was seen yet: {', '.join(unsynced)}")
        return text_response(200, "ok")

    def _handle_debug(self, method: str, path: str) -> HandlerResult:
        for name, handler in self._debug.items():
            if path == name or (name.endswith("/") and path.startswith(name)):
                if method not in READING:
                    return method_not_allowed(path, READING)
                try:
                    result = handler(path.removeprefix(name))
                except LaminaError as error:
                    return text_response(502, str(error))
                return result if isinstance(result, HttpResponse | StreamingResponse) else _awaited(result)
        return text_response(404, f"not found; available: {', '.join(sorted(self._debug))}")


async def _awaited(result: Awaitable[HandlerResponse]) -> HandlerResponse:
    """Return a failure of another system as one line."""
    try:
        return await result
    except LaminaError as error:
        return text_response(502, str(error))


def from_loopback(request: HttpRequest) -> bool:
    """
    Return whether the client is on this machine and asked for this machine.

    The Host header is checked too: a web page could point its own name to 127.0.0.1 (DNS rebinding).
    """
    return is_loopback(request.peer) and is_loopback(_host_name(request.headers.get("host", "")))


def _host_name(host: str) -> str:
    """Return a Host header without its port."""
    name, _, port = host.rpartition(":")
    return name if port.isdigit() and not host.endswith("]") else host
