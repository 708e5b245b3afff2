"""Virtual time: what fires when, in which order, and what is refused. Stories end in a log of (who, when)."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from lamina.simulator.engine import EngineError, Environment

Log = list[tuple[str, float]]
Note = Callable[[str], None]


@pytest.fixture
def env() -> Environment:
    return Environment()


@pytest.fixture
def log() -> Log:
    return []


@pytest.fixture
def note(env: Environment, log: Log) -> Note:
    """A callback that writes down who was called, and when."""
    return lambda who: log.append((who, env.now))


class FussyError(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, *, who: str) -> None:
        super().__init__()
        self.who = who


# ------------------------------------------------------------------------------------------------------- what fires when


def test_callbacks_fire_in_the_order_of_their_times(env, log, note):
    env.at(3.0, note, "c")
    env.at(1.0, note, "a")
    env.after(2.0, note, "b")
    env.run()

    assert log == [("a", 1.0), ("b", 2.0), ("c", 3.0)]


def test_at_one_time_the_order_of_scheduling_decides(env, log, note):
    for who in ("first", "second", "third"):
        env.at(1.0, note, who)
    env.run()

    assert log == [("first", 1.0), ("second", 1.0), ("third", 1.0)]


def test_at_one_time_the_lower_priority_number_goes_first(env, log, note):
    env.at(1.0, note, "late", priority=1)
    env.at(1.0, note, "plain")
    env.after(1.0, note, "early", priority=-1)
    env.run()

    assert log == [("early", 1.0), ("plain", 1.0), ("late", 1.0)]


def test_a_priority_never_beats_an_earlier_time(env, log, note):
    env.at(2.0, note, "urgent", priority=-9)
    env.at(1.0, note, "earlier", priority=9)
    env.run()

    assert log == [("earlier", 1.0), ("urgent", 2.0)]


def test_a_callback_may_schedule_for_the_same_instant(env, log, note):
    """What is scheduled for now comes after what is already due now, unless its priority says otherwise."""

    def begin() -> None:
        note("begin")
        env.after(0.0, note, "more")
        env.at(env.now, note, "sooner", priority=-1)

    env.at(1.0, begin)
    env.at(1.0, note, "due before")
    env.run()

    assert log == [("begin", 1.0), ("sooner", 1.0), ("due before", 1.0), ("more", 1.0)]


def test_arguments_reach_the_callback(env):
    seen: list[object] = []
    env.after(1.0, lambda *args: seen.append(args))
    env.after(2.0, lambda *args: seen.append(args), 1, "two", None)
    env.run()

    assert seen == [(), (1, "two", None)]


def test_the_clock_starts_where_it_is_told_to(log):
    env = Environment(start=100.0)
    env.after(0.5, lambda: log.append(("a", env.now)))
    env.run()

    assert log == [("a", 100.5)]


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param(lambda env, see: env.at(2, see), id="at an int"),
        pytest.param(lambda env, see: env.after(1, see), id="after an int"),
        pytest.param(lambda env, see: env.at(np.float64(2.0), see), id="at a NumPy float"),
        pytest.param(lambda env, see: env.after(np.float64(1.0), see), id="after a NumPy float"),
    ],
)
def test_the_clock_is_always_a_plain_float(schedule):
    """Whatever kind of number is scheduled, logs show the same digits."""
    env = Environment(start=1)
    kinds = [type(env.now)]
    schedule(env, lambda: kinds.append(type(env.now)))
    env.run()
    env.run(until=9)
    kinds.append(type(env.now))

    assert kinds == [float, float, float]


# --------------------------------------------------------------------------------------------------------- cancelling


def test_a_cancelled_timer_never_fires(env, log, note):
    timer = env.at(1.0, note, "cancelled")
    env.at(1.0, note, "kept")
    env.cancel(timer)
    env.run()

    assert log == [("kept", 1.0)]


def test_a_cancelled_timer_does_not_move_the_clock(env, note):
    env.at(1.0, note, "kept")
    env.cancel(env.at(5.0, note, "cancelled"))
    env.run()

    assert env.now == 1.0


def test_a_callback_may_cancel_one_due_in_the_same_instant(env, log, note):
    victim = env.at(1.0, note, "victim", priority=1)
    env.at(1.0, env.cancel, victim)
    env.run()

    assert log == []


def test_cancelling_what_has_fired_or_was_cancelled_changes_nothing(env, log, note):
    fired = env.at(1.0, note, "fired")
    cancelled = env.at(3.0, note, "cancelled")
    env.run(until=1.0)
    for timer in (fired, cancelled, cancelled):
        env.cancel(timer)
    env.at(3.0, note, "twin")
    env.run()

    assert log == [("fired", 1.0), ("twin", 3.0)]


def test_a_cancelled_timer_is_forgotten_once_its_time_has_come(env, note):
    env.cancel(env.at(1.0, note, "cancelled"))
    env.run()

    assert not env._heap
    assert not env._cancelled


def test_cancelling_most_of_a_large_heap_leaves_the_rest_in_order(env, log, note):
    """7 and 500 share no factor, so that the times are scattered but each is there once."""
    timers = [env.at(float(number * 7 % 500), note, str(number)) for number in range(500)]
    for number, timer in enumerate(timers):
        if number % 5:
            env.cancel(timer)
    env.run()

    assert log == sorted(
        ((str(number), float(number * 7 % 500)) for number in range(0, 500, 5)), key=lambda one: one[1]
    )


def test_many_cancelled_timers_are_swept_from_the_heap_while_running(env, log, note):
    """A program that always moves its one deadline must not collect the old ones."""
    deadline = env.at(10_000.0, note, "deadline")
    lengths = []

    def work(step: int) -> None:
        nonlocal deadline
        env.cancel(deadline)
        deadline = env.at(10_000.0 + step, note, "deadline")
        lengths.append(len(env._heap))
        if step < 1_000:
            env.after(1.0, work, step + 1)

    env.after(1.0, work, 1)
    env.run()

    assert log == [("deadline", 11_000.0)]
    assert max(lengths) < 200


def test_cancelling_fired_timers_for_ever_keeps_no_memory_of_them(env, note):
    for _ in range(1_000):
        timer = env.after(0.0, note, "fired")
        env.run()
        env.cancel(timer)

    assert len(env._cancelled) < 100


# ------------------------------------------------------------------------------------------------------ peek, step, run


def test_peek_tells_the_next_live_time_or_infinity(env, note):
    first = env.at(1.0, note, "a")
    second = env.at(2.0, note, "b")
    seen = [env.peek()]
    env.cancel(first)
    seen.append(env.peek())
    env.cancel(second)
    seen.append(env.peek())

    assert [1.0, 2.0, math.inf] == seen
    assert env.now == 0.0


def test_an_environment_is_idle_when_only_excused_timers_are_left(env, note):
    first, second = env.at(1.0, note, "a"), env.at(2.0, note, "b")
    seen = [env.idle]
    env.ignore_when_idle(first)
    seen.append(env.idle)
    env.cancel(second)
    seen.append(env.idle)

    assert [False, False, True] == seen
    env.run()
    # An ignored timer fires all the same.
    assert (1.0, True) == (env.now, env.idle)


def test_excused_timers_that_have_fired_are_forgotten(env):
    """One that comes again and again, as long as a run lasts."""

    def again(left: int) -> None:
        if left:
            env.ignore_when_idle(env.after(1.0, again, left - 1))

    again(1000)
    env.run()

    assert 1000.0 == env.now
    assert len(env._ignored) < 100


def test_step_fires_exactly_one(env, log, note):
    env.cancel(env.at(0.5, note, "cancelled"))
    env.at(1.0, note, "a")
    env.at(1.0, note, "b")
    env.step()

    assert log == [("a", 1.0)]
    assert env.now == 1.0


def test_step_with_nothing_left_is_an_error(env, note):
    env.cancel(env.at(0.5, note, "cancelled"))
    with pytest.raises(EngineError, match=r"cannot step from 0\.0: nothing is scheduled"):
        env.step()


@pytest.mark.parametrize(
    ("until", "fired"),
    [
        pytest.param(0.0, [], id="now: nothing due"),
        pytest.param(1.5, ["a"], id="between"),
        pytest.param(2.0, ["a", "b", "b2"], id="at a callback's time: fired"),
        pytest.param(9.0, ["a", "b", "b2", "c"], id="beyond the last"),
    ],
)
def test_run_fires_up_to_and_including_until_and_stops_there(env, log, note, until, fired):
    for when, who in ((1.0, "a"), (2.0, "b"), (2.0, "b2"), (3.0, "c")):
        env.at(when, note, who)
    env.run(until)

    assert fired == [who for who, _ in log]
    assert until == env.now


def test_a_run_goes_on_where_the_last_one_stopped(env, log, note):
    env.at(1.0, note, "a")
    env.at(3.0, note, "c")
    env.run(until=2.0)
    env.after(0.5, note, "b")
    env.run()

    assert log == [("a", 1.0), ("b", 2.5), ("c", 3.0)]


def test_a_callback_due_at_until_may_add_more_for_until(env, log, note):
    env.at(2.0, lambda: env.after(0.0, note, "more"))
    env.run(until=2.0)

    assert log == [("more", 2.0)]


def test_time_never_goes_back_even_if_a_callback_runs_further_than_its_run(env, log, note):
    env.at(1.0, lambda: env.run(until=9.0))
    env.at(4.0, note, "inner")
    env.run(until=2.0)

    assert log == [("inner", 4.0)]
    assert env.now == 9.0


def test_an_exception_leaves_untouched_and_the_next_run_goes_on(env, log, note):
    error = FussyError(who="b")

    def fail() -> None:
        raise error

    env.at(1.0, note, "a")
    env.at(2.0, fail)
    env.at(2.0, note, "c")
    with pytest.raises(FussyError) as caught:
        env.run(until=5.0)

    assert error is caught.value
    assert env.now == 2.0
    env.run(until=5.0)
    assert log == [("a", 1.0), ("c", 2.0)]


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("call", "words"),
    [
        pytest.param(lambda env: env.at(4.0, print), "cannot schedule at 4.0: .* not before now (5.0)", id="past"),
        pytest.param(lambda env: env.at(math.nan, print), "cannot schedule at nan: ", id="time not a number"),
        pytest.param(lambda env: env.at(math.inf, print), "cannot schedule at inf: ", id="time without end"),
        pytest.param(lambda env: env.after(-1.0, print), "cannot schedule -1.0 after 5.0: ", id="negative delay"),
        pytest.param(lambda env: env.after(-1e-30, print), "cannot schedule -1e-30 after 5.0: ", id="lost in the sum"),
        pytest.param(lambda env: env.after(math.nan, print), "cannot schedule nan after 5.0: ", id="delay no number"),
        pytest.param(lambda env: env.after(math.inf, print), "cannot schedule inf after 5.0: ", id="endless delay"),
        pytest.param(lambda env: env.run(until=4.0), "cannot run until 4.0: .* not before now (5.0)", id="back"),
        pytest.param(lambda env: env.run(until=math.nan), "cannot run until nan: ", id="until not a number"),
        pytest.param(lambda env: env.run(until=math.inf), "cannot run until inf: ", id="until without end"),
        pytest.param(lambda env: Environment(start=math.nan), "cannot start at nan: ", id="start not a number"),
    ],
)
def test_a_senseless_time_is_refused_by_name_and_nothing_is_scheduled(call, words):
    env = Environment(start=5.0)
    with pytest.raises(EngineError, match=re.escape(words).replace(r"\.\*", ".*")):
        call(env)

    assert env.peek() == math.inf
    assert env.now == 5.0


def test_an_engine_error_is_a_value_error():
    assert issubclass(EngineError, ValueError)
