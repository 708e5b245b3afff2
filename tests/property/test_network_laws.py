"""Laws of a network: against an oracle that recomputes everything in fractions, and about what no change may break."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lamina.simulator.engine import Environment, Link, Network, Transfer
from lamina.simulator.engine.network import LAST
from tests.property.network_oracle import Fluid, Rate


@dataclass(frozen=True)
class Start:
    """Send some bytes; the transfer's name is how many were started before."""

    path: tuple[int, ...]
    size: Fraction


@dataclass(frozen=True)
class Cancel:
    """Take a transfer off its links; nothing if there is none of this name."""

    transfer: int


@dataclass(frozen=True)
class SetRate:
    """Change the rate of a link."""

    link: int
    rate: Rate


Change = Start | Cancel | SetRate


@dataclass(frozen=True)
class Plan:
    """The rates of some links, and what happens to them when."""

    rates: tuple[Rate, ...]
    changes: tuple[tuple[Fraction, Change], ...]


# How far apart in time the two models may be, and how near to each other events must not be for the models to agree
# on which came first: who cancels a transfer a rounding before its last byte gets another outcome than just after.
TOLERANCE = 1e-6

# The shares of a transfer's bytes for which it is to say when they had arrived.
MARKS = (Fraction(0), Fraction(1, 8), Fraction(1, 2), Fraction(1, 2), Fraction(1))

TENTHS = st.integers(0, 500).map(lambda tenths: Fraction(tenths, 10))
RATES = st.sampled_from(
    [Fraction(0), Fraction(3, 10), Fraction(1), Fraction(7), Fraction(25, 2), Fraction(100), math.inf]
)
# Many at one time, since a settled network is easier than one in which all begin together.
GAPS = st.sampled_from([Fraction(gap, 10) for gap in (0, 0, 0, 1, 2, 5, 20, 50)])


@st.composite
def plans(draw: st.DrawFn, cancels: bool = True) -> Plan:
    rates = draw(st.lists(RATES, min_size=1, max_size=5))
    links = st.integers(0, len(rates) - 1)
    starts = st.builds(Start, st.lists(links, min_size=1, max_size=3, unique=True).map(tuple), TENTHS)
    others = st.builds(SetRate, links, RATES)
    if cancels:
        others |= st.builds(Cancel, st.integers(0, 9))
    now, changes = Fraction(0), []
    for change in draw(st.lists(starts | starts | others, min_size=1, max_size=20)):
        now += draw(GAPS)
        changes.append((now, change))
    # Up at the end, so that every transfer comes to its end.
    changes += [(now + 1, SetRate(link, Fraction(10))) for link in range(len(rates))]
    return Plan(tuple(rates), tuple(changes))


@dataclass
class Outcome:
    """
    What a model says: when each transfer was done, in order, and the bytes moved up to each time of change and in all.

    Up to the time, not to each change: several changes of one instant are one, and nothing is moved between them. Of the
    transfers that were done, also when each of their `MARKS` was reached.
    """

    done: list[tuple[int, float]] = field(default_factory=list)
    moved: list[list[float]] = field(default_factory=list)
    reached: dict[int, list[float]] = field(default_factory=dict)


def outcome_of_network(plan: Plan, look: Callable[[list[Link]], object] = len) -> Outcome:
    """Run the plan; *look* sees the links after every change and every ending."""
    env = Environment()
    network = Network(env)
    links = [network.link(float(rate)) for rate in plan.rates]
    outcome = Outcome()
    transfers: list[Transfer] = []

    def done(name: int) -> None:
        outcome.done.append((name, env.now))
        outcome.reached[name] = transfers[name].reached
        env.after(0.0, look, links, priority=LAST + 1)

    def read() -> None:
        outcome.moved.append([link.moved for link in links])

    def apply(change: Change) -> None:
        match change:
            case Start(path, size):
                way, marks = tuple(links[one] for one in path), [float(size * mark) for mark in MARKS]
                transfers.append(network.start(way, float(size), done, len(transfers), marks=marks))
            case Cancel(name):
                if name < len(transfers):
                    network.cancel(transfers[name])
            case SetRate(link, rate):
                links[link].set_rate(float(rate))
        # When the change is settled, which is the last that happens in an instant.
        env.after(0.0, look, links, priority=LAST + 1)

    for when in dict.fromkeys(when for when, _ in plan.changes):
        env.at(float(when), read)
    for when, change in plan.changes:
        env.at(float(when), apply, change)
    env.run()
    assert [0] * len(links) == [link.active for link in links]
    read()
    return outcome


def outcome_of_fluid(plan: Plan) -> Outcome:
    fluid = Fluid(plan.rates)
    outcome = Outcome()
    times = list(dict.fromkeys(when for when, _ in plan.changes))
    for when, change in plan.changes:
        fluid.run(until=when)
        if len(outcome.moved) < len(times) and when == times[len(outcome.moved)]:
            outcome.moved.append([float(moved) for moved in fluid.moved])
        match change:
            case Start(path, size):
                fluid.start(path, size)
            case Cancel(name):
                assume(not is_close(fluid))
                fluid.cancel(name)
            case SetRate(link, rate):
                assume(not is_close(fluid))
                fluid.rates[link] = rate
    fluid.run()
    outcome.moved.append([float(moved) for moved in fluid.moved])
    outcome.done = [(name, float(when)) for name, when in fluid.done]
    for name, _ in fluid.done:
        size = fluid.trails[name][-1][1]
        outcome.reached[name] = [float(fluid.when(name, size * mark) or 0) for mark in MARKS]
    return outcome


def is_close(fluid: Fluid) -> bool:
    """Whether a rounding would decide between a change that comes now and an ending."""
    just_before = any(fluid.now - when < TOLERANCE for _, when in fluid.done)
    return just_before or any(left < TOLERANCE * 100 for left in fluid.left.values())


@given(plans())
def test_a_network_by_clocks_does_what_recomputing_every_transfer_does(plan):
    expected, actual = outcome_of_fluid(plan), outcome_of_network(plan)

    assert dict(actual.done) == pytest.approx(dict(expected.done), rel=0.0, abs=TOLERANCE)
    for before, after in zip(expected.moved, actual.moved, strict=True):
        assert after == pytest.approx(before, rel=0.0, abs=100 * TOLERANCE)


@given(plans())
def test_a_transfer_knows_when_it_had_moved_so_many_bytes_however_its_rate_changed(plan):
    expected, actual = outcome_of_fluid(plan), outcome_of_network(plan)

    for name, times in expected.reached.items():
        assert actual.reached[name] == pytest.approx(times, rel=0.0, abs=TOLERANCE * 10)
        assert actual.reached[name] == sorted(actual.reached[name])


@given(plans())
def test_no_link_is_ever_over_its_rate_and_whoever_is_held_back_is_so_by_a_full_link(plan):
    def look(links: list[Link]) -> None:
        for link in links:
            load = sum(bottleneck.level * len(transfers) for bottleneck, transfers in link.by_bottleneck.items())
            assert load <= link.rate * (1 + 1e-9) + 1e-9
            if link.members:
                assert load == pytest.approx(link.rate, rel=1e-9, abs=1e-9)
            assert all(bottleneck.level <= link.level * (1 + 1e-9) for bottleneck in link.by_bottleneck)

    outcome_of_network(plan, look)


@given(plans())
def test_transfers_done_at_one_time_are_called_in_start_order_and_time_never_goes_back(plan):
    """Started before that time, that is: what is started in between cannot be called before."""
    started = [when for when, change in plan.changes if isinstance(change, Start)]
    calls = [(when, name) for name, when in outcome_of_network(plan).done if float(started[name]) < when]

    assert calls == sorted(calls)


@given(plans())
def test_the_same_plan_has_the_same_outcome_to_the_last_digit(plan):
    assert outcome_of_network(plan) == outcome_of_network(plan)


@given(plans(cancels=False))
def test_every_link_has_moved_the_sizes_of_all_that_crossed_it(plan):
    starts = [change for _, change in plan.changes if isinstance(change, Start)]
    outcome = outcome_of_network(plan)

    assert sorted(name for name, _ in outcome.done) == list(range(len(starts)))
    for link, moved in enumerate(outcome.moved[-1]):
        assert moved == pytest.approx(sum(float(start.size) for start in starts if link in start.path), rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10**9)), max_size=30), st.floats(1e-3, 1e9))
def test_every_byte_put_on_a_link_is_moved_once(transfers, rate):
    env = Environment()
    network = Network(env)
    link = network.link(rate)
    arrived: list[int] = []
    readings: list[float] = []

    def read(then: Callable[[], object]) -> None:
        readings.append(link.moved)
        then()

    for when, size in transfers:
        env.at(when, read, lambda size=size: network.start((link,), size, read, lambda: arrived.append(size)))
    env.run()

    assert sorted(arrived) == sorted(size for _, size in transfers)
    total = sum(size for _, size in transfers)
    assert total == link.moved
    assert all(later >= earlier - 1e-12 * total for earlier, later in pairwise(readings))
