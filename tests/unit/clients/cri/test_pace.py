"""How often a runtime is asked: a few questions at once after a rest, and then one by one."""

import pytest

from lamina.clients.cri.pace import Pace


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def turns(pace, clock, count):
    """When each of *count* turns came, counted from now."""
    start = clock.now
    times = []
    for _ in range(count):
        await pace.turn()
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

    assert expected == await turns(Pace(per_second, burst, clock=clock, sleep=clock.sleep), clock, 4)


async def test_a_rest_gives_back_no_more_than_one_burst():
    clock = Clock()
    pace = Pace(1, 2, clock=clock, sleep=clock.sleep)
    await turns(pace, clock, 2)
    clock.now += 1000

    assert [0, 0, 1] == await turns(pace, clock, 3)


async def test_half_a_rest_gives_back_half():
    clock = Clock()
    pace = Pace(1, 4, clock=clock, sleep=clock.sleep)
    await turns(pace, clock, 4)
    clock.now += 2

    assert [0, 0, 1] == await turns(pace, clock, 3)
