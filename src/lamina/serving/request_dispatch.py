"""Dispatch of requests to the application's handler, with a response for its failures."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from lamina.serving.request import HttpRequest
from lamina.serving.response import HttpResponse, StreamingResponse, header_lines, text_response

FAILED: Final = "the server failed on this request; see its log"
OTHER: Final = "other"
"""Label of all requests that have no label of their own."""

HandlerResponse = HttpResponse | StreamingResponse
HandlerResult = HandlerResponse | Awaitable[HandlerResponse]
Handler = Callable[[HttpRequest], HandlerResult]
"""
Handles one request. It must be quick, because it blocks the event loop, and return errors instead of raising.

A handler that has to wait returns an awaitable, such as a coroutine or a future. It is cancelled if the client
disconnects, and if it takes longer than `ServerLimits.handler_seconds`.
"""
RequestLabel = Callable[[str, str], str]
"""Returns the metric label for a method and a path. The number of labels must be bounded: clients choose both."""

R = TypeVar("R", HttpResponse, StreamingResponse)

log = logging.getLogger(__name__)


def same_label(_method: str, _path: str) -> str:
    """Return the same label for all requests."""
    return OTHER


def dispatch(handler: Handler, request: HttpRequest) -> HandlerResult:
    """Return the handler's result, or the response to its failure."""
    try:
        return handler(request)
    except Exception:  # one failed request must not end the server
        log.exception("request handler failed", extra={"path": request.path})
        return text_response(500, FAILED)


def awaited_response(done: asyncio.Future[HandlerResponse], path: str) -> HandlerResponse:
    """Return the result of an awaited handler, or the response to its failure."""
    try:
        return done.result()
    except (Exception, asyncio.CancelledError):  # as above; a handler may also have been cancelled by the application
        log.exception("request handler failed", extra={"path": path})
        return text_response(500, FAILED)


def checked_headers(reply: R, path: str) -> tuple[R | HttpResponse, str]:
    """Return a response and the lines of its headers; the response to a failure if they are not valid."""
    try:
        return reply, header_lines(reply.headers)
    except ValueError:
        log.exception("request handler failed", extra={"path": path})
        return text_response(500, FAILED), ""
