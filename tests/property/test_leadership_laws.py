"""
Of all that contend for a lease, at most one may act at any moment: whatever is slow, stopped, lost or down.

Time is virtual. A process that is stopped does nothing, not even notice that time passes; a request may be answered
late, never, or be carried out though its answer is lost.
"""

import asyncio
import json
import random
import selectors
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.clients.kube.backoff import TimeSource
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.leader_election import LeaderElector, LeaseTimings

FAULTS = 120.0
"""Seconds in which faults begin; they last for half as long at most."""
LONG = FAULTS * 1.5 + 40.0
"""When the story ends: 40 s after the last fault, which is a term, a request that is slow and two waits."""
LOOK = 0.2
TERMS = LeaseTimings()


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time jumps to whatever is next."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.now


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self.loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self.loop.now += timeout
        return super().select(0)


@dataclass(frozen=True)
class Fault:
    """Something that happens for a while: to one contender, or to all if *who* is 3."""

    who: int
    kind: str
    begin: float
    length: float

    def holds(self, who: int, kind: str, now: float) -> bool:
        return self.kind == kind and self.who in (who, 3) and self.begin <= now < self.begin + self.length


faults = st.builds(
    Fault,
    st.integers(0, 3),
    st.sampled_from(["stopped", "down", "slow", "lost"]),
    st.floats(0, FAULTS),
    st.floats(0.5, FAULTS / 2),
)


class World:
    """One lease, three contenders, and what happens to them."""

    def __init__(self, loop: VirtualLoop, script: list[Fault], seed: int) -> None:
        self.loop, self.script = loop, script
        self.lease: dict[str, object] | None = None
        self.version = 0
        self.contenders = [Process(self, number, seed) for number in range(3)]
        self.acted = [0, 0, 0]

    def holds(self, who: int, kind: str) -> bool:
        return any(fault.holds(who, kind, self.loop.now) for fault in self.script)

    def answer(self, method: str, body: bytes | None) -> bytes:
        if method == "GET" or (method == "PUT" and self.lease is None):
            if self.lease is None:
                raise ApiError(method, 404)
            return json.dumps(self.lease).encode()
        new = json.loads(body or b"")
        if method == "POST" and self.lease is not None:
            raise ApiError(method, 409)
        if method == "PUT" and new["metadata"]["resourceVersion"] != str(self.version):
            raise ApiError(method, 409)
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        self.lease = new
        return json.dumps(new).encode()

    async def watch(self) -> None:
        """Look again and again at who would act."""
        acting = []
        while self.loop.now < LONG:
            acting = [one.number for one in self.contenders if not one.is_stopped and one.leadership.may_act()]
            assert len(acting) <= 1, f"{acting} at {self.loop.now}"
            for number in acting:
                self.acted[number] += 1
            await asyncio.sleep(LOOK)
        assert acting, "the faults are over, and somebody has to act"


class Process:
    """A contender, its clock and its connection."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        self.world, self.number = world, number
        self.dice = random.Random(seed * 3 + number)
        timing = TimeSource(lambda: world.loop.now, self.sleep, self.dice)
        self.leadership = LeaderElector(
            self, "ns", "name", f"c{number}", terms=TERMS, timing=timing, wall=lambda: int((world.loop.now + number * 3600) * 1e9)
        )  # fmt: skip

    @property
    def is_stopped(self) -> bool:
        return self.world.holds(self.number, "stopped")

    async def go_on(self) -> None:
        while self.is_stopped:
            await asyncio.sleep(0.05)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.go_on()

    async def request(self, method, path, *, query=None, body=None, content_type="", timeout=30.0) -> bytes:
        """Send a request that takes its time there and back."""
        try:
            return await self.exchange(method, body, timeout)
        finally:
            # Whatever became of it, a process that is stopped hears of it later.
            await self.go_on()

    async def exchange(self, method: str, body: bytes | None, timeout: float) -> bytes:
        slow = 4.0 if self.world.holds(self.number, "slow") else 0.02
        try:
            async with asyncio.timeout(timeout):
                await asyncio.sleep(self.dice.uniform(0, slow))
                if self.world.holds(self.number, "down"):
                    raise UnreachableError(method, "connection refused")
                answer = self.world.answer(method, body)
                await asyncio.sleep(self.dice.uniform(0, slow))
                if self.world.holds(self.number, "lost"):
                    await asyncio.sleep(timeout)
                return answer
        except TimeoutError:
            raise UnreachableError(method, "timed out") from None


def lived(script: list[Fault], seed: int) -> World:
    """Let it all happen."""
    loop = VirtualLoop()
    try:
        world = World(loop, script, seed)

        async def story() -> None:
            running = [asyncio.create_task(one.leadership.run(lambda leads: None)) for one in world.contenders]
            await world.watch()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

        loop.run_until_complete(story())
        return world
    finally:
        loop.close()


@settings(max_examples=40)
@given(st.lists(faults, max_size=8), st.integers(0, 1000))
def test_never_two_of_them_may_act_and_after_all_faults_one_does(script, seed):
    world = lived(script, seed)

    assert sum(world.acted) > 0


def test_without_faults_one_leads_all_the_time():
    """Five looks a second, the first of them before anybody has been answered."""
    world = lived([], 1)

    assert [0, 0] == sorted(world.acted)[:2]
    assert max(world.acted) >= LONG / LOOK - 5


def test_a_leader_that_is_stopped_again_and_again_is_replaced():
    script = [Fault(who, "stopped", 20.0 + 40 * who, 30.0) for who in range(3)]

    assert [] == [who for who, count in enumerate(lived(script, 1).acted) if count == 0][1:]
