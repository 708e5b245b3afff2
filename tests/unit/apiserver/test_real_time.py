"""When the clock of a live façade moves."""

from lamina.apiserver.live_clock import LiveClock
from lamina.apiserver.real_time import ManualPace, RealTimePace
from lamina.simulator.engine import Environment


class Ticks:
    """A store whose revision grows with every event that clients can see."""

    def __init__(self) -> None:
        self.environment = Environment()
        self.revision = 0
        self.fired: list[float] = []
        self.clock = LiveClock(self.environment, lambda: self.revision)

    def at(self, *times: float, seen: bool = True) -> None:
        for time in times:
            self.environment.at(time, self._fire, seen)

    def _fire(self, seen: bool) -> None:
        self.fired.append(self.environment.now)
        self.revision += seen


def test_a_jump_goes_to_the_next_event_that_clients_can_see():
    ticks = Ticks()
    ticks.at(1.0, 2.0, seen=False)
    ticks.at(3.0, 4.0)
    ticks.clock.jump()

    assert ([1.0, 2.0, 3.0], 3.0, 4.0) == (ticks.fired, ticks.clock.now, ticks.clock.next_at)


def test_a_jump_without_events_goes_nowhere():
    ticks = Ticks()
    ticks.clock.jump()

    assert (0.0, float("inf")) == (ticks.clock.now, ticks.clock.next_at)


def test_a_time_in_the_past_fires_what_is_due_now():
    ticks = Ticks()
    ticks.clock.run_until(5.0)
    ticks.at(5.0, 6.0)
    ticks.clock.run_until(1.0)

    assert ([5.0], 5.0) == (ticks.fired, ticks.clock.now)


def test_real_time_follows_the_wall_clock_times_the_factor():
    """10 virtual seconds in each real one: after 3 real seconds, 30."""
    ticks, wall = Ticks(), [100.0]
    ticks.at(29.0, 31.0)
    pace = RealTimePace(10.0, lambda: wall[0])
    wall[0] = 103.0
    pace.catch_up(ticks.clock)

    assert ([29.0], 30.0) == (ticks.fired, ticks.clock.now)


def test_real_time_stays_ahead_by_what_was_skipped():
    ticks, wall = Ticks(), [0.0]
    pace = RealTimePace(1.0, lambda: wall[0])
    pace.skip(60.0)
    wall[0] = 5.0
    pace.catch_up(ticks.clock)

    assert 65.0 == ticks.clock.now


def test_manual_time_stands_still_when_requests_come():
    ticks = Ticks()
    ticks.at(1.0)
    ManualPace().catch_up(ticks.clock)

    assert (0.0, []) == (ticks.clock.now, ticks.fired)
