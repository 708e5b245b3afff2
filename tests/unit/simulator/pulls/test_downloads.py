"""Slots, sharing and laziness: what a runtime downloads when. Unpacking is free here."""

import pytest

from lamina.simulator.pulls import RuntimeSpec
from lamina.testing import an_image
from tests.unit.simulator.pulls.scene import API, WEB, Node, stack

PARALLEL = RuntimeSpec(parallel_pulls=0)


@pytest.mark.parametrize(
    ("slots", "arrivals"),
    [
        pytest.param(1, [1.0, 2.0, 3.0, 4.0], id="one after the other"),
        pytest.param(3, [3.0, 3.0, 3.0, 4.0], id="three share the link, the fourth has it for itself"),
        pytest.param(0, [4.0, 4.0, 4.0, 4.0], id="no limit"),
    ],
)
def test_as_many_layers_are_downloaded_at_once_as_there_are_slots(slots, arrivals):
    node = Node(runtime=RuntimeSpec(slots=slots, parallel_pulls=0))
    node.ask(stack("i:1", "a", "b", "c", "d"))
    node.env.run()

    assert [(name, at) for name, at in zip("abcd", arrivals, strict=True)] == list(node.times("layer").items())


@pytest.mark.parametrize(
    ("per", "at_once", "order"),
    [
        pytest.param("image", 2, "adbec", id="of each image: both begin with their first layer"),
        # The second image comes when the first has its slot and waits for the next.
        pytest.param("node", 1, "abdce", id="of the node: images take turns"),
    ],
)
def test_slots_belong_to_an_image_or_to_the_node(per, at_once, order):
    """With one slot, two images download two layers at once, or one."""
    node = Node(runtime=RuntimeSpec(parallel_pulls=0, slots=1, slots_per=per))
    node.ask(stack("i:1", "a", "b", "c"))
    node.ask(stack("j:1", "d", "e"))
    node.env.run(until=0.5)
    seen = node.puller._source.link.active
    node.env.run()

    assert (at_once, list(order)) == (seen, list(node.times("layer")))
    assert 5.0 == node.env.now


@pytest.mark.parametrize(
    ("rate", "slots", "done"),
    [
        pytest.param(25.0, 3, 8.0, id="three connections together are slower than the link"),  # 4 s each, and once more
        pytest.param(25.0, 1, 16.0, id="one connection"),
        pytest.param(50.0, 3, 5.0, id="three are as fast as the link, one is not"),  # 3 s for three, 100 / 50 for one
        pytest.param(1000.0, 3, 4.0, id="the link is the limit"),
    ],
)
def test_one_download_gets_no_more_than_a_connection_carries(rate, slots, done):
    node = Node(runtime=RuntimeSpec(slots=slots, connection_rate=rate))
    pull = node.ask(stack("i:1", "a", "b", "c", "d"))
    node.env.run()

    assert pytest.approx(done) == pull.done_at


def test_only_so_many_images_are_pulled_at_once():
    node = Node(runtime=RuntimeSpec(parallel_pulls=2))
    pulls = [node.ask(stack(f"{name}:1", name)) for name in "abc"]
    node.env.run()

    assert [0.0, 0.0, 2.0] == [pull.began_at for pull in pulls]
    assert [2.0, 2.0, 3.0] == [pull.done_at for pull in pulls]


def test_a_pull_waits_for_layers_that_another_is_bringing_and_then_goes_on():
    """As in containerd: below its first own layer it only waits, and downloads nothing."""
    node = Node(runtime=PARALLEL)
    first, second = node.ask(WEB, "a"), node.ask(API, "b")
    node.env.run()

    assert [
        ("began, 800 bytes", "web:1", 0.0),
        ("began, 100 bytes", "api:1", 0.0),
        ("layer", "web", 4.0),
        ("layer", "base", 8.0),
        ("done", "web:1", 8.0),
        ("ready", "a", 8.0),
        ("layer", "api", 9.0),
        ("done", "api:1", 9.0),
        ("ready", "b", 9.0),
    ] == node.log
    assert (800, 100) == (first.downloaded, second.downloaded)


def test_a_blob_at_another_place_is_waited_for_and_unpacked_again():
    node = Node(runtime=PARALLEL)
    first, second = node.ask(stack("i:1", "a", "b")), node.ask(stack("j:1", "c", "b"))
    node.env.run()

    assert (200, 100) == (first.downloaded, second.downloaded)
    assert [3.0, 3.0] == [first.done_at, second.done_at]
    assert (3, 4) == (len(node.store.blobs), len(node.store.chains))


def test_the_same_image_asked_for_twice_at_once_is_pulled_once():
    node = Node(runtime=PARALLEL)
    first, second = node.ask(API), node.ask(API)
    node.env.run()

    assert (700, 0, 7.0, 7.0) == (first.downloaded, second.downloaded, first.done_at, second.done_at)
    assert 1 == node.puller.pulled_images


@pytest.mark.parametrize(
    ("reuse", "downloaded", "kept"),
    [
        pytest.param("set", 100, ["a", "b", "c"], id="set: a blob that is there is not downloaded again"),
        pytest.param("prefix", 200, [], id="prefix: no blob is kept, and other positions save nothing"),
    ],
)
def test_what_a_scattered_layer_saves_depends_on_the_runtime(reuse, downloaded, kept):
    node = Node(runtime=RuntimeSpec(reuse=reuse))
    node.ask(stack("i:1", "a", "b"))
    pull = node.ask(stack("j:1", "c", "b"))
    node.env.run()

    assert downloaded == pull.downloaded
    assert len(kept) == len(node.store.blobs)
    assert 4 == len(node.store.chains)


def test_a_shared_prefix_is_saved_by_every_runtime():
    node = Node(WEB, runtime=RuntimeSpec(reuse="prefix"))
    pull = node.ask(API)
    node.env.run()

    assert (100, 1.0) == (pull.downloaded, pull.done_at)


# ---------------------------------------------------------------------------------------------------------------- lazy


def test_a_lazy_pull_is_done_when_its_share_is_there_and_the_rest_follows():
    node = Node(runtime=RuntimeSpec(lazy=0.1))
    pull = node.ask(stack("i:1", "a", "b", size=500), "a")
    node.env.run()

    assert [
        ("began, 1000 bytes", "i:1", 0.0),
        ("done", "i:1", 1.0),  # a tenth of 1000 / 100
        ("ready", "a", 1.0),
        ("layer", "a", 10.0),
        ("layer", "b", 10.0),
    ] == node.log
    assert (1.0, 1.0, 1000) == (pull.downloaded_at, pull.done_at, pull.downloaded)


def test_what_follows_a_lazy_start_takes_its_part_of_the_link():
    node = Node(runtime=RuntimeSpec(lazy=0.1))
    node.ask(stack("i:1", "a", size=1000))
    second = node.ask(stack("j:1", "b", size=1000))
    node.env.run()

    assert 3.0 == second.done_at  # 1 s for the first, then 100 bytes at 50 bytes per second
    assert 20.0 == node.env.now


def test_two_lazy_pulls_that_want_each_others_layers_do_not_wait_for_ever():
    node = Node(runtime=RuntimeSpec(lazy=0.5, parallel_pulls=0, slots=1))
    node.ask(stack("i:1", "a", "b"))
    node.ask(stack("j:1", "b", "a"))
    node.env.run()

    assert {"i:1", "j:1"} == set(node.times("done"))
    assert 200 == node.puller.pulled_bytes


def test_a_node_that_goes_while_the_rest_of_a_lazy_pull_follows_keeps_the_image_without_it():
    node = Node(runtime=RuntimeSpec(lazy=0.1))
    image = stack("i:1", "a", "b", size=500)
    node.ask(image)
    node.env.at(5.0, node.puller.stop)
    node.env.run()

    assert (5.0, 0, 0) == (node.env.now, node.store.used, node.puller.pulled_bytes)
    assert node.store.holds(image.digest)


def test_a_layer_of_no_bytes_can_be_lazy_too():
    node = Node(runtime=RuntimeSpec(lazy=0.1))
    pull = node.ask(an_image("i:1", {"empty": 0}))
    node.env.run()

    assert 0.0 == pull.done_at
    assert ("layer", "empty", 0.0) in node.log
