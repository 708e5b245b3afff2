"""Memory in front of a disk: the first bytes are unpacked as fast as threads can, the others as fast as the disk."""

import pytest

from lamina.simulator.pulls import RuntimeSpec
from tests.unit.simulator.pulls.scene import Node, stack

# A thread writes 200 bytes a second and the disk 50; what is downloaded takes no time to speak of.
CACHED = RuntimeSpec(ratio=1.0, unpack_rate=200.0, disk_rate=50.0, write_cache=300)


def a_node(runtime: RuntimeSpec) -> Node:
    node = Node(runtime=runtime)
    node.puller._source.link.set_rate(1e12)
    return node


@pytest.mark.parametrize(
    ("size", "seconds"),
    [
        pytest.param(100, 0.5, id="memory takes it all in: 100 / 200"),
        # Memory grows by 150 a second and is full after 2 s; 400 bytes are written by then.
        pytest.param(400, 2.0, id="just so much"),
        pytest.param(500, 4.0, id="the last 100 as fast as the disk"),
    ],
)
def test_writers_run_ahead_of_the_disk_until_memory_is_full(size, seconds):
    node = a_node(CACHED)
    pull = node.ask(stack("i:1", "a", size=size))
    node.env.run()

    assert pytest.approx(seconds) == pull.done_at


def test_memory_empties_while_nobody_writes():
    """Full at 2 s, when the first image is there; empty 6 s later; then the second finds it as the first did."""
    node = a_node(CACHED)
    node.ask(stack("i:1", "a", size=400))
    late = []
    node.env.at(8.0, lambda: late.append(node.ask(stack("j:1", "b", size=400))))
    node.env.run()

    assert pytest.approx(10.0) == late[0].done_at


def test_without_a_pause_the_second_image_has_the_disk_only():
    node = a_node(CACHED)
    node.ask(stack("i:1", "a", size=400))
    second = node.ask(stack("j:1", "b", size=400))
    node.env.run()

    assert pytest.approx(2.0 + 8.0) == second.done_at


def test_a_node_that_goes_stops_writing():
    node = a_node(CACHED)
    node.ask(stack("i:1", "a", size=1000))
    node.env.at(1.0, node.puller.stop)
    node.env.run()

    assert (1.0, 0) == (node.env.now, node.store.used)
