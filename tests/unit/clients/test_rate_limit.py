"""How many requests a second: never more than was agreed, in the order they came."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.clients.rate_limit import RateLimit
from tests.unit.services.fakes import leaping


def passes(rate: float, burst: int, arrivals: list[float]) -> list[tuple[int, float]]:
    """Who passes when; arrivals are seconds since the one before."""

    async def story() -> list[tuple[int, float]]:
        limit, loop = RateLimit(rate, burst), asyncio.get_running_loop()
        passed: list[tuple[int, float]] = []

        async def come(number: int) -> None:
            await limit.turn()
            passed.append((number, loop.time()))

        tasks = []
        for number, later in enumerate(arrivals):
            if later:
                await asyncio.sleep(later)
            tasks.append(asyncio.create_task(come(number)))
        await asyncio.gather(*tasks)
        return passed

    return leaping(story())


@given(
    st.floats(0.5, 200.0),
    st.integers(-1, 20),
    st.lists(st.one_of(st.just(0.0), st.floats(0.001, 3.0)), min_size=1, max_size=40),
)
@settings(max_examples=60)
def test_in_no_stretch_of_time_do_more_pass_than_burst_and_rate_allow(rate, burst, arrivals):
    passed = passes(rate, burst, arrivals)

    assert list(range(len(arrivals))) == [number for number, _ in passed], "first come, first served"
    times = [at for _, at in passed]
    for first, begin in enumerate(times):
        for last in range(first, len(times)):
            assert last - first + 1 <= max(burst, 1) + rate * (times[last] - begin) + 1e-6


@given(st.floats(0.5, 200.0), st.integers(1, 20), st.integers(1, 60))
@settings(max_examples=40)
def test_nobody_waits_longer_than_the_agreed_rate_makes_them(rate, burst, crowd):
    passed = passes(rate, burst, [0.0] * crowd)

    assert max(crowd - burst, 0) / rate == pytest.approx(passed[-1][1] - 1000.0, abs=1e-6)


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_without_a_rate_nobody_waits(rate):
    assert [1000.0] * 50 == [at for _, at in passes(rate, 0, [0.0] * 50)]


def test_who_stops_waiting_lets_the_others_pass_all_the_same():
    async def story() -> bool:
        limit = RateLimit(10.0, 1)
        tasks = [asyncio.create_task(limit.turn()) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return tasks[2].exception() is None

    assert leaping(story())


# ------------------------------------------------------------------------------------------------------- with a clock


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def turns(limit, clock, count):
    """When each of *count* turns came, counted from now."""
    start = clock.now
    times = []
    for _ in range(count):
        await limit.turn()
        times.append(round(clock.now - start, 6))
    return times


@pytest.mark.parametrize(
    ("per_second", "burst", "expected"),
    [
        pytest.param(1, 1, [0, 1, 2, 3], id="one a second"),
        pytest.param(1, 3, [0, 0, 0, 1], id="three at once, then one a second"),
        pytest.param(200, 1, [0, 0.005, 0.01, 0.015], id="200 a second"),
    ],
)
async def test_turns_come_at_the_pace(per_second, burst, expected):
    clock = Clock()

    assert expected == await turns(RateLimit(per_second, burst, clock=clock, sleep=clock.sleep), clock, 4)


async def test_a_rest_gives_back_no_more_than_one_burst():
    clock = Clock()
    limit = RateLimit(1, 2, clock=clock, sleep=clock.sleep)
    await turns(limit, clock, 2)
    clock.now += 1000

    assert [0, 0, 1] == await turns(limit, clock, 3)


async def test_half_a_rest_gives_back_half():
    clock = Clock()
    limit = RateLimit(1, 4, clock=clock, sleep=clock.sleep)
    await turns(limit, clock, 4)
    clock.now += 2

    assert [0, 0, 1] == await turns(limit, clock, 3)
