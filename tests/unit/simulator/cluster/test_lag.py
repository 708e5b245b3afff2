"""Drawn delays: the same for the same pod, whatever else happens."""

from collections import Counter

import pytest

from lamina.simulator.cluster.lag import lag_sampler

SEEN = (0.5, 1.0, 4.0)


def test_a_number_is_always_itself():
    assert 0.5 == lag_sampler(1)(0.5, "start", "p")


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param((1, "start", "p7"), True, id="the same seed, purpose and pod"),
        pytest.param((2, "start", "p7"), False, id="another seed"),
        pytest.param((1, "stop", "p7"), False, id="another purpose"),
        pytest.param((1, "start", "p8"), False, id="another pod"),
    ],
)
def test_a_drawn_lag_depends_on_the_seed_on_what_it_is_for_and_on_whom_it_is_for(other, same):
    """Told apart by a list so long that two draws agree by chance once in ten thousand."""
    values = tuple(map(float, range(10_000)))
    seed, what, who = other

    assert same is (lag_sampler(1)(values, "start", "p7") == lag_sampler(seed)(values, what, who))


def test_every_value_is_drawn_as_often_as_any_other():
    draw = lag_sampler(3)
    drawn = Counter(draw(SEEN, "start", f"p{number}") for number in range(3000))

    assert set(SEEN) == set(drawn)
    assert min(drawn.values()) > 900
