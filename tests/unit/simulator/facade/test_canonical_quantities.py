"""Quantities in the form in which the API server stores them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.simulator.facade.canonical_quantities import (
    QuantityFormError,
    canonical_quantity,
    canonical_resource_list,
    exact_quantity,
)

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "E-2"]


@pytest.mark.parametrize(
    ("given_", "stored"),
    [
        pytest.param("1", "1", id="whole"),
        pytest.param(2, "2", id="number"),
        pytest.param(0.5, "500m", id="fraction as a number"),
        pytest.param("0.5", "500m", id="fraction"),
        pytest.param("1000m", "1", id="thousand thousandths"),
        pytest.param("1500m", "1500m", id="thousandths"),
        pytest.param("1000", "1k", id="thousand"),
        pytest.param("1200", "1200", id="no suffix without a fraction"),
        pytest.param("1024Mi", "1Gi", id="larger binary suffix"),
        pytest.param("1.5Gi", "1536Mi", id="smaller binary suffix"),
        pytest.param("0.5Ki", "512", id="small binary amount"),
        pytest.param("0.1Mi", "104857600m", id="binary fraction"),
        pytest.param("12e6", "12e6", id="exponent"),
        pytest.param("1E3", "1e3", id="large exponent letter"),
        pytest.param("+.5", "500m", id="sign and point"),
        pytest.param("-1", "-1", id="negative"),
        pytest.param("0Gi", "0", id="zero"),
        pytest.param("1e-12", "1e-9", id="rounded up"),
        pytest.param("1e99", "1e99", id="large exponent"),
        pytest.param("1e-999", "1e-9", id="small exponent"),
        pytest.param(1e22, "10e21", id="large number"),
        pytest.param("9223372036854775808", "9223372036854775808", id="more than 64 bits"),
        pytest.param("1E", "1E", id="exa"),
        pytest.param("16Ei", "9223372036854775807", id="binary amount of more than 64 bits"),
    ],
)
def test_a_quantity_is_stored_in_canonical_form(given_, stored):
    assert canonical_quantity(given_) == stored


@pytest.mark.parametrize("words", ["", "abc", "1Qi", "1 Gi", "Gi", ".", "1e", "--1", "1.2.3", "١", "9" * 200])
def test_other_text_is_no_quantity(words):
    with pytest.raises(QuantityFormError, match="quantities must match the regular expression"):
        canonical_quantity(words)


@pytest.mark.parametrize("value", [None, True, [], {}, float("inf"), float("nan")])
def test_other_values_are_no_quantities(value):
    with pytest.raises(QuantityFormError):
        exact_quantity(value)


@given(st.integers(-(10**12), 10**12), st.integers(0, 999), st.sampled_from(SUFFIXES))
def test_the_canonical_form_is_the_same_amount_and_its_own_canonical_form(whole, fraction, suffix):
    words = f"{whole}.{fraction:03}{suffix}"

    stored = canonical_quantity(words)

    assert exact_quantity(stored) == exact_quantity(words)
    assert canonical_quantity(stored) == stored
    assert "." not in stored


def test_amounts_are_exact():
    assert exact_quantity("1.5Ki") == 1536
    assert exact_quantity("100m") == Fraction(1, 10)


def test_a_resource_list_is_stored_in_thousandths_at_least():
    found = {"cpu": 0.25, "memory": "2048Ki", "example.com/a": "1n", "example.com/b": "1.2341"}

    assert canonical_resource_list(found) == {
        "cpu": "250m",
        "memory": "2Mi",
        "example.com/a": "1m",
        "example.com/b": "1235m",
    }
