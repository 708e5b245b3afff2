"""Looking again and again: what is reported, what a failure does, and how often something is said."""

import asyncio
import logging
import random

import msgspec
import pytest

from lamina.clients.prometheus.errors import UNREACHABLE, PrometheusError
from lamina.model.events import Event, UsageReported
from lamina.services.informers.usage import UsagePoller
from lamina.services.informers.usage.usage_source import of_known_age, some
from lamina.testing import a_node
from tests.unit.services.fakes import StillClock, leaping
from tests.unit.services.informers.usage.scripted import NOON, ScriptedSource, a_usage

NODES = {"n1": a_node("n1"), "n2": a_node("n2")}
DOWN = PrometheusError("p", UNREACHABLE, "no connection")


class Kept:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def put(self, event: Event, /) -> None:
        self.events.append(event)

    def wake(self) -> None:
        """Nobody waits."""


class TwoClocks(StillClock):
    """The time of the decision core, and of the machine."""

    def __init__(self, now: float, wall: float) -> None:
        super().__init__(now)
        self.on_the_wall = wall

    def wall(self) -> float:
        return self.on_the_wall


def watching(source, seconds, *, every=30.0, nodes=None, now=NOON, wall=NOON):
    """Let a watch run for so many seconds; return it, and what it reported."""
    kept, clock = Kept(), TwoClocks(now, wall)
    watch = UsagePoller(source, every, kept, lambda: NODES if nodes is None else nodes, clock, rng=random.Random(1))

    async def story() -> None:
        running = asyncio.create_task(watch.run())
        await asyncio.sleep(seconds)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    leaping(story())
    return watch, kept.events


def test_usage_is_reported_at_once_and_then_every_so_often():
    watch, events = watching(ScriptedSource([a_usage()]), 301)

    # Pauses are 27 to 33 seconds.
    assert 10 <= len(events) <= 12
    assert UsageReported((msgspec.structs.replace(a_usage(), renews_within=37.5),)) == events[0]
    assert (1, 2, 0, NOON) == (watch.matched, watch.wanted, watch.failures, watch.told_at)


def test_another_measurement_is_promised_for_when_there_is_one_and_it_was_looked_at():
    """
    Who looks more often than anything new is measured must not make the last measurement look overdue.
    """
    measured_every_minute = msgspec.structs.replace(a_usage(), renews_within=60.0)
    _, (event,) = watching(ScriptedSource([measured_every_minute]), 1, every=10.0)

    # A minute, and a pause of ten seconds with some slack.
    assert [72.5] == [one.renews_within for one in event.usages]


def test_nobody_is_asked_before_there_are_nodes():
    source = ScriptedSource([a_usage()])
    watching(source, 100, nodes={})

    assert 0 == source.looks


def test_a_source_that_fails_is_asked_later_and_later_and_that_is_said_once(caplog):
    source = ScriptedSource(DOWN)
    with caplog.at_level(logging.INFO, "lamina"):
        watch, events = watching(source, 600)

    # 1, 2, 4 … 60 seconds, each up to half as long again: about 6 until 60 s, and then one in 60 to 90 s.
    assert 12 <= source.looks <= 16
    assert (source.looks, [], "Prometheus at p: no connection") == (watch.failures, events, watch.problem)
    assert ["usage source failed, retrying"] == [record.getMessage() for record in caplog.records]


def test_whatever_a_source_raises_the_service_lives(caplog):
    source = ScriptedSource(ZeroDivisionError("x"), [a_usage()])
    with caplog.at_level(logging.INFO, "lamina"):
        watch, events = watching(source, 10)

    assert (1, 1, "") == (watch.failures, len(events), watch.problem)
    assert "usage source recovered" == caplog.records[-1].getMessage()


def test_after_a_failure_the_first_wait_is_short_again():
    source = ScriptedSource(DOWN, DOWN, [a_usage()], DOWN, [a_usage()])
    watch, events = watching(source, 45)

    # Failures wait 1 and 2 s (or half as long again); then about 30 s; then 1 s again.
    assert (3, 2) == (watch.failures, len(events))


def test_a_remark_is_said_when_it_changes(caplog):
    source = ScriptedSource([])
    remarks = iter(["no series", "no series", "no series", "", "", "no series"])

    def change() -> None:
        source.remark = next(remarks, source.remark)

    source.before = change
    with caplog.at_level(logging.INFO, "lamina"):
        watching(source, 290)

    assert ["no series", "", "no series"] == [record.fields["remark"] for record in caplog.records]  # type: ignore[attr-defined]
    assert ["WARNING", "INFO", "WARNING"] == [record.levelname for record in caplog.records]


def test_numbers_of_unknown_age_are_not_reported(caplog):
    with caplog.at_level(logging.INFO, "lamina"):
        watch, events = watching(ScriptedSource([a_usage(until=NOON - 301)]), 1)

    assert ([], 1, 0) == (events, watch.strange, watch.matched)
    assert "from ours by more than 300 s" in watch.remark


@pytest.mark.parametrize("stepped", [-3600.0, -301.0, 0.0, 301.0, 1e6])
def test_setting_the_machines_clock_costs_no_measurement_and_moves_no_time_of_ours(stepped):
    """
    Somebody has set the clock since we began: what was measured a minute ago by the right time is a minute old.
    """
    wall = NOON + stepped
    watch, events = watching(ScriptedSource([a_usage(until=wall - 60)]), 1, wall=wall)

    assert [(NOON - 960, NOON - 60)] == [(one.since, one.until) for event in events for one in event.usages]
    assert (0, NOON) == (watch.strange, watch.told_at)


@pytest.mark.parametrize(
    ("until", "window"),
    [
        pytest.param(NOON - 300, (NOON - 1200, NOON - 300), id="behind by five minutes"),
        pytest.param(NOON, (NOON - 900, NOON), id="now"),
        pytest.param(NOON + 300, (NOON - 900, NOON), id="ahead by five minutes: it ended just now"),
        pytest.param(NOON + 301, None, id="further ahead"),
        pytest.param(NOON - 301, None, id="further behind"),
        pytest.param(0.0, None, id="no time at all"),
    ],
)
def test_clocks_may_differ_by_five_minutes(until, window):
    kept, strange = of_known_age([a_usage(until=until)], NOON)

    assert [window] * (window is not None) == [(one.since, one.until) for one in kept]
    assert strange == (window is None)


def test_a_few_names_are_listed():
    assert "a, b" == some(["b", "a"])
    assert "n0, n1, n2, n3, n4 and 3 more" == some(f"n{n}" for n in range(8))
    assert "a?b" == some(["a\nb"])
