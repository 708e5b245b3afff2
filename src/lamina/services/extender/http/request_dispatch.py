"""Dispatch of requests to handlers, with responses for unknown paths and for failures."""

import logging
from typing import Final

from lamina.services.extender.http.request_head import RequestHead
from lamina.services.extender.http.response import Body, HttpResponse, Routes, text_response

OTHER: Final = "other"
"""Label for all paths without a route."""
FAILED: Final = "the server failed on this request; see its log"

log = logging.getLogger(__name__)


def dispatch(routes: Routes, head: RequestHead, body: Body) -> tuple[HttpResponse, str]:
    """Return the response, and additional header lines."""
    try:
        if head.method == "POST" and head.path in routes.posts:
            return routes.posts[head.path](body), ""
        if head.method in {"GET", "HEAD"} and head.path in routes.gets:
            return routes.gets[head.path](), ""
    except Exception:  # one failed request must not end the server
        log.exception("request handler failed", extra={"path": head.path})
        return text_response(500, FAILED), ""
    allowed = ", ".join(routes.allowed(head.path))
    if allowed:
        return text_response(405, f"{head.path} accepts {allowed} only"), f"Allow: {allowed}\r\n"
    return text_response(404, f"not found; available: {routes.names()}"), ""


def route_label(routes: Routes, head: RequestHead) -> str:
    """Return the metric label of a request's route."""
    return head.path if head.path in routes.posts or head.path in routes.gets else OTHER
