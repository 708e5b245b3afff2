"""Token buckets: a burst, then a rate, and nothing more in any stretch of time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.model.token_bucket import TokenBucket, TokenBuckets


@given(
    st.floats(0.01, 200.0),
    st.integers(1, 20),
    st.lists(st.one_of(st.just(0.0), st.floats(0.001, 30.0)), min_size=1, max_size=60),
)
def test_in_no_stretch_of_time_are_more_tokens_taken_than_burst_and_rate_allow(rate, burst, arrivals):
    bucket, now, taken = TokenBucket(rate, burst), 1000.0, []
    for later in arrivals:
        now += later
        if bucket.take(now):
            taken.append(now)

    for first, begin in enumerate(taken):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + rate * (taken[last] - begin) + 1e-6


@given(st.floats(0.01, 200.0), st.integers(1, 20), st.lists(st.floats(0.0, 30.0), max_size=40))
def test_asking_changes_nothing(rate, burst, arrivals):
    asked, silent, now = TokenBucket(rate, burst), TokenBucket(rate, burst), 0.0
    for later in arrivals:
        now += later
        assert asked.has(now) == asked.has(now)
        assert asked.take(now) == silent.take(now)


def test_a_burst_and_then_one_every_five_minutes():
    """25 at once; in the next hour one each 300 s: 12, however often it is asked in between."""
    bucket = TokenBucket(1 / 300, 25)

    assert 25 == sum(bucket.take(0.0) for _ in range(100))
    assert 12 == sum(bucket.take(float(second)) for second in range(1, 3601))


def test_a_burst_is_whole_again_after_enough_time_and_no_more():
    bucket = TokenBucket(0.1, 3)
    taken = sum(bucket.take(0.0) for _ in range(9))

    assert (3, 3) == (taken, sum(bucket.take(1000.0) for _ in range(9)))


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_without_a_rate_there_is_no_limit(rate):
    bucket = TokenBucket(rate, 0)

    assert all(bucket.take(0.0) for _ in range(50))
    assert 0.0 == sum(bucket.reserve(0.0) for _ in range(50))


def test_tokens_that_are_not_there_yet_can_be_reserved_in_order():
    bucket = TokenBucket(2.0, 2)

    assert [0.0, 0.0, 0.5, 1.0] == [bucket.reserve(10.0) for _ in range(4)]
    assert not bucket.take(11.0), "the last of the four is taken at that time"
    assert bucket.take(11.5)


def test_keys_do_not_share():
    buckets = TokenBuckets(1.0, 1, most=10)

    assert [True, True, False] == [buckets.take(name, 0.0) for name in ("a", "b", "a")]


def test_only_so_many_keys_are_remembered_and_the_longest_unused_goes_first():
    buckets = TokenBuckets(0.001, 1, most=10)
    for number in range(1000):
        buckets.take(str(number), 0.0)

    assert 10 == len(buckets)
    assert [False, True] == [buckets.take(name, 0.0) for name in ("999", "0")]
