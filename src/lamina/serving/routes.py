"""Handler of exact paths: GET and POST handlers in two tables, and the responses to all other requests."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from lamina.serving.request import Body, HttpRequest
from lamina.serving.request_dispatch import OTHER, HandlerResult
from lamina.serving.response import HttpResponse, text_response

READING: Final = ("GET", "HEAD")

PostHandler = Callable[[Body], HandlerResult]
"""Handles a request body."""
GetHandler = Callable[[], HandlerResult]


def method_not_allowed(path: str, allowed: Sequence[str]) -> HttpResponse:
    """Return the response to a method that *path* does not accept."""
    methods = ", ".join(allowed)
    return text_response(405, f"{path} accepts {methods} only", (("Allow", methods),))


class Routes(msgspec.Struct):
    """Handlers by path; itself the handler of a server."""

    posts: Mapping[str, PostHandler]
    gets: Mapping[str, GetHandler]

    def __call__(self, request: HttpRequest) -> HandlerResult:
        """Call the handler of the request's path; return 404 or 405 if there is none."""
        method, path = request.method, request.path
        if method == "POST" and path in self.posts:
            return self.posts[path](request.body)
        if method in READING and path in self.gets:
            return self.gets[path]()
        allowed = self.allowed(path)
        if allowed:
            return method_not_allowed(path, allowed)
        return text_response(404, f"not found; available: {self.names()}")

    def label(self, method: str, path: str) -> str:
        """Return the metric label of a request: its path if it is a route."""
        return path if path in self.posts or path in self.gets else OTHER

    def allowed(self, path: str) -> list[str]:
        """Return the methods that *path* accepts."""
        return [*READING] * (path in self.gets) + ["POST"] * (path in self.posts)

    def names(self) -> str:
        """Return all routes in one line."""
        return ", ".join(
            [f"GET {path}" for path in sorted(self.gets)] + [f"POST {path}" for path in sorted(self.posts)]
        )
