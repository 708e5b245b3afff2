"""Which handler a request is for; and words for those that are for none, or for one that breaks."""

import logging
from typing import Final

from lamina.services.extender.http.request_head import RequestHead
from lamina.services.extender.http.response import Body, HttpResponse, Routes, text_response

OTHER: Final = "other"
"""Stands for every path that is no route."""
FAILED: Final = "the server failed on this request; its log says why"

log = logging.getLogger(__name__)


def dispatch(routes: Routes, head: RequestHead, body: Body) -> tuple[HttpResponse, str]:
    """Return an answer, and lines for its head."""
    try:
        if head.method == "POST" and head.path in routes.posts:
            return routes.posts[head.path](body), ""
        if head.method in {"GET", "HEAD"} and head.path in routes.gets:
            return routes.gets[head.path](), ""
    except Exception:  # one request that cannot be answered must not take the others with it
        log.exception("a handler failed", extra={"path": head.path})
        return text_response(500, FAILED), ""
    allowed = ", ".join(routes.allowed(head.path))
    if allowed:
        return text_response(405, f"{head.path} answers to {allowed} only"), f"Allow: {allowed}\r\n"
    return text_response(404, f"there is nothing here; there is: {routes.names()}"), ""


def route_label(routes: Routes, head: RequestHead) -> str:
    """Name the route a request is counted under."""
    return head.path if head.path in routes.posts or head.path in routes.gets else OTHER
