"""Transfers that say when they had moved so many bytes: a node of 100 bytes a second behind a registry."""

import pytest

from lamina.simulator.engine import Environment, Link, Network, Transfer
from lamina.simulator.engine.link import FEW_CHANGES


class Story:
    """One node, a registry whose rate matters, and transfers with marks."""

    def __init__(self, registry: float = 1000.0) -> None:
        self.env = Environment()
        self.network = Network(self.env)
        self.node = self.network.link(100.0)
        self.registry = self.network.link(registry)

    def send(self, size: float, *marks: float, path: tuple[Link, ...] | None = None) -> Transfer:
        return self.network.start(path or (self.node, self.registry), size, len, "", marks=marks)


def test_at_one_rate_marks_are_reached_in_proportion():
    story = Story()
    transfer = story.send(400.0, 0.0, 100.0, 300.0, 400.0)
    story.env.run()

    assert [0.0, 1.0, 3.0, 4.0] == transfer.reached


def test_another_transfer_slows_down_what_comes_after_it():
    story = Story()
    transfer = story.send(400.0, 100.0, 200.0, 400.0)
    story.env.at(1.0, story.send, 100.0)
    story.env.run()

    # 50 a second from 1 to 3, until the other has its 100 bytes; then 100 again.
    assert pytest.approx([1.0, 3.0, 5.0]) == transfer.reached


def test_a_mark_that_a_halted_transfer_has_just_reached_counts_from_then_on():
    story = Story()
    transfer = story.send(400.0, 200.0, 201.0)
    story.env.at(2.0, story.node.set_rate, 0.0)
    story.env.at(7.0, story.node.set_rate, 100.0)
    story.env.run()

    assert pytest.approx([2.0, 7.01]) == transfer.reached


def test_what_moves_from_link_to_link_keeps_its_marks():
    """Held back by the registry at 50 from the first second on, by the node again from the third."""
    story = Story()
    transfer = story.send(400.0, 50.0, 150.0, 200.0, 300.0)
    story.env.at(1.0, story.registry.set_rate, 50.0)
    story.env.at(3.0, story.registry.set_rate, 1000.0)
    story.env.run()

    assert pytest.approx([0.5, 2.0, 3.0, 4.0]) == transfer.reached


@pytest.mark.parametrize(
    ("size", "rate"),
    [pytest.param(0.0, 100.0, id="no bytes"), pytest.param(400.0, float("inf"), id="no limit")],
)
def test_what_takes_no_time_reaches_all_marks_at_once(size, rate):
    story = Story()
    transfer = story.send(size, 0.0, size, path=(story.network.link(rate),))
    story.env.run()

    assert [0.0, 0.0] == transfer.reached


def test_a_limit_that_is_lifted_leaves_the_marks_that_were_reached_before():
    story = Story()
    transfer = story.send(400.0, 100.0, 300.0, path=(story.node,))
    story.env.at(2.0, story.node.set_rate, float("inf"))
    story.env.run()

    assert [1.0, 2.0] == transfer.reached


def test_moved_says_how_far_it_has_come():
    story = Story()
    transfer = story.send(400.0)
    seen = []
    for when in (0.0, 1.5, 4.5):
        story.env.at(when, lambda: seen.append(transfer.moved))
    story.env.run()

    assert [0.0, 150.0, 400.0] == seen


def test_a_link_that_never_rests_forgets_what_nobody_asks_for():
    """One without marks all the time, and two that come again and again: of use is what was since the older began."""
    story = Story()
    story.send(1e6, path=(story.node,))
    most = 0

    def again(left: int, size: float) -> None:
        if left:
            story.network.start((story.node,), size, rest, left - 1, size, marks=(1.0,))

    def rest(left: int, size: float) -> None:
        nonlocal most
        most = max(most, len(story.node.times))
        story.env.after(0.001, again, left, size)

    again(2 * FEW_CHANGES, 1.0)
    again(2 * FEW_CHANGES, 1.7)
    story.env.run()

    assert FEW_CHANGES == most
    assert [] == story.node.times


def test_a_link_remembers_for_as_long_as_somebody_may_ask():
    story = Story()
    long = story.send(20.0 * FEW_CHANGES, 1.0, 20.0 * FEW_CHANGES, path=(story.node,))

    def again(left: int) -> None:
        if left:
            story.network.start((story.node,), 1.0, again, left - 1)

    story.env.at(0.5, again, 4 * FEW_CHANGES)
    story.env.run()

    assert pytest.approx([0.01, 240 / 1000 * FEW_CHANGES]) == long.reached
