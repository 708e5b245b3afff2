"""Laws of virtual time: the engine against SimPy, and against itself run in other pieces."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.simulator.engine import Environment, Timer

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
