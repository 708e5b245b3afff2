"""Waits after failures, and the pace of attempts."""

import random

import pytest

from lamina.clients.kube.backoff import ATTEMPTS, HEALTHY, WINDOW, AttemptRateLimit, RetryBackoff, TimeSource
from tests.unit.clients.kube.mirrored import Hands


class Highest(random.Random):
    """Dice that always show the most."""

    def uniform(self, a: float, b: float) -> float:
        return b


def highest(hands: Hands) -> TimeSource:
    return TimeSource(hands.clock, hands.sleep, Highest())


def test_waits_double_from_less_than_a_second_to_half_a_minute():
    backoff = RetryBackoff(highest(Hands()))

    assert [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] == [backoff.after_failure() for _ in range(8)]


def test_a_wait_is_spread_over_its_whole_length():
    hands = Hands()
    first = [RetryBackoff(hands.timing(seed)).after_failure() for seed in range(400)]

    assert min(first) < 0.05
    assert 0.75 < max(first) <= 0.8
    assert 0.4 == pytest.approx(sum(first) / len(first), abs=0.05)


@pytest.mark.parametrize(
    ("pause", "expected"),
    [
        pytest.param(HEALTHY - 1, 6.4, id="a failure less than two minutes later is the next"),
        pytest.param(HEALTHY, 0.8, id="after two minutes without one it is the first again"),
    ],
)
def test_two_minutes_of_health_are_a_new_beginning(pause, expected):
    hands = Hands()
    backoff = RetryBackoff(highest(hands))
    for _ in range(3):
        backoff.after_failure()
    hands.now += pause

    assert expected == backoff.after_failure()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(7.0, 7.0, id="longer than ours"),
        pytest.param(0.1, 0.8, id="shorter than ours"),
        pytest.param(3600.0, 60.0, id="an hour is a minute"),
        pytest.param(None, 0.8, id="nothing"),
    ],
)
def test_a_server_gets_the_time_it_asks_for_within_reason(asked, expected):
    assert expected == RetryBackoff(highest(Hands())).after_failure(asked)


async def test_no_ten_seconds_see_more_than_ten_attempts():
    hands = Hands()
    pace = AttemptRateLimit(hands.timing())
    begun = []
    for number in range(200):
        await pace.attempt()
        begun.append(hands.now)
        hands.now += 0.0 if number % 3 else 0.7  # attempts that fail at once and attempts that take a while

    assert all(later - earlier >= WINDOW - 1e-9 for earlier, later in zip(begun, begun[ATTEMPTS:], strict=False))
    # Twenty windows for two hundred attempts, and not much longer: nothing waits without need.
    assert begun[-1] - begun[0] < 20 * WINDOW


async def test_attempts_that_are_few_do_not_wait():
    hands = Hands()
    pace = AttemptRateLimit(hands.timing())
    for _ in range(50):
        await pace.attempt()
        hands.now += 1.0

    assert [] == hands.waits


async def test_real_time_is_the_default():
    timing = TimeSource()
    before = timing.clock()
    await timing.sleep(0.01)

    assert timing.clock() > before
    assert 0.0 <= timing.rng.random() < 1.0
