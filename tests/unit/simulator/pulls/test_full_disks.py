"""Pulls that find no room. Nothing is unpacked here, so that a layer takes the room of its blob; 100 bytes a second."""

import pytest

from lamina.simulator.pulls import DiskSpec, RuntimeSpec
from lamina.testing import an_image
from tests.unit.simulator.pulls.scene import Node, stack

PLAIN = RuntimeSpec(ratio=0.0, slots=1)
PARALLEL = RuntimeSpec(ratio=0.0, slots=1, parallel_pulls=0)


def disk(capacity: int, **changes: float) -> DiskSpec:
    """A disk that nobody clears unless the test says so."""
    return DiskSpec(**{"capacity": capacity, "high": 2.0, "evict_below": 0.0, **changes})  # type: ignore[arg-type]


def test_a_pull_fails_at_the_layer_there_is_no_room_for_and_leaves_nothing_behind():
    node = Node(runtime=PLAIN, disk=disk(250))
    pull = node.ask(stack("i:1", "a", "b", "c"))
    node.env.run()

    assert [
        ("began, 300 bytes", "i:1", 0.0),
        ("layer", "a", 1.0),
        ("layer", "b", 2.0),
        ("failed until 12, no space left on device", "i:1", 2.0),
    ] == node.log
    assert (1, 200, 0) == (pull.failures, node.puller.pulled_bytes, node.store.used)


def test_what_fits_to_the_last_byte_fits():
    node = Node(runtime=PLAIN, disk=disk(300))
    pull = node.ask(stack("i:1", "a", "b", "c"))
    node.env.run()

    assert (3.0, 300) == (pull.done_at, node.store.used)


def test_room_for_what_a_layer_unpacks_to_is_needed_as_well():
    node = Node(runtime=RuntimeSpec(ratio=2.0, slots=1), disk=disk(299))
    pull = node.ask(stack("i:1", "a"))
    node.env.run()

    assert (1, None) == (pull.failures, pull.done_at)


def test_the_next_in_line_has_its_turn_when_one_fails():
    node = Node(runtime=PLAIN, disk=disk(250))
    node.ask(stack("i:1", "a", "b", "c"))
    second = node.ask(stack("j:1", "d"))
    node.env.run()

    assert (2.0, 3.0) == (second.began_at, second.done_at)


def test_a_pull_that_failed_is_tried_again_when_there_may_be_room():
    """It fails at 0 and rests until 10, but nothing has changed by then; the image that is in its way goes at 25."""
    node = Node(stack("old:1", "d", "e"), runtime=PLAIN, disk=disk(350))
    pull = node.ask(stack("i:1", "a", "b"))
    node.env.at(25.0, lambda: node.store.remove(stack("old:1", "d", "e").digest))
    node.env.run()

    assert ("failed until 11, no space left on device", "i:1", 1.0) in node.log
    assert (31.0, 33.0) == (pull.began_at, pull.done_at)  # 11, and 20 s later


def test_a_pull_that_can_never_succeed_does_not_keep_a_run_going():
    node = Node(runtime=PLAIN, disk=disk(50))
    node.ask(stack("i:1", "a"))
    node.env.run()

    assert 10.0 == node.env.now


def test_many_that_want_what_can_never_succeed_do_not_keep_a_run_going():
    """Each lets go of what the next one waits for, so each time a little room becomes free."""
    node = Node(runtime=RuntimeSpec(ratio=0.0, slots=1, parallel_pulls=0, lazy=0.5), disk=disk(150))
    pulls = [node.ask(stack("i:1", "a", "b", "c")) for _ in range(5)]
    node.env.run()

    assert {None} == {pull.done_at for pull in pulls}
    assert (0, True) == (node.store.used, node.env.now < 1000.0)


def test_two_pulls_that_failed_do_not_wake_each_other_for_ever():
    node = Node(runtime=PARALLEL, disk=disk(250))
    pulls = [node.ask(stack("i:1", "a", "b", "c")), node.ask(stack("j:1", "d", "e", "lib"))]
    node.env.run()

    assert [None, None] == [pull.done_at for pull in pulls]
    assert node.env.now < 100.0
    assert 0 == node.store.used


def test_a_pull_that_failed_lets_go_of_what_others_wait_for_and_they_go_on():
    """The second waits for the first's layers; the first fails at its third, and the second has room enough."""
    node = Node(runtime=PARALLEL, disk=disk(250))
    node.ask(stack("i:1", "a", "b", "c"))
    second = node.ask(stack("j:1", "a", "b"))
    node.env.run()

    assert (2.0, 200) == (second.done_at, node.store.used)


def test_a_download_that_another_pull_waits_for_goes_on_for_that_one():
    """The first has no room for its third layer while its first is under way; the second has that one too."""
    node = Node(runtime=RuntimeSpec(ratio=0.0, slots=2, parallel_pulls=0), disk=disk(400))
    first = node.ask(an_image("i:1", {"base": 300, "a": 10, "lib": 1000}))
    second = node.ask(an_image("j:1", {"b": 10, "base": 300}))
    node.env.run()

    assert (2, 10) == (first.failures, first.downloaded)  # again when the second was done, in vain
    assert pytest.approx((0, 310, 3.2)) == (second.failures, second.downloaded, second.done_at)


def test_a_pull_nobody_waits_for_is_not_tried_again():
    node = Node(runtime=PLAIN, disk=disk(150))
    pull = node.ask(stack("i:1", "a", "b"))
    node.env.at(0.5, node.puller.cancel, pull)
    node.env.run()

    assert (1.0, 1) == (node.env.now, pull.failures)


def test_a_lazy_pull_that_fails_leaves_nothing_behind():
    node = Node(runtime=RuntimeSpec(slots=1, lazy=0.5), disk=disk(250))
    node.ask(stack("i:1", "a", "b", "c"))
    node.env.run()

    assert (0, 0, {}) == (node.store.used, node.puller.pulled_bytes, node.store.blobs)


def test_a_pull_without_room_makes_the_kubelet_remove_what_nobody_uses():
    """The eviction manager looks every 10 s; the disk is never under its threshold, and still the pull needs room."""
    node = Node(stack("old:1", "d", "e"), runtime=PLAIN, disk=disk(350, evict_below=0.1, evict_every=10.0))
    pull = node.ask(stack("i:1", "a", "b"))
    node.env.run()

    removed = next(at for what, _, at in node.log if what == "pressure, 200 bytes")
    assert 1.0 < removed <= 11.0
    assert 11.0 == pull.began_at
    assert 13.0 == pull.done_at
