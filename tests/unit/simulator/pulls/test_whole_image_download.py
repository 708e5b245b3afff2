"""Pulls as one download: when that is done, what it means for those that share a link, and for the disk."""

import pytest

from lamina.simulator.engine import Environment, Network
from lamina.simulator.pulls import DiskSpec, LayerSources, NodeImageStore, Puller, RuntimeSpec
from lamina.simulator.pulls.whole_image_download import is_alone
from tests.unit.simulator.pulls.scene import WEB, Described, Node, Scribe, stack


@pytest.mark.parametrize(
    ("spec", "alone"),
    [
        pytest.param(RuntimeSpec(), True, id="one image at a time"),
        pytest.param(RuntimeSpec(slots_per="node"), True, id="slots of the node are all the image's then"),
        pytest.param(RuntimeSpec(parallel_pulls=2), False, id="several at a time"),
        pytest.param(RuntimeSpec(parallel_pulls=0), False, id="any number at a time"),
        pytest.param(RuntimeSpec(unpack_threads=2), False, id="several threads"),
        pytest.param(RuntimeSpec(disk_rate=1.0), False, id="a disk that threads share"),
        pytest.param(RuntimeSpec(lazy=0.1), False, id="lazy"),
        pytest.param(RuntimeSpec(peers=True), False, id="peers"),
        pytest.param(RuntimeSpec(connection_rate=1.0), False, id="slow connections"),
    ],
)
def test_only_pulls_that_never_meet_are_one_download(spec, alone):
    assert alone is is_alone(spec)


@pytest.mark.parametrize(
    ("parallel", "one", "three"),
    [
        pytest.param(1, 12.0, 12.0, id="one image at a time: half of the registry for each pull"),
        # A quarter for each of four layers, until the three of the second pull are there.
        pytest.param(2, 12.0, 8.0, id="several at a time: a quarter of the registry for each layer"),
    ],
)
def test_a_full_registry_is_shared_by_pulls_where_each_is_one_download(parallel, one, three):
    env = Environment()
    network = Network(env)
    sources = LayerSources(network, 100.0)
    pulls = []
    for name, image in (("n1", stack("one:1", "a", size=600)), ("n2", stack("three:1", "b", "c", "d", size=200))):
        spec = RuntimeSpec(parallel_pulls=parallel)
        source = sources.for_node(Described(name, spec))
        puller = Puller(env, network, NodeImageStore(spec), spec, source, Scribe(env))
        pulls.append(puller.request(image, len, ""))
    env.run()

    assert pytest.approx([one, three]) == [pull.done_at for pull in pulls]


@pytest.mark.parametrize(
    ("capacity", "log"),
    [
        pytest.param(300, [("layer", "a", 3.0), ("layer", "b", 3.0), ("layer", "c", 3.0)], id="room for all of it"),
        pytest.param(299, [("layer", "a", 1.0), ("layer", "b", 2.0)], id="no room: layer by layer until it fails"),
    ],
)
def test_an_image_for_which_there_is_no_room_comes_layer_by_layer(capacity, log):
    disk = DiskSpec(capacity=capacity, high=2.0, evict_below=0.0)
    node = Node(runtime=RuntimeSpec(ratio=0.0, slots=1), disk=disk)
    node.ask(stack("i:1", "a", "b", "c"))
    node.env.run(until=5.0)

    assert log == [entry for entry in node.log if entry[0] == "layer"]


@pytest.mark.parametrize(
    ("when", "pulled"),
    [
        pytest.param(0.1, 0, id="before the first byte: its manifest is on its way"),
        pytest.param(3.0, 0, id="no layer is whole"),
        pytest.param(6.0, 200, id="one layer is there"),
        pytest.param(8.7, 800, id="all are there and not unpacked"),
    ],
)
def test_a_stop_counts_what_had_arrived_and_keeps_nothing(when, pulled):
    node = Node(runtime=RuntimeSpec(resolve=0.5, layer_overhead=1.0))
    pull = node.ask(WEB)
    node.env.at(when, node.puller.stop)
    node.env.run()

    assert (pulled, pulled) == (node.puller.pulled_bytes, pull.downloaded)
    assert ({}, {}, 0) == (node.store.blobs, node.store.chains, node.store.used)
    assert when == node.env.now


def test_what_unpacks_while_layers_arrive_is_done_as_early_as_if_they_came_one_by_one():
    """The lower layer is there after 6 s and takes 3 s; the upper one is there after 8 s and takes 1 s more."""
    node = Node(runtime=RuntimeSpec(slots=1, unpack_rate=200.0, ratio=1.0))
    pull = node.ask(WEB)
    node.env.run()

    assert (8.0, 10.0) == (pull.downloaded_at, pull.done_at)


def test_three_events_make_a_pull_however_many_layers_it_has():
    node = Node(runtime=RuntimeSpec(resolve=0.5, layer_overhead=0.1))
    node.ask(stack("i:1", *"abcde"))
    events = 0
    while node.env.peek() < float("inf"):
        node.env.step()
        events += 1

    assert 3 == events
