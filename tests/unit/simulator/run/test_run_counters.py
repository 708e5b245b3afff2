"""What is counted while a run goes on."""

from lamina.simulator.run.result import ImageRemovals
from lamina.simulator.run.run_counters import RunCounters, join_handlers
from lamina.trace.trace_records import ImagesRemoved, PodEvicted, PodFailed, PodStarted, PullFailed, TraceRecord


def test_cleared_images_and_forced_ends_are_counted():
    tally = RunCounters()
    story: list[TraceRecord] = [
        ImagesRemoved(1.0, "n1", ("a", "b"), 300, "collected"),
        ImagesRemoved(2.0, "n2", ("a",), 100, "pressure"),
        PodEvicted(2.0, "default/p", "n2", "DiskPressure"),
        PodFailed(3.0, "default/q", "n2", "Error"),
        PullFailed(4.0, "n1", "a", "QPS exceeded", 14.0),
        PullFailed(5.0, "n1", "b", "QPS exceeded", 15.0),
        PodStarted(6.0, "default/r", "n1"),
    ]
    for record in story:
        if (handler := tally.handlers.get(type(record))) is not None:
            handler(record)

    assert ImageRemovals(images=3, bytes=400, pressure_images=1) == tally.cleared
    assert (1, 1, 2) == (tally.evictions, tally.failures, tally.pull_failures)


def test_of_two_who_want_the_same_kind_both_see_it_in_order():
    seen: list[str] = []
    whole = join_handlers(
        {PodFailed: lambda _: seen.append("first"), PodStarted: lambda _: seen.append("alone")},
        {PodFailed: lambda _: seen.append("second")},
    )
    whole[PodFailed](None)
    whole[PodStarted](None)

    assert ["first", "second", "alone"] == seen
