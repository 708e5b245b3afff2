"""The incomplete beta function, against sums, closed forms and another way of integrating."""

import math
from fractions import Fraction

import numpy as np
import pytest

from lamina.scheduling.plugins.agents.safe.beta import split
from tests.unit.scheduling.plugins.agents.safe.oracle import incomplete_beta

CLOSE = 1e-11


def one(a: float, b: float, x: float) -> tuple[float, float]:
    low, high = split(np.array([a]), np.array([b]), np.array([x]))
    return float(low[0]), float(high[0])


def at_least(successes: int, failures: int, x: Fraction) -> Fraction:
    """How likely a coin that wins with probability x is to win so often before it loses so often: I_x(a, b) exactly."""
    tosses = successes + failures - 1
    return sum(
        (math.comb(tosses, wins) * x**wins * (1 - x) ** (tosses - wins) for wins in range(successes, tosses + 1)),
        Fraction(0),
    )


@pytest.mark.parametrize("x", [Fraction(1, 16), Fraction(1, 2), Fraction(13, 16), Fraction(15, 16)], ids=str)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(1, 1, id="even"),
        pytest.param(2, 5, id="small"),
        pytest.param(12, 3, id="as in the slides"),
        pytest.param(99, 101, id="one parameter below where a bell begins"),
        pytest.param(101, 101, id="both just above"),
        pytest.param(350, 130, id="a bell"),
        pytest.param(1300, 300, id="a narrow bell"),
        pytest.param(5, 900, id="one small, one large"),
    ],
)
def test_with_whole_parameters_it_is_a_sum_of_a_binomial(a, b, x):
    """Exact in fractions; a tail that is small is right in its first nine digits as well."""
    exact = at_least(a, b, x)

    low, high = one(a, b, float(x))

    assert pytest.approx(float(exact), abs=CLOSE, rel=0) == low
    assert pytest.approx(float(1 - exact), abs=CLOSE, rel=0) == high
    smaller = min(exact, 1 - exact)
    if smaller > Fraction(1, 10**30):
        assert pytest.approx(float(smaller), rel=1e-9, abs=0) == min(low, high)


@pytest.mark.parametrize("x", [1e-9, 0.1, 0.5, 0.9, 1 - 1e-9])
@pytest.mark.parametrize(
    ("a", "b", "closed"),
    [
        pytest.param(1.0, 3.7, lambda x: 1 - (1 - x) ** 3.7, id="a is 1"),
        pytest.param(0.3, 1.0, lambda x: x**0.3, id="b is 1"),
        pytest.param(0.5, 0.5, lambda x: 2 / math.pi * math.asin(math.sqrt(x)), id="arc sine"),
    ],
)
def test_where_there_is_a_closed_form_it_is_met(a, b, closed, x):
    assert pytest.approx(closed(x), abs=CLOSE, rel=0) == one(a, b, x)[0]


@pytest.mark.parametrize("x", [0.05, 0.3, 0.6, 0.9])
@pytest.mark.parametrize(
    ("a", "b"),
    [(9.9609, 13.4766), (5.8333, 2.5), (0.4, 0.9333), (1.0, 0.6667), (0.01, 0.03), (42.5, 7.5), (140.7, 260.2)],
    ids=str,
)
def test_another_way_of_integrating_gives_the_same(a, b, x):
    low, high = incomplete_beta(a, b, x)

    assert pytest.approx((low, high), abs=CLOSE, rel=0) == one(a, b, x)


@pytest.mark.parametrize("a", [1e-9, 0.5, 99.0, 101.0, 1e4, 1e7, 1e10])
def test_half_of_a_symmetric_share_is_below_a_half(a):
    assert pytest.approx((0.5, 0.5), abs=1e-10) == one(a, a, 0.5)


@pytest.mark.parametrize("a", [1e6, 1e8, 1e10])
def test_a_narrow_bell_is_a_normal_one(a):
    """A standard deviation above the mean there is Φ(1); what skews it is of the order of one over the root of a."""
    x = 0.5 + math.sqrt(0.25 / (2 * a + 1))

    assert pytest.approx(0.5 * math.erfc(-1 / math.sqrt(2)), abs=2 / a + 1e-9) == one(a, a, x)[0]


@pytest.mark.parametrize(
    ("x", "want"),
    [
        pytest.param(0.0, (0.0, 1.0), id="nothing is below 0"),
        pytest.param(1.0, (1.0, 0.0), id="everything is below 1"),
        pytest.param(1e-300, (0.0, 1.0), id="hardly more than 0"),
    ],
)
def test_the_ends_are_certain(x, want):
    assert want == one(3.0, 4.0, x)


def test_a_small_tail_is_not_one_minus_the_rest():
    """1 - 2^-200 is 1 in floats; 2^-200 is not 0. Smaller ones than e^-100 are."""
    tail = 2.0**-100

    assert pytest.approx(tail, rel=1e-12) == one(100.0, 1.0, 0.5)[0]
    assert pytest.approx((1.0, tail), rel=1e-12) == one(1.0, 100.0, 0.5)
    assert (0.0, 1.0) == one(200.0, 1.0, 0.5)


def test_elements_do_not_know_each_other():
    """The same in one array as each by itself, to the last digit."""
    draw = np.random.default_rng(5)
    a, b, x = 10.0 ** draw.uniform(-2, 5, 300), 10.0 ** draw.uniform(-2, 5, 300), draw.uniform(0, 1, 300)

    low, high = split(a, b, x)

    assert [one(*each) for each in zip(a, b, x, strict=True)] == list(zip(low.tolist(), high.tolist(), strict=True))


def test_of_nothing_nothing_is_known():
    low, high = split(np.zeros(0), np.zeros(0), np.zeros(0))

    assert (0, 0) == (len(low), len(high))
