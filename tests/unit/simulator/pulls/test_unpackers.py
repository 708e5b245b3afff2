"""Unpacking takes time, bottom up, while later layers are still on their way."""

import pytest

from lamina.model.image import Image, Layer
from lamina.simulator.pulls import CONTAINERD, RuntimeSpec
from lamina.testing import a_digest, an_image
from tests.unit.simulator.pulls.scene import Node, stack

# 100 bytes download in a second, and unpack from 200 bytes in two.
SLOW = RuntimeSpec(slots=1, ratio=2.0, unpack_rate=100.0)


def replaced(**changes: object) -> RuntimeSpec:
    import msgspec

    return msgspec.structs.replace(SLOW, **changes)


@pytest.mark.parametrize(
    ("runtime", "layers", "done"),
    [
        # Downloaded at 1, 2, 3; unpacked 1-3, 3-5, 5-7.
        pytest.param(SLOW, "abc", 7.0, id="one thread is the bottleneck"),
        # Downloaded at 1, 2, 3; unpacked 1-1.5, 2-2.5, 3-3.5.
        pytest.param(replaced(unpack_rate=400.0), "abc", 3.5, id="the link is the bottleneck"),
        # 1-3.25, 3.25-5.5
        pytest.param(replaced(layer_overhead=0.25), "ab", 5.5, id="every layer has a price of its own"),
        # Unpacked 1-3, 2-4, 3-5.
        pytest.param(replaced(unpack_threads=2), "abc", 5.0, id="two threads"),
        # Unpacked 1-3, 2-4, 3-5.
        pytest.param(replaced(unpack_threads=3), "abc", 5.0, id="three threads"),
        pytest.param(replaced(unpack_rate=0.0), "abc", 3.0, id="free"),
        pytest.param(replaced(unpack_rate=0.0, layer_overhead=2.0), "abc", 7.0, id="overhead only"),
        # On a disk of 100 bytes a second one thread is as fast as it would be alone.
        pytest.param(replaced(disk_rate=100.0), "abc", 7.0, id="a disk as fast as the thread"),
        # 1-5, 5-9
        pytest.param(replaced(disk_rate=50.0), "ab", 9.0, id="a disk that is slower"),
        # 1-1.5, 2-2.5
        pytest.param(replaced(unpack_rate=0.0, disk_rate=400.0), "ab", 2.5, id="a disk and threads without a limit"),
        # 200 bytes alone for 1 s: 100 left; both at 50: a done at 4 (2 + 100 / 50), b has 100 left: 5
        pytest.param(replaced(unpack_threads=2, disk_rate=100.0), "ab", 5.0, id="two threads on one disk"),
    ],
)
def test_an_image_is_there_when_its_last_layer_is_unpacked(runtime, layers, done):
    node = Node(runtime=runtime)
    pull = node.ask(stack("i:1", *layers))
    node.env.run()

    assert (float(len(layers)), done) == (pull.downloaded_at, pull.done_at)


def test_layers_that_arrive_early_wait_for_those_below():
    """The small one is there at 2 and unpacked after the large one, which is there at 6."""
    node = Node(runtime=replaced(slots=3, unpack_rate=1000.0))
    pull = node.ask(an_image("i:1", {"base": 500, "a": 100}))
    node.env.run()

    assert pytest.approx((6.0, 7.2)) == (pull.downloaded_at, pull.done_at)  # + (1000 + 200) / 1000


def test_several_threads_unpack_a_layer_when_it_arrives_and_commit_it_when_its_turn_comes():
    """The small one is unpacked at 2.2 and waits for the large one, which is there at 6 and unpacked at 7."""
    node = Node(runtime=replaced(slots=3, unpack_rate=1000.0, unpack_threads=2))
    pull = node.ask(an_image("i:1", {"base": 500, "a": 100}))
    node.env.run()

    assert pytest.approx((6.0, 7.0)) == (pull.downloaded_at, pull.done_at)


def test_a_layer_unpacks_to_what_it_says():
    image = Image(a_digest("i"), (Layer(a_digest("a"), 100, unpacked=500),), ("i:1",))
    node = Node(runtime=SLOW)
    pull = node.ask(image)
    node.env.run()

    assert 6.0 == pull.done_at  # 100 / 100 + 500 / 100


def test_a_blob_that_is_there_is_unpacked_at_once_where_it_is_needed_again():
    node = Node(stack("i:1", "a", "b"), runtime=SLOW)
    pull = node.ask(stack("j:1", "b"))
    node.env.run()

    assert (0, 0.0, 2.0) == (pull.downloaded, pull.downloaded_at, pull.done_at)


def test_a_serial_pull_holds_the_queue_while_it_unpacks():
    node = Node(runtime=SLOW)
    node.ask(stack("i:1", "a"))
    second = node.ask(stack("j:1", "b"))
    node.env.run()

    assert (3.0, 6.0) == (second.began_at, second.done_at)


@pytest.mark.parametrize("disk", [pytest.param(0.0, id="own threads"), pytest.param(100.0, id="a disk to share")])
def test_a_chain_that_another_pull_unpacks_is_waited_for(disk):
    """Ours begins when the shared layer is committed at 3; only then is its own layer downloaded."""
    node = Node(runtime=replaced(parallel_pulls=0, disk_rate=disk))
    first = node.ask(stack("i:1", "a"))
    second = node.ask(stack("j:1", "a", "b"))
    node.env.run()

    assert (3.0, 4.0, 6.0) == (first.done_at, second.downloaded_at, second.done_at)
    assert (100, 100) == (first.downloaded, second.downloaded)


def test_whoever_comes_while_a_chain_is_unpacked_waits_for_its_end():
    node = Node(runtime=replaced(parallel_pulls=0))
    node.ask(stack("i:1", "a", "b"))
    late = []
    node.env.at(2.5, lambda: late.append(node.ask(stack("j:1", "a"))))
    node.env.run()

    assert (2.5, 3.0) == (late[0].began_at, late[0].done_at)


def test_a_shared_chain_counts_as_soon_as_it_is_committed_although_its_pull_goes_on():
    node = Node(runtime=replaced(parallel_pulls=0))
    first = node.ask(stack("i:1", "a", "b", "c"))
    late = []
    node.env.at(4.0, lambda: late.append(node.ask(stack("j:1", "a"))))
    node.env.run()

    assert (4.0, 7.0) == (late[0].done_at, first.done_at)
    assert node.store.used == 3 * 100 + 3 * 200


def test_threads_of_all_images_share_the_disk():
    """Two images, 200 unpacked bytes each at 50 bytes a second; apart they would take 2 s, together 4."""
    node = Node(runtime=replaced(parallel_pulls=0, disk_rate=100.0))
    pulls = [node.ask(stack(f"{name}:1", name)) for name in "ab"]
    node.env.run()

    assert [6.0, 6.0] == [pull.done_at for pull in pulls]  # both there at 2


def test_a_node_that_is_gone_unpacks_nothing_more():
    node = Node(runtime=replaced(disk_rate=50.0, layer_overhead=1.0))
    node.ask(stack("i:1", "a", "b"))
    node.env.at(3.0, node.puller.stop)
    node.env.run()

    assert (3.0, 0) == (node.env.now, node.store.used)


def test_what_a_scenario_gets_that_says_nothing_is_bound_by_unpacking():
    """100 MB at 1 Gbit/s and 230 MB at 100 MB/s: 0.2 + 0.8 + 2.3 + 0.04 s; at 100 bytes a second it is the network."""
    node = Node(runtime=CONTAINERD)
    node.puller._source.link.set_rate(125e6)
    pull = node.ask(an_image("i:1", {"a": 100_000_000}))
    node.env.run()

    assert pytest.approx(3.34) == pull.done_at
