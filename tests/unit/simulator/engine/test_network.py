"""Several links shared max-min fairly: who is held back where, and what a change in one place means in another."""

import math

import pytest

from lamina.simulator.engine import EngineError, Environment, Link, Network, Transfer

Log = list[tuple[str, float]]


class Story:
    """Two nodes of 100, a registry whose rate matters, and a log of (who, when)."""

    def __init__(self, registry: float = 1000.0) -> None:
        self.env = Environment()
        self.network = Network(self.env)
        self.a = self.network.link(100.0)
        self.b = self.network.link(100.0)
        self.registry = self.network.link(registry)
        self.log: Log = []

    def note(self, who: str) -> None:
        self.log.append((who, self.env.now))

    def send(self, who: str, size: float, *path: Link) -> Transfer:
        return self.network.start(path, size, self.note, who)


# ----------------------------------------------------------------------------------------------------- who is held back


@pytest.mark.parametrize(
    ("registry", "log"),
    [
        pytest.param(1000.0, [("a", 2.0), ("b", 2.0)], id="not full: each node at its own 100"),
        pytest.param(200.0, [("a", 2.0), ("b", 2.0)], id="just full: still 100 each"),
        pytest.param(100.0, [("a", 4.0), ("b", 4.0)], id="full: 50 each"),
    ],
)
def test_nodes_share_the_registry_only_when_it_is_full(registry, log):
    story = Story(registry)
    story.send("a", 200.0, story.a, story.registry)
    story.send("b", 200.0, story.b, story.registry)
    story.env.run()

    assert log == story.log


def test_what_one_node_cannot_use_the_others_get():
    """*b* is a node of 20, so *a* has the other 90 of the registry's 110."""
    story = Story(registry=110.0)
    story.b.set_rate(20.0)
    story.send("a", 180.0, story.a, story.registry)
    story.send("b", 40.0, story.b, story.registry)
    story.env.run(until=1.0)
    moved = (story.a.moved, story.b.moved, story.registry.moved)
    story.env.run()

    assert moved == (90.0, 20.0, 110.0)
    assert story.log == [("a", 2.0), ("b", 2.0)]


def test_a_full_registry_is_shared_by_transfers_and_not_by_nodes():
    """Three transfers at 50: two of them on *a*, whose 100 is just enough."""
    story = Story(registry=150.0)
    for who in ("a1", "a2"):
        story.send(who, 100.0, story.a, story.registry)
    story.send("b", 100.0, story.b, story.registry)
    story.env.run()

    assert story.log == [("a1", 2.0), ("a2", 2.0), ("b", 2.0)]


def test_a_transfer_past_the_registry_takes_what_the_registry_leaves_on_the_node():
    """The registry gives 20 to *far*; *near* has the other 80 of the node's link."""
    story = Story(registry=20.0)
    story.send("far", 40.0, story.a, story.registry)
    story.send("near", 160.0, story.a)
    story.env.run()

    assert story.log == [("far", 2.0), ("near", 2.0)]


def test_a_node_joins_and_leaves_a_full_registry():
    """Alone *a* has its 100; from 1 s both have 60; *a* is done with 160 at 2 s, and *b* has its 100 for the last 100."""
    story = Story(registry=120.0)
    story.send("a", 160.0, story.a, story.registry)
    story.env.at(1.0, story.send, "b", 160.0, story.b, story.registry)
    story.env.run()

    assert story.log == [("a", 2.0), ("b", 3.0)]


def test_a_link_between_node_and_registry_holds_back_only_those_behind_it():
    """Two behind an uplink of 60 get 30 each; the third has 90 of the registry's 150 and would have 50 otherwise."""
    story = Story(registry=150.0)
    uplink, far = story.network.link(60.0), story.network.link(100.0)
    story.send("a", 60.0, story.a, uplink, story.registry)
    story.send("b", 60.0, story.b, uplink, story.registry)
    story.send("far", 180.0, far, story.registry)
    story.env.run()

    assert story.log == [("a", 2.0), ("b", 2.0), ("far", 2.0)]


def test_what_is_held_back_moves_from_link_to_link_as_rates_change():
    """10 a second at the registry, then 100 at the node, then 5 at the registry again."""
    story = Story(registry=10.0)
    story.send("a", 120.0, story.a, story.registry)
    story.env.at(1.0, story.registry.set_rate, 500.0)
    story.env.at(2.0, story.registry.set_rate, 5.0)
    story.env.run()

    assert story.log == [("a", 4.0)]


def test_a_registry_that_is_down_stops_its_own_and_gives_the_node_to_the_others():
    story = Story()
    story.send("far", 100.0, story.a, story.registry)
    story.send("near", 100.0, story.a)
    story.registry.set_rate(0.0)
    story.env.at(5.0, story.registry.set_rate, 50.0)
    story.env.run()

    assert story.log == [("near", 1.0), ("far", 7.0)]


def test_cancelling_on_one_node_speeds_up_another():
    story = Story(registry=100.0)
    story.send("a", 100.0, story.a, story.registry)
    other = story.send("b", 1e6, story.b, story.registry)
    story.env.at(1.0, story.network.cancel, other)
    story.env.run()

    assert story.log == [("a", 1.5)]
    assert (story.a.moved, story.b.moved, story.registry.moved) == (100.0, 50.0, 150.0)
    assert (story.a.active, story.b.active, story.registry.active) == (0, 0, 0)


# ------------------------------------------------------------------------------------------------------------- no limit


def test_a_link_without_limit_counts_and_never_holds_back():
    story = Story(registry=math.inf)
    story.send("a", 100.0, story.a, story.registry)
    story.env.run(until=0.5)
    half = story.registry.moved
    story.env.run()

    assert story.log == [("a", 1.0)]
    assert (half, story.registry.moved) == (50.0, 100.0)


@pytest.mark.parametrize("links", [0, 1, 2])
def test_a_transfer_that_nothing_holds_back_is_done_now_but_not_at_once(links):
    story = Story()
    path = [story.network.link(math.inf) for _ in range(links)]
    story.send("a", 100.0, *path)
    before = list(story.log)
    story.env.run()

    assert before == []
    assert story.log == [("a", 0.0)]
    assert [100.0] * links == [link.moved for link in path]


def test_a_limit_that_is_lifted_ends_what_it_alone_held_back():
    story = Story()
    story.send("near", 1000.0, story.a)
    story.send("far", 1000.0, story.a, story.registry)
    story.registry.set_rate(50.0)
    story.env.at(1.0, story.a.set_rate, math.inf)
    story.env.run()

    assert story.log == [("near", 1.0), ("far", 20.0)]
    assert story.a.moved == 2000.0
    assert story.registry.moved == 1000.0


def test_a_limit_may_be_lifted_in_the_instant_in_which_it_would_begin_to_hold_back():
    """Only *near* is held back by nothing else; *a1* and *a2* go on at the 25 of the registry."""
    story = Story(registry=50.0)
    story.a.set_rate(10.0)
    story.send("near", 100.0, story.a)
    story.send("a1", 100.0, story.a, story.registry)
    story.send("a2", 100.0, story.a, story.b, story.registry)
    story.a.set_rate(math.inf)
    story.env.run()

    assert story.log == [("near", 0.0), ("a1", 4.0), ("a2", 4.0)]
    assert (story.a.moved, story.b.moved, story.registry.moved) == (300.0, 100.0, 200.0)


def test_a_limit_that_is_set_holds_from_that_moment():
    story = Story(registry=math.inf)
    story.send("a", 150.0, story.a, story.registry)
    story.env.at(1.0, story.registry.set_rate, 10.0)
    story.env.run()

    assert story.log == [("a", 6.0)]


# -------------------------------------------------------------------------------------------------------- one instant


def test_transfers_done_at_one_time_on_different_links_are_called_in_the_order_of_their_start():
    """The second timer of *a* is set last, at 1 s, and all are done at 2 s."""
    story = Story()
    story.send("first", 100.0, story.a)
    story.send("second", 200.0, story.b)
    other = story.send("cancelled", 1e6, story.a)
    story.env.at(1.0, story.network.cancel, other)
    story.env.at(1.0, story.send, "third", 50.0, story.a)
    story.env.at(1.0, story.a.set_rate, 100.0)
    story.env.run()

    assert story.log == [("first", 2.0), ("second", 2.0), ("third", 2.0)]


def test_an_empty_transfer_comes_after_those_that_were_started_before_and_are_done_now():
    story = Story()
    story.env.at(1.0, story.send, "empty", 0.0, story.a)
    story.send("a", 100.0, story.a)
    story.env.run()

    assert story.log == [("a", 1.0), ("empty", 1.0)]


def test_the_first_ending_on_one_link_may_cancel_one_on_another():
    story = Story()
    others: list[Transfer] = []

    def done() -> None:
        story.note("a")
        story.network.cancel(others[0])

    story.network.start((story.a,), 100.0, done)
    others.append(story.send("b", 100.0, story.b))
    story.env.run()

    assert story.log == [("a", 1.0)]
    assert story.b.moved == 100.0


def test_a_stopped_network_does_not_move_the_clock():
    story = Story(registry=50.0)
    story.send("a", 100.0, story.a, story.registry)
    story.env.at(1.0, story.registry.set_rate, 0.0)
    story.env.run()

    assert story.log == []
    assert story.env.now == 1.0


# ------------------------------------------------------------------------------------------------------------- at scale


def test_a_full_registry_has_one_live_timer_however_many_nodes_it_holds_back():
    story = Story(registry=10.0)
    for number in range(50):
        story.send(str(number), 100.0 + number, story.network.link(100.0), story.registry)
    story.env.run(until=0.0)
    story.env.cancel(story.registry.timer)

    assert math.inf == story.env.peek()


def test_a_start_on_one_node_touches_no_other_node_while_the_registry_is_not_full():
    story = Story()
    story.send("b", 1e6, story.b, story.registry)
    story.env.run(until=1.0)
    for _ in range(5):
        story.send("a", 1e6, story.a, story.registry)

    assert (story.b.read_at, story.a.read_at) == (0.0, 1.0)


def test_starting_and_cancelling_for_ever_keeps_nothing():
    story = Story(registry=50.0)
    story.send("b", 1e9, story.b, story.registry)
    for _ in range(1_000):
        story.network.cancel(story.send("a", 1e9, story.a, story.registry))
        story.env.run(until=story.env.now + 0.001)

    assert len(story.registry.ends) < 100
    assert len(story.registry.captives) < 100
    assert (story.registry.active, story.a.active) == (1, 0)


# ---------------------------------------------------------------------------------------------------- what is refused


def test_a_path_that_names_a_link_twice_is_refused():
    story = Story()
    with pytest.raises(EngineError, match="names a link twice"):
        story.send("a", 100.0, story.a, story.registry, story.a)

    assert (story.a.active, story.registry.active) == (0, 0)
