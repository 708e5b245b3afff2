"""An API server that answers from a table, for what a real one would have to be broken for."""

import json
from typing import Any

from lamina.clients.kube.errors import ApiError


class Asked:
    """A client whose answers are written down beforehand; what is not there is a 404."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.bodies: list[Any] = []

    async def request(self, method: str, path: str, *, body: bytes | None = None, query: Any = None, **_: Any) -> bytes:
        self.bodies.append(json.loads(body) if body else None)
        answer = self.answers.get(path.rsplit("/", 1)[-1])
        if callable(answer):
            answer = answer(self.bodies[-1], query)
        if answer is None:
            raise ApiError(f"{method} {path}", 404, "NotFound", "there is none")
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()


def refused(status: int) -> ApiError:
    """An answer that is none."""
    return ApiError("GET /x", status, "Forbidden" if status == 403 else "InternalError", "no")
