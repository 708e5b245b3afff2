"""A client without a network: remembers what was asked and answers as it is told to."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lamina.clients.kube.errors import ApiError


@dataclass(frozen=True)
class Request:
    """What was asked."""

    method: str
    path: str
    body: Any
    content_type: str


class ScriptedClient:
    """Answers every request by calling *answer*, which may raise."""

    def __init__(self, answer: Callable[[Request], bytes] = lambda request: b"{}") -> None:
        self.answer = answer
        self.asked: list[Request] = []
        self.sent: list[bytes | None] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
    ) -> bytes:
        request = Request(method, path, json.loads(body) if body is not None else None, content_type)
        self.asked.append(request)
        self.sent.append(body)
        await asyncio.sleep(0)
        return self.answer(request)


def refusal(status: int, message: str = "", retry_after: float | None = None) -> ApiError:
    return ApiError("asked", status, "", message, retry_after)


class Instant:
    """Time that passes only by waiting: whoever sleeps sets the clock on, and lets others have their turn."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
