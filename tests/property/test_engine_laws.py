"""
Laws of virtual time: the engine against SimPy, the fair link against a model that recomputes everything.

The second oracle calculates in fractions, so it has no rounding of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lamina.simulator.engine import Environment, FairLink, Flow, Timer

# ------------------------------------------------------------------------------------------------- programs of timeouts


@dataclass(frozen=True)
class Event:
    """When it fires, it is logged, cancels some others, and schedules those later ones whose *parent* it is."""

    parent: int | None
    delay: float
    priority: int
    cancels: list[int]


Program = list[Event]
Log = list[tuple[int, float]]

# Quarters meet often, and ties are where engines differ; the others do not add up exactly.
DELAYS = st.integers(0, 12).map(lambda quarters: quarters / 4) | st.floats(0.0, 10.0)


NUMBERS = st.integers(0, 19)
PROGRAMS = st.lists(
    st.builds(Event, st.none() | NUMBERS, DELAYS, st.integers(-1, 1), st.lists(NUMBERS, max_size=2)), max_size=20
)


def children(program: Program, parent: int | None) -> list[int]:
    """The events a parent schedules; without one, those that start the program."""
    if parent is None:
        return [number for number, event in enumerate(program) if event.parent is None or event.parent >= number]
    return [number for number, event in enumerate(program) if event.parent == parent < number]


def load(program: Program, env: Environment) -> Log:
    """Schedule the program's first events; the log fills as the environment runs."""
    log: Log = []
    timers: dict[int, Timer] = {}

    def schedule(number: int) -> None:
        event = program[number]
        if number % 2:
            timers[number] = env.after(event.delay, fire, number, priority=event.priority)
        else:
            timers[number] = env.at(env.now + event.delay, fire, number, priority=event.priority)

    def fire(number: int) -> None:
        log.append((number, env.now))
        for other in program[number].cancels:
            if other in timers:
                env.cancel(timers[other])
        for child in children(program, number):
            schedule(child)

    for number in children(program, None):
        schedule(number)
    return log


def log_of_simpy(program: Program) -> Log:
    """The same program, where cancelling means taking the callback off an event that still happens."""
    import simpy

    env = simpy.Environment(0.0)
    log: Log = []
    events: dict[int, simpy.Event] = {}

    def schedule(number: int) -> None:
        event = events[number] = env.event()
        event._ok, event._value = True, None
        event.callbacks.append(lambda _: fire(number))
        env.schedule(event, simpy.events.EventPriority(program[number].priority), program[number].delay)

    def fire(number: int) -> None:
        log.append((number, env.now))
        for other in program[number].cancels:
            if other in events and not events[other].processed:
                events[other].callbacks.clear()
        for child in children(program, number):
            schedule(child)

    for number in children(program, None):
        schedule(number)
    env.run()
    return log


@pytest.mark.needs("simpy")
@given(PROGRAMS)
def test_a_program_fires_the_same_events_at_the_same_times_as_in_simpy(program):
    env = Environment()
    log = load(program, env)
    env.run()

    assert log == log_of_simpy(program)


@given(PROGRAMS)
def test_stepping_fires_what_peek_told_and_in_the_end_what_run_fires(program):
    whole, stepped = Environment(), Environment()
    log, log_by_steps = load(program, whole), load(program, stepped)
    whole.run()
    told = []
    while stepped.peek() < float("inf"):
        told.append(stepped.peek())
        stepped.step()

    assert log_by_steps == log
    assert told == [when for _, when in log]


@given(PROGRAMS, st.lists(DELAYS, max_size=8))
def test_running_in_pieces_fires_what_running_at_once_fires(program, pieces):
    whole, parts = Environment(), Environment()
    log, log_in_parts = load(program, whole), load(program, parts)
    whole.run()
    for piece in pieces:
        until = parts.now + piece
        parts.run(until)
        assert parts.now == until
        assert log_in_parts == [(who, when) for who, when in log if when <= until]
    parts.run()

    assert log_in_parts == log


@given(PROGRAMS, st.floats(-1e6, 1e6))
def test_time_never_goes_back(program, start):
    env = Environment(start)
    log = load(program, env)
    env.run()
    times = [start, *(when for _, when in log), env.now]

    assert times == sorted(times)


# ----------------------------------------------------------------------------------------------------------- fair links


@dataclass(frozen=True)
class Start:
    """Put a flow on the link; its name is how many were started before."""

    size: float


@dataclass(frozen=True)
class Cancel:
    """Take a flow off the link; nothing if there is none of this name."""

    flow: int


@dataclass(frozen=True)
class SetRate:
    """Change the rate of the link."""

    rate: float


Change = Start | Cancel | SetRate
Plan = list[tuple[float, Change]]

SIZES = st.integers(0, 500).map(lambda tenths: tenths / 10)
RATES = st.sampled_from([0.0, 0.3, 1.0, 7.0, 12.5, 100.0])
CHANGES = (
    st.builds(Start, SIZES) | st.builds(Start, SIZES) | st.builds(Cancel, st.integers(0, 9)) | st.builds(SetRate, RATES)
)

# How far apart in time the two models may be, and how near to each other events must not be for the models to agree
# on which came first: who cancels a flow a rounding before its last byte gets another outcome than just after.
TOLERANCE = 1e-6


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    now, plan = 0.0, []
    for change in draw(st.lists(CHANGES, min_size=1, max_size=20)):
        now += draw(st.integers(0, 50)) / 10
        plan.append((now, change))
    # Up at the end, so that every flow comes to its end.
    return [*plan, (now + 1.0, SetRate(10.0))]


@dataclass
class Outcome:
    """What a model says: when each flow was done, in order, and the bytes moved up to each change and in all."""

    done: list[tuple[int, float]] = field(default_factory=list)
    moved: list[float] = field(default_factory=list)


def outcome_of_link(plan: Plan, rate: float) -> Outcome:
    env = Environment()
    link = FairLink(env, rate)
    outcome = Outcome()
    flows: list[Flow] = []

    def apply(change: Change) -> None:
        outcome.moved.append(link.moved)
        match change:
            case Start(size):
                name = len(flows)
                flows.append(link.start(size, lambda: outcome.done.append((name, env.now))))
            case Cancel(name):
                if name < len(flows):
                    link.cancel(flows[name])
            case SetRate(new):
                link.set_rate(new)

    for when, change in plan:
        env.at(when, apply, change)
    env.run()
    assert link.active == 0
    outcome.moved.append(link.moved)
    return outcome


def exact(value: float) -> Fraction:
    """The tenth that was meant, so that flows which should end together do so here to the last digit."""
    return Fraction(value).limit_denominator(10)


class Fluid:
    """All flows recomputed at every change: slow, exact, and too simple to be wrong."""

    def __init__(self, rate: float) -> None:
        self.now = Fraction(0)
        self.rate = exact(rate)
        self.left: dict[int, Fraction] = {}
        self.started = 0
        self.moved = Fraction(0)
        self.done: list[tuple[int, Fraction]] = []
        self.close_call = False

    def flow_for(self, duration: Fraction) -> None:
        self.now += duration
        if not self.left:
            return
        share = duration * self.rate / len(self.left)
        self.moved += share * len(self.left)
        self.left = {name: left - share for name, left in self.left.items()}
        self.done += [(name, self.now) for name, left in self.left.items() if left == 0]
        self.left = {name: left for name, left in self.left.items() if left > 0}

    def run_until(self, time: Fraction | None) -> None:
        while self.left and self.rate:
            duration = min(self.left.values()) * len(self.left) / self.rate
            if time is not None and self.now + duration > time:
                break
            self.flow_for(duration)
        if time is not None:
            self.flow_for(time - self.now)

    def apply(self, change: Change) -> None:
        match change:
            case Start(size):
                if size:
                    self.left[self.started] = exact(size)
                else:
                    self.done.append((self.started, self.now))
                self.started += 1
            case Cancel(name):
                self.note_close_calls()
                self.left.pop(name, None)
            case SetRate(rate):
                self.note_close_calls()
                self.rate = exact(rate)

    def note_close_calls(self) -> None:
        just_before = any(self.now - when < TOLERANCE for _, when in self.done)
        at_most = TOLERANCE * max(1.0, float(self.rate))
        just_after = any(left < at_most for left in self.left.values())
        self.close_call |= just_before or just_after


def outcome_of_fluid(plan: Plan, rate: float) -> Outcome:
    fluid = Fluid(rate)
    outcome = Outcome()
    for when, change in plan:
        fluid.run_until(exact(when))
        outcome.moved.append(float(fluid.moved))
        fluid.apply(change)
    fluid.run_until(None)
    assume(not fluid.close_call)
    outcome.moved.append(float(fluid.moved))
    outcome.done = [(name, float(when)) for name, when in fluid.done]
    return outcome


@given(plans(), RATES)
def test_a_link_by_virtual_time_does_what_recomputing_every_flow_does(plan, rate):
    expected, actual = outcome_of_fluid(plan, rate), outcome_of_link(plan, rate)

    assert dict(actual.done) == pytest.approx(dict(expected.done), rel=0.0, abs=TOLERANCE)
    assert actual.moved == pytest.approx(expected.moved, rel=0.0, abs=TOLERANCE)


@given(plans(), RATES)
def test_flows_that_are_done_together_are_done_in_start_order_at_one_time(plan, rate):
    """Flows of no bytes apart: they do not wait on the link."""
    sizes = [change.size for _, change in plan if isinstance(change, Start)]
    expected, actual = outcome_of_fluid(plan, rate), outcome_of_link(plan, rate)

    def order(outcome: Outcome) -> list[tuple[int, bool]]:
        """Who, and whether at the same time as the one before."""
        waited = [(name, when) for name, when in outcome.done if sizes[name]]
        before = [None, *(when for _, when in waited)]
        return [(name, when == last) for (name, when), last in zip(waited, before, strict=False)]

    assert order(actual) == order(expected)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10**9)), max_size=30), st.floats(1e-3, 1e9))
def test_every_byte_put_on_a_link_is_moved_once(flows, rate):
    env = Environment()
    link = FairLink(env, rate)
    arrived: list[int] = []
    readings: list[float] = []

    def read(then: Callable[[], object]) -> None:
        readings.append(link.moved)
        then()

    for when, size in flows:
        env.at(when, read, lambda size=size: link.start(size, read, lambda: arrived.append(size)))
    env.run()

    assert sorted(arrived) == sorted(size for _, size in flows)
    assert link.moved == sum(size for _, size in flows)
    assert all(later >= earlier * (1 - 1e-12) for earlier, later in pairwise(readings))
