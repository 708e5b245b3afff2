"""
The debug page of the QoS engine, on a port of its own: what every controller promises, and how it keeps it.

    /               the original's table, for curl and watch; for browsers a page that refreshes itself
    /controllers    the original's table
    /replicas       the original's later format: one line for each replica
    /qos.json       all figures
    /livez          the process works

It shows names of controllers and pods, so it is served on loopback unless the operator configures another address. A
page is computed from the running engine at most every `FRESH` seconds, without a lock: engine and server share one
thread.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote

from lamina.qos.engine import QosEngine
from lamina.qos.page_formats import controller_table, json_page, replica_table
from lamina.qos.qos_view import QosView, qos_view
from lamina.services.informers.clock import SteadyClock
from lamina.services.scheduler.qos.qos_html import POLICY, html_page
from lamina.serving.endpoints import from_loopback
from lamina.serving.request import HttpRequest
from lamina.serving.response import TEXT, HeaderFields, HttpResponse, text_response
from lamina.serving.routes import READING, method_not_allowed
from lamina.serving.server_limits import ServerLimits

MOST_ROWS: Final = 2000
"""Controllers, and replicas, on one page."""
FRESH: Final = 0.25
"""Seconds for which figures are used again."""
PAGE_LIMITS: Final = ServerLimits(small_body=1024, large_body=1024, large_at_once=1, newcomers_first=True)
HTML: Final = "text/html; charset=utf-8"
NO_STORE: Final[HeaderFields] = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
LOOPBACK_ONLY: Final = "the QoS page is served to loopback only; use kubectl port-forward, or --qos-listen"


class QosPage:
    """Handler of the debug page's server."""

    def __init__(self, engine: Callable[[], QosEngine], clock: SteadyClock, *, loopback_only: bool) -> None:
        """Show the engine that *engine* returns; *loopback_only* rejects requests that come from elsewhere."""
        self._engine, self._clock, self._loopback_only = engine, clock, loopback_only
        self._view: QosView | None = None
        self._computed_at = 0.0
        self._pages: Mapping[str, Callable[[HttpRequest], HttpResponse]] = {
            "/": self._negotiated,
            "/controllers": lambda _: _text(controller_table(self.view())),
            "/replicas": lambda _: _text(replica_table(self.view())),
            "/qos.json": lambda _: HttpResponse(pieces=(json_page(self.view()),), headers=NO_STORE),
            "/livez": lambda _: text_response(200, "ok"),
        }

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle a request."""
        path = unquote(request.path)
        if self._loopback_only and not from_loopback(request):
            return text_response(403, LOOPBACK_ONLY)
        page = self._pages.get(path)
        if page is None:
            return text_response(404, f"not found; available: {', '.join(self._pages)}")
        if request.method not in READING:
            return method_not_allowed(path, READING)
        return page(request)

    def view(self) -> QosView:
        """Return the figures of this moment."""
        now = self._clock.now()
        if self._view is None or not 0 <= now - self._computed_at < FRESH:
            self._view, self._computed_at = qos_view(self._engine(), now, MOST_ROWS), now
        return self._view

    def _negotiated(self, request: HttpRequest) -> HttpResponse:
        if "text/html" not in request.headers.get("accept", ""):
            return _text(controller_table(self.view()))
        headers = (*NO_STORE, ("Content-Security-Policy", POLICY))
        return HttpResponse(pieces=(html_page(self.view()),), content_type=HTML, headers=headers)


def _text(table: str) -> HttpResponse:
    return HttpResponse(pieces=(table.encode(),), content_type=TEXT, headers=NO_STORE)
