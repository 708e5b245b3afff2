"""One link shared fairly: when each transfer is done, what was moved, and what happens when plans change."""

import math

import pytest

from lamina.simulator.engine import EngineError, Environment, Network, Transfer

Log = list[tuple[str, float]]


class Story:
    """One environment, a network of one link, and a log of (who, when)."""

    def __init__(self, rate: float, start: float = 0.0) -> None:
        self.env = Environment(start)
        self.network = Network(self.env)
        self.link = self.network.link(rate)
        self.log: Log = []

    def note(self, who: str) -> None:
        self.log.append((who, self.env.now))

    def send(self, who: str, size: float) -> Transfer:
        return self.network.start((self.link,), size, self.note, who)


@pytest.fixture
def story() -> Story:
    return Story(rate=100.0)


# ----------------------------------------------------------------------------------------------------------- fair shares


def test_a_transfer_alone_has_the_whole_rate(story):
    story.send("a", 200.0)
    story.env.run()

    assert story.log == [("a", 2.0)]


def test_two_transfers_share_and_the_longer_one_speeds_up_when_alone(story):
    """Until 2 s both get 50; then *a* is done with 100, and *b* has 200 left at the full 100."""
    story.send("a", 100.0)
    story.send("b", 300.0)
    story.env.run()

    assert story.log == [("a", 2.0), ("b", 4.0)]


def test_a_late_transfer_slows_the_first_one_down(story):
    """At 1 s *a* has 100 of 200 left; both then need 100 at 50 each."""
    story.send("a", 200.0)
    story.env.at(1.0, story.send, "b", 100.0)
    story.env.run()

    assert story.log == [("a", 3.0), ("b", 3.0)]


@pytest.mark.parametrize("rate", [100.0, 3.0, 0.1, 1e9 / 7])
def test_three_equal_transfers_are_done_in_one_instant_in_start_order(rate):
    story = Story(rate)
    for who in ("a", "b", "c"):
        story.send(who, 10.0 / 3.0)
    story.env.run()

    assert [who for who, _ in story.log] == ["a", "b", "c"]
    assert len({when for _, when in story.log}) == 1
    assert pytest.approx(10.0 / rate) == story.env.now


def test_transfers_that_end_together_but_for_rounding_end_in_start_order():
    """0.1 + 0.7 is a little less than 0.8 in floats, so by the digits alone *short* would be first, and earlier."""
    story = Story(rate=1.0)
    story.send("long", 0.8)
    story.env.at(0.1, story.send, "short", 0.7)
    story.env.run()

    assert [who for who, _ in story.log] == ["long", "short"]
    assert len({when for _, when in story.log}) == 1


def test_transfers_that_end_a_millionth_apart_are_not_taken_together(story):
    story.send("long", 100.0001)
    story.send("short", 100.0)
    story.env.run()

    assert [(who, round(when, 9)) for who, when in story.log] == [("short", 2.0), ("long", 2.000001)]


def test_a_transfer_of_no_bytes_is_done_now_but_not_at_once(story):
    story.send("other", 100.0)
    story.send("empty", 0.0)
    before = list(story.log)
    story.env.run()

    assert before == []
    assert story.log == [("empty", 0.0), ("other", 1.0)]


def test_a_small_transfer_ends_although_time_is_too_coarse_to_show_it():
    """A billionth of a second is a few steps of the clock at a million, and less than one step at a billion."""
    story = Story(rate=1e9, start=1e9)
    story.send("a", 1.0)
    story.send("b", 2.0)
    story.env.run()

    assert story.log == [("a", 1e9), ("b", 1e9)]
    assert story.link.moved == 3.0


def test_the_next_transfer_may_start_at_the_end_of_the_last(story):
    story.network.start((story.link,), 100.0, lambda: (story.note("a"), story.send("b", 50.0)))
    story.env.run()

    assert story.log == [("a", 1.0), ("b", 1.5)]


# -------------------------------------------------------------------------------------------------------- plans that change


def test_a_new_rate_holds_from_the_moment_it_is_set(story):
    """100 in the first second, the other 100 at 50."""
    story.send("a", 200.0)
    story.env.at(1.0, story.link.set_rate, 50.0)
    story.env.run()

    assert story.log == [("a", 3.0)]
    assert story.link.rate == 50.0


def test_a_link_that_is_down_holds_its_transfers_and_lets_empty_ones_pass(story):
    story.send("a", 200.0)
    story.env.at(1.0, story.link.set_rate, 0.0)
    story.env.at(2.0, story.send, "empty", 0.0)
    story.env.at(5.0, story.link.set_rate, 100.0)
    story.env.run(until=4.0)
    down = story.link.moved
    story.env.run()

    assert down == 100.0
    assert story.log == [("empty", 2.0), ("a", 6.0)]


def test_a_transfer_whose_last_byte_has_arrived_is_done_even_if_the_link_goes_down_then(story):
    story.env.at(1.0, story.link.set_rate, 0.0)
    story.send("a", 100.0)
    story.env.run()

    assert story.log == [("a", 1.0)]


def test_a_cancelled_transfer_gives_its_share_back_and_its_bytes_stay_counted(story):
    """Both at 50 for 1 s; then *b* has 150 left and the link to itself."""
    a = story.send("a", 500.0)
    story.send("b", 200.0)
    story.env.at(1.0, story.network.cancel, a)
    story.env.run()

    assert story.log == [("b", 2.5)]
    assert story.link.moved == 250.0
    assert a.ended


def test_cancelling_twice_or_after_the_end_changes_nothing(story):
    a = story.send("a", 100.0)
    b = story.send("b", 100.0)
    story.network.cancel(b)
    story.network.cancel(b)
    story.env.run()
    story.network.cancel(a)
    story.send("c", 100.0)
    story.env.run()

    assert story.log == [("a", 1.0), ("c", 2.0)]
    assert story.link.moved == 200.0
    assert story.link.active == 0


def test_an_empty_transfer_can_be_cancelled_before_its_event(story):
    story.network.cancel(story.send("empty", 0.0))
    story.env.run()

    assert story.log == []


def test_the_first_of_two_endings_may_cancel_the_second(story):
    transfers: dict[str, Transfer] = {}
    story.network.start((story.link,), 100.0, lambda: (story.note("a"), story.network.cancel(transfers["b"])))
    transfers["b"] = story.send("b", 100.0)
    story.env.run()

    assert story.log == [("a", 2.0)]
    assert story.link.moved == 200.0


def test_an_error_at_one_ending_loses_none_of_the_others(story):
    def fail() -> None:
        raise KeyError("a")

    story.network.start((story.link,), 100.0, fail)
    story.send("b", 100.0)
    story.send("c", 200.0)
    with pytest.raises(KeyError):
        story.env.run()
    story.env.run()

    assert story.log == [("b", 3.0), ("c", 4.0)]


def test_cancelling_most_of_many_transfers_leaves_the_rest_in_order(story):
    """7 and 500 share no factor, so that the sizes are scattered but each is there once."""
    transfers = [story.send(str(number), 1.0 + number * 7 % 500) for number in range(500)]
    for number, transfer in enumerate(transfers):
        if number % 5:
            story.network.cancel(transfer)
    story.env.run()

    assert [who for who, _ in story.log] == sorted(map(str, range(0, 500, 5)), key=lambda who: int(who) * 7 % 500)


def test_many_cancelled_transfers_are_swept_from_a_busy_link(story):
    story.send("busy", 10_000.0)
    for _ in range(1_000):
        story.network.cancel(story.send("cancelled", 1e12))
    story.env.run(until=0.0)

    assert len(story.link.ends) < 100
    story.env.run()
    assert story.log == [("busy", 100.0)]


# ----------------------------------------------------------------------------------------------------------------- counts


def test_active_and_moved_follow_the_transfers(story):
    seen = []
    for when in (0.0, 0.5, 1.0, 2.0, 3.5, 4.0, 9.0):
        story.env.at(when, lambda: seen.append((story.env.now, story.link.active, story.link.moved)), priority=1)
    story.env.at(0.0, story.send, "a", 100.0)
    story.env.at(1.0, story.send, "b", 100.0)
    story.env.at(3.0, story.send, "c", 100.0)
    story.env.run()

    assert story.log == [("a", 1.0), ("b", 2.0), ("c", 4.0)]
    assert seen == [
        (0.0, 1, 0.0),
        (0.5, 1, 50.0),
        (1.0, 1, 100.0),
        (2.0, 0, 200.0),
        (3.5, 1, 250.0),
        (4.0, 0, 300.0),
        (9.0, 0, 300.0),
    ]


def test_moved_is_the_exact_sum_of_sizes_once_the_link_is_idle():
    story = Story(rate=0.7)
    sizes = [1.0, 3.0, 7.0, 1024.0, 5.0]
    for number, size in enumerate(sizes):
        story.env.at(number / 3, story.send, str(number), size)
    story.env.run()

    assert sum(sizes) == story.link.moved


def test_moved_never_counts_a_byte_twice_where_time_is_coarse():
    """The transfer takes less than one step of the clock, in which the link could move a fifth more than there is."""
    story = Story(rate=1e9, start=1e9)
    seen = []
    story.env.at(math.nextafter(1e9, math.inf), lambda: seen.append(story.link.moved))
    story.send("a", 100.0)
    story.env.run()

    assert seen == [100.0]


def test_an_idle_link_forgets_how_much_it_has_moved_when_it_times_the_next_transfer():
    """Next to a million billion bytes a tenth of one would be lost."""
    story = Story(rate=1e15)
    story.send("large", 1e15)
    story.env.at(2.0, story.link.set_rate, 0.1)
    story.env.at(2.0, story.send, "small", 0.1)
    story.env.run()

    assert story.log == [("large", 1.0), ("small", 3.0)]


def test_a_link_has_one_live_timer_however_many_transfers_it_carries(story):
    for number in range(50):
        story.send(str(number), 100.0 + number)
    story.env.run(until=0.0)
    story.env.cancel(story.link.timer)

    assert math.inf == story.env.peek()


# ---------------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_a_senseless_rate_is_refused_by_name(story, value):
    with pytest.raises(EngineError, match=f"rate of {value}"):
        story.network.link(value)
    with pytest.raises(EngineError, match=f"rate of {value}"):
        story.link.set_rate(value)

    assert story.link.rate == 100.0


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_senseless_size_is_refused_by_name_and_nothing_is_started(story, value):
    with pytest.raises(EngineError, match=f"size of {value}"):
        story.send("a", value)

    assert story.link.rate == 100.0
    assert story.link.active == 0
