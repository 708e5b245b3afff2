"""How congested a node is: the formula, its laws, and how the level follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.services.annotator.congestion_level import (
    FALLING,
    PRESSURE_RANGES,
    RISING,
    CongestionLevel,
    current_congestion,
)


@pytest.mark.parametrize(
    ("shares", "factor"),
    [
        pytest.param({}, None, id="nothing is known"),
        pytest.param({"weather": 1.0}, None, id="nothing that counts is known"),
        pytest.param({"cpu": 0.0, "network": 0.0}, 0.0, id="idle"),
        pytest.param({"cpu": 0.10}, 0.0, id="cpu pressure where it begins"),
        # (0.35 - 0.10) / (0.60 - 0.10) = 0.5
        pytest.param({"cpu": 0.35}, 50.0, id="cpu pressure half way"),
        pytest.param({"cpu": 0.60}, 100.0, id="cpu pressure in full"),
        pytest.param({"cpu": 5.0}, 100.0, id="more than all"),
        # (0.11 - 0.02) / (0.20 - 0.02) = 0.5
        pytest.param({"memory": 0.11}, 50.0, id="memory pressure half way"),
        # (0.95 - 0.50) / 0.45 = 1
        pytest.param({"network": 0.95}, 100.0, id="a full link"),
        pytest.param({"network": 0.50, "disk": 0.85}, 50.0, id="what is worst decides"),
        pytest.param({"io": -1.0}, 0.0, id="less than nothing"),
    ],
)
def test_the_factor_is(shares, factor):
    found = current_congestion(shares)

    assert (None if factor is None else pytest.approx(factor)) == found


SHARES = st.dictionaries(st.sampled_from(sorted(PRESSURE_RANGES)), st.floats(0, 2), min_size=1)


@given(SHARES, SHARES)
def test_more_of_anything_is_never_less_congestion(shares, more):
    both = {name: max(shares.get(name, 0.0), more.get(name, 0.0)) for name in {*shares, *more}}
    before, after = current_congestion(shares), current_congestion(both)

    assert before is not None
    assert after is not None
    assert 0 <= before <= after <= 100


def test_half_of_the_way_is_gone_in_a_halving_time_up_quickly_down_slowly():
    assert CongestionLevel(50.0, RISING) == CongestionLevel(0.0, 0.0).follow(RISING, 100.0)
    assert CongestionLevel(50.0, FALLING) == CongestionLevel(100.0, 0.0).follow(FALLING, 0.0)
    assert RISING < FALLING


@given(st.floats(0, 100), st.floats(0, 100), st.floats(-1000, 1000))
def test_a_level_stays_between_where_it_was_and_where_it_goes(value, target, elapsed):
    found = CongestionLevel(value, 0.0).follow(elapsed, target).value

    assert min(value, target) - 1e-9 <= found <= max(value, target) + 1e-9
    assert elapsed > 0 or value == found
