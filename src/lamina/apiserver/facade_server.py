"""
HTTP in front of the façade: requests become calls of `ApiHandler`, and watches become streams.

The server listens on loopback only. It rejects requests whose Host header names another host, because a web page could
point its own name to this machine, and requests that a web page sent (Origin header). It runs on one event loop together
with everything else of a run, so no two requests are handled at the same time.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from lamina.apiserver.api_faults import ApiFaults, FaultRule
from lamina.apiserver.control_endpoints import PREFIX, ControlEndpoints
from lamina.apiserver.watch_streams import MOST_UNSENT, WatchStream, WatchStreams
from lamina.serving.http_server import HttpServer
from lamina.serving.rejections import RequestRejection
from lamina.serving.request import HttpRequest
from lamina.serving.request_dispatch import HandlerResponse, HandlerResult
from lamina.serving.response import HttpResponse, StreamingResponse
from lamina.serving.server_limits import NoServerMetrics, ServerLimits, is_loopback
from lamina.serving.tls import ServerTlsSettings
from lamina.simulator.facade.api_errors import StatusError, no_such_path
from lamina.simulator.facade.api_handler import ApiAnswer, ApiHandler
from lamina.simulator.facade.api_messages import ApiRequest, FacadeResponse, error_response

LOOPBACK: Final = "127.0.0.1"
LIMITS: Final = ServerLimits(
    header=32 * 1024,
    small_body=4 * 1024**2,
    large_body=4 * 1024**2,
    connections=12_000,
    idle_seconds=600.0,
    read_seconds=30.0,
    write_seconds=60.0,
    stream_unsent=128 * 1024**2,
)
"""
Limits of the server. A burst of events is unsent until the event loop turns, so streams may hold much.

Each connection has a buffer of twice the header limit, also while it waits in a watch: 64 KiB.
"""
LAST_ANSWERS: Final = 1.0
FOREIGN_HOST: Final = "this server answers requests to localhost only; use the address in the kubeconfig"
FOREIGN_ORIGIN: Final = "this server answers no requests of web pages; use a client that sends no Origin header"
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
REJECTED: Final = {
    400: "BadRequest",
    403: "Forbidden",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    431: "RequestHeaderFieldsTooLarge",
    503: "ServiceUnavailable",
    504: "Timeout",
}

log = logging.getLogger(__name__)

RequestObserver = Callable[[ApiRequest], None]


class FacadeServer:
    """Serves one façade at one address."""

    def __init__(
        self,
        handler: ApiHandler,
        limits: ServerLimits = LIMITS,
        *,
        before: RequestObserver | None = None,
        after: RequestObserver | None = None,
        watch_buffer: int = MOST_UNSENT,
    ) -> None:
        """
        Serve *handler*; call *before* and *after* around each request. Nothing listens before `start`.

        All watches together hold *watch_buffer* bytes at most for clients that do not read.
        """
        self._handler = handler
        self._server = HttpServer(self._handle, limits, NoServerMetrics(), rejection=_rejection)
        self._streams = WatchStreams(watch_buffer)
        self._before, self._after = before, after
        self.faults = ApiFaults()
        self.control: ControlEndpoints | None = None
        """Answers requests under ``/lamina/``; None: there are no such endpoints."""
        self.requests = 0
        """Number of requests so far."""
        self.pod_reads = 0
        """Number of lists and watches of pods so far."""
        self.scheme = "http"

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"{self.scheme}://{LOOPBACK}:{self._server.port}"

    @property
    def watches(self) -> int:
        """Number of open watches."""
        return len(self._streams)

    async def start(self, port: int = 0, tls: ServerTlsSettings | None = None) -> None:
        """Listen on loopback; port 0 means any free port. Raises InputError."""
        self.scheme = "http" if tls is None else "https"
        await self._server.start(LOOPBACK, port, tls)

    async def run(self) -> None:
        """Serve until cancelled; raises if a task of the server fails."""
        await self._server.run()

    async def stop(self) -> None:
        """End all streams, answer pending requests and stop."""
        await self._server.stop(LAST_ANSWERS)

    def close_watches(self, rule: FaultRule | None = None) -> int:
        """End all open watches, or those of *rule*; return their number. Their clients begin new ones."""
        return self._streams.end(rule)

    def _handle(self, request: HttpRequest) -> HandlerResult:
        try:
            return self._checked(request)
        except Exception as error:  # noqa: BLE001 - one failed request must not end the server
            return _failed(request.path, error)

    def _checked(self, request: HttpRequest) -> HandlerResult:
        self.requests += 1
        headers = request.headers
        if not is_loopback(_host(headers.get("host", LOOPBACK))):
            return _response(error_response(StatusError(403, "Forbidden", FOREIGN_HOST)))
        origin = headers.get("origin", "")
        if origin and not is_loopback(urlsplit(origin).hostname or "" if "://" in origin else ""):
            return _response(error_response(StatusError(403, "Forbidden", FOREIGN_ORIGIN)))
        found = ApiRequest(request.method, request.path, request.query, headers, bytes(request.body))
        if found.path.startswith(PREFIX):
            return _response(self._controlled(found))
        rules = self.faults
        rule = rules.take(found.method, found.path, watch=_is_watch(found)) if rules.rules else None
        if rule is None:
            return self._answered(found)
        if rule.delay:
            return self._delayed(found, rule)
        return _response(error_response(rule.error()))

    def _controlled(self, request: ApiRequest) -> FacadeResponse:
        try:
            if self.control is None:
                raise no_such_path()
            return self.control.answer(request)
        except StatusError as error:
            return error_response(error)

    async def _delayed(self, request: ApiRequest, rule: FaultRule) -> HandlerResponse:
        await asyncio.sleep(rule.delay)
        if rule.status:
            return _response(error_response(rule.error()))
        try:
            return self._answered(request)
        except Exception as error:  # noqa: BLE001 - as above
            return _failed(request.path, error)

    def _answered(self, request: ApiRequest) -> HandlerResponse:
        if request.method == "GET" and request.path.endswith("/pods"):
            self.pod_reads += 1
        if self._before is not None:
            self._before(request)
        shown = self._shown(self._handler.handle(request), request.path)
        if self._after is not None:
            self._after(request)
        return shown

    def _shown(self, answer: ApiAnswer, path: str) -> HandlerResponse:
        if isinstance(answer, FacadeResponse):
            return _response(answer)
        stream = WatchStream(answer, path, self._streams)
        return StreamingResponse(opened=stream.opened, closed=stream.closed, content_type="application/json")


def is_write(request: ApiRequest) -> bool:
    """Return whether a request may change something."""
    return request.method not in READS


def _is_watch(request: ApiRequest) -> bool:
    try:
        return request.parameters().get("watch", "false").lower() in {"", "1", "t", "true"}
    except StatusError:
        return False


def _response(answer: FacadeResponse) -> HttpResponse:
    return HttpResponse(answer.status, (answer.body,), answer.content_type, answer.headers)


def _failed(path: str, error: Exception) -> HttpResponse:
    """Return the response for a mistake in the façade itself, which is logged."""
    log.error("request handler failed", extra={"path": path}, exc_info=error)
    message = f"Internal error occurred: {type(error).__name__}; see the log of lamina apiserver"
    return _response(error_response(StatusError(500, "InternalError", message)))


def _rejection(found: RequestRejection) -> HttpResponse:
    """Return the rejection of a request that no handler has seen, as a Status object."""
    return _response(error_response(StatusError(found.status, REJECTED.get(found.status, "BadRequest"), found.words)))


def _host(value: str) -> str:
    """Return a Host header without its port."""
    if value.startswith("["):
        return value.partition("]")[0] + "]"
    return value.partition(":")[0]
