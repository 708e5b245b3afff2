"""An API server that follows a script, a clock that stands still, and an event loop on which waiting takes no time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.decision import Decision, NodeVerdict, PluginScore
from lamina.model.locality_explanation import LocalityExplanation, Savings
from lamina.services.informers.clock import SteadyClock

T = TypeVar("T")

LOST = UnreachableError("POST binding", "the connection was reset")


def refused(status: int, message: str = "no", retry_after: float | None = None) -> ApiError:
    """What the API server says when it says no."""
    return ApiError("POST binding", status, "Reason", message, retry_after)


# ----------------------------------------------------------------------------------------------------------------- time


class StillClock(SteadyClock):
    """A clock that is set on by hand."""

    def __init__(self, now: float = 1000.0) -> None:
        self.at = now

    def now(self) -> float:
        return self.at


class LoopClock(SteadyClock):
    """The time of the event loop that runs."""

    def __init__(self) -> None:
        """Start when the loop does."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()


class _Leaping(selectors.DefaultSelector):
    loop: "LeapingLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits for something that never comes")
        self.loop.leapt += timeout
        return super().select(0)


class LeapingLoop(asyncio.SelectorEventLoop):
    """Leaps to the next moment somebody waits for, as soon as nobody has anything to do."""

    def __init__(self) -> None:
        self.leapt = 1000.0
        selector = _Leaping()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.leapt


def leaping(story: Coroutine[Any, Any, T]) -> T:
    """Run something that waits, without waiting; real connections do not work here."""
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        return runner.run(story)


async def breathe(times: int = 20) -> None:
    """Let everybody else go on for a bit."""
    for _ in range(times):
        await asyncio.sleep(0)


# ----------------------------------------------------------------------------------------------------------- API server


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    at: float

    @property
    def short(self) -> str:
        """The verb, and what the path ends in."""
        return f"{self.method} {self.path.rpartition('/')[2]}"


Answer = bytes | BaseException


class ScriptedClient:
    """Answers one request after the other as the script says, and then always the same."""

    def __init__(self, *script: Answer, then: Answer = b"{}", pause: float = 0.0) -> None:
        self.script = list(script)
        self.then = then
        self.pause = pause
        self.asked: list[Asked] = []
        self.underway = self.most_underway = 0
        self.before: Callable[[Asked], object] = lambda _: None

    @property
    def short(self) -> list[str]:
        """What was asked, in short."""
        return [one.short for one in self.asked]

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
        limit: int = 0,
    ) -> bytes:
        asked = Asked(method, path, dict(query or {}), body or b"", asyncio.get_running_loop().time())
        self.asked.append(asked)
        self.underway += 1
        self.most_underway = max(self.most_underway, self.underway)
        try:
            await asyncio.sleep(self.pause)
            self.before(asked)
            answer = self.script.pop(0) if self.script else self.then
            if isinstance(answer, BaseException):
                raise answer
            return answer
        finally:
            self.underway -= 1


# ------------------------------------------------------------------------------------------------------------ decisions


def a_decision(
    pod: str = "default/p1",
    node: str = "n1",
    *,
    outcome: str = "placed",
    message: str = "",
    plugins: Iterable[str] = ("LayerLocality",),
    runner_up: str = "",
    saved: float | None = None,
    attempt: int = 1,
    verdicts: int = 0,
    profile: str = "lamina",
) -> Decision:
    """A decision, as told by nobody in particular."""
    scores = tuple(PluginScore(plugin, 80, 2) for plugin in plugins)
    chosen = NodeVerdict(node, 160 * len(scores), scores) if outcome == "placed" else None
    story = None
    if saved is not None:
        story = LocalityExplanation(
            layers=(),
            seconds=1.5,
            download=1000,
            against_mean=Savings(saved, 500),
            against_runner_up=Savings(saved, -500),
        )
    return Decision(
        pod=pod,
        uid=pod,
        at=1234.5678,
        attempt=attempt,
        profile=profile,
        outcome=outcome,  # type: ignore[arg-type]
        nodes=3,
        feasible=2,
        chosen=chosen,
        runner_up=NodeVerdict(runner_up, 100) if runner_up else None,
        tied=1,
        message=message,
        locality=story,
        verdicts=(NodeVerdict("n", 1),) * verdicts,
    )
