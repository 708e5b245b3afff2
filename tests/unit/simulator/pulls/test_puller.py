"""The queue in front of the runtime: first come, first served. Everything but the network is free here."""

import pytest

from lamina.simulator.pulls import RuntimeSpec
from lamina.testing import an_image
from tests.unit.simulator.pulls.scene import API, BASE, WEB, Node


@pytest.fixture
def node() -> Node:
    return Node()


def test_an_image_that_comes_alone_is_one_download_and_its_layers_are_there_together(node):
    node.ask(WEB, "a")
    node.env.run()

    assert [
        ("began, 800 bytes", "web:1", 0.0),
        ("layer", "base", 8.0),  # 800 / 100
        ("layer", "web", 8.0),
        ("done", "web:1", 8.0),
        ("ready", "a", 8.0),
    ] == node.log
    assert (800, 1) == (node.puller.pulled_bytes, node.puller.pulled_images)


def test_how_much_of_it_has_come_counts_whole_layers(node):
    """Both layers at 50 bytes a second until the small one of 200 is there, then the large one at 100."""
    pull = node.ask(WEB, "a")
    counts = []
    for when in (0.0, 3.9, 4.1, 7.9, 8.1):
        node.env.at(when, lambda: counts.append((pull.downloaded, node.puller.pulled_bytes)))
    node.env.run()

    assert [(0, 0), (0, 0), (200, 200), (200, 200), (800, 800)] == counts


@pytest.mark.parametrize(
    ("slots", "web", "base"),
    [
        pytest.param(1, 8.0, 6.0, id="one slot: bottom first at the rate of the link"),  # 600 / 100, + 200 / 100
        pytest.param(2, 4.0, 8.0, id="two share the link until the small one is there"),  # 200 / 50, + 400 / 100
    ],
)
def test_images_that_may_come_together_come_layer_by_layer(slots, web, base):
    node = Node(runtime=RuntimeSpec(slots=slots, parallel_pulls=2))
    node.ask(WEB, "a")
    node.env.run()

    assert {"web": web, "base": base} == node.times("layer")
    assert [("done", "web:1", 8.0), ("ready", "a", 8.0)] == node.log[-2:]


def test_a_second_image_waits_and_finds_the_shared_layer(node):
    node.ask(WEB, "a")
    node.env.at(1.0, node.ask, API, "b")
    node.env.run()

    assert [
        ("began, 800 bytes", "web:1", 0.0),
        ("layer", "base", 8.0),
        ("layer", "web", 8.0),
        ("done", "web:1", 8.0),
        ("began, 100 bytes", "api:1", 8.0),
        ("ready", "a", 8.0),
        ("layer", "api", 9.0),
        ("done", "api:1", 9.0),
        ("ready", "b", 9.0),
    ] == node.log


def test_two_that_want_one_image_share_one_download(node):
    first, second = node.ask(API, "a"), node.ask(API, "b")
    node.env.run()

    assert [
        ("began, 700 bytes", "api:1", 0.0),
        ("layer", "base", 7.0),
        ("layer", "api", 7.0),
        ("done", "api:1", 7.0),
        ("began, 0 bytes", "api:1", 7.0),
        ("ready", "a", 7.0),
        ("was there", "api:1", 7.0),
        ("ready", "b", 7.0),
    ] == node.log
    assert (700, 0) == (first.downloaded, second.downloaded)
    assert (700, 1) == (node.puller.pulled_bytes, node.puller.pulled_images)


def test_an_image_made_of_layers_that_are_there_costs_nothing_and_is_news():
    node = Node(WEB)
    node.ask(an_image("alias:1", {**BASE, "web": 200}), "a")
    node.env.run()

    assert [("began, 0 bytes", "alias:1", 0.0), ("done", "alias:1", 0.0), ("ready", "a", 0.0)] == node.log
    assert (0, 1) == (node.puller.pulled_bytes, node.puller.pulled_images)


def test_an_empty_layer_arrives_at_once():
    node = Node(runtime=RuntimeSpec(parallel_pulls=0))
    node.ask(an_image("tiny:1", {"empty": 0, "api": 100}), "a")
    node.env.run()

    assert [
        ("began, 100 bytes", "tiny:1", 0.0),
        ("layer", "empty", 0.0),
        ("layer", "api", 1.0),
        ("done", "tiny:1", 1.0),
        ("ready", "a", 1.0),
    ] == node.log


def test_an_image_without_layers_is_there_when_it_is_asked_for(node):
    node.ask(an_image("nothing:1", {}), "a")
    node.env.run()

    assert [("began, 0 bytes", "nothing:1", 0.0), ("done", "nothing:1", 0.0), ("ready", "a", 0.0)] == node.log


def test_a_layer_that_an_image_repeats_is_downloaded_once(node):
    image = an_image("twice:1", {"a": 100, "b": 300})
    twice = type(image)(image.digest, (*image.layers, image.layers[0]), image.names)
    pull = node.ask(twice)
    node.env.run()

    assert (400, 4.0) == (pull.downloaded, pull.done_at)
    assert 3 == len(node.store.chains)


def test_whoever_asks_again_when_told_queues_behind_those_that_waited(node):
    """A pod with two images asks for the second when the first is there; another pod asked before that."""
    node.puller.request(API, lambda: node.ask(WEB, "a"))
    node.ask(an_image("tiny:1", {"empty": 1}), "b")
    node.env.run()

    assert ["api:1", "tiny:1", "web:1"] == [whom for what, whom, _ in node.log if what == "done"]


def test_a_request_that_waits_can_be_withdrawn(node):
    node.ask(API, "a")
    withdrawn = node.ask(WEB, "b")
    node.puller.cancel(withdrawn)
    node.env.run()

    assert ["api:1"] == [whom for what, whom, _ in node.log if what == "done"]
    assert withdrawn.began_at is None


def test_a_pull_that_has_begun_goes_on_although_nobody_waits_for_it(node):
    pull = node.ask(API, "a")
    node.env.at(1.0, node.puller.cancel, pull)
    node.env.run()

    assert [
        ("began, 700 bytes", "api:1", 0.0),
        ("layer", "base", 7.0),
        ("layer", "api", 7.0),
        ("done", "api:1", 7.0),
    ] == node.log


def test_withdrawing_what_is_done_changes_nothing(node):
    pull = node.ask(API, "a")
    node.env.run()
    node.puller.cancel(pull)

    assert node.store.holds(API.digest)


def test_a_node_that_is_gone_gets_nothing_more(node):
    """What had arrived is counted, but belongs to no image and is gone with the pull."""
    node.ask(WEB, "a")
    node.ask(API, "b")
    node.env.at(7.0, node.puller.stop)
    node.env.run()

    assert [("began, 800 bytes", "web:1", 0.0), ("layer", "web", 7.0)] == node.log
    assert (200, 0) == (node.puller.pulled_bytes, node.puller.pulled_images)
    assert ({}, {}, 0) == (node.store.blobs, node.store.chains, node.store.used)
    assert 7.0 == node.env.now


def test_a_node_that_is_back_can_be_asked_again(node):
    node.ask(WEB, "a")
    node.env.at(7.0, node.puller.stop)
    node.env.at(10.0, node.ask, WEB, "b")
    node.env.run()

    assert [("began, 800 bytes", "web:1", 10.0), ("layer", "base", 18.0), ("layer", "web", 18.0)] == node.log[2:5]
    assert {"b": 18.0} == node.times("ready")


def test_the_puller_says_what_it_pulls_and_how_many_wait(node):
    pull = node.ask(WEB, "a")
    node.ask(API, "b")
    before = (node.puller.current, node.puller.waiting)
    node.env.run()

    assert ((pull, 1), (None, 0)) == (before, (node.puller.current, node.puller.waiting))


def test_a_request_knows_when_it_was_made_and_when_its_turn_came(node):
    node.ask(WEB, "a")
    pull = node.ask(API, "b")
    node.env.run()

    assert (0.0, 8.0, 9.0, 9.0) == (pull.requested_at, pull.began_at, pull.downloaded_at, pull.done_at)


def test_resolving_comes_before_the_first_byte_even_if_there_is_none():
    node = Node(API, runtime=RuntimeSpec(resolve=0.5))
    there, new = node.ask(API, "a"), node.ask(WEB, "b")
    node.env.run()

    assert (0.0, 0.5) == (there.began_at, there.done_at)
    assert (0.5, 3.0) == (new.began_at, new.done_at)  # 0.5 + 0.5 + 200 / 100


# ------------------------------------------------------------------------------------------------------ too many pulls


def test_pulls_beyond_the_burst_fail_and_back_off_ten_seconds_doubling():
    """One a second, three at once: the fourth and fifth of an instant fail, and again if they are too many still."""
    images = [an_image(f"i{number}:1", {f"i{number}": 0}) for number in range(5)]
    node = Node(runtime=RuntimeSpec(parallel_pulls=0, pull_qps=0.05, pull_burst=3))
    pulls = [node.ask(image, image.names[0]) for image in images]
    node.env.run()

    assert [
        ("failed until 10, pull QPS exceeded", "i3:1", 0.0),
        ("failed until 10, pull QPS exceeded", "i4:1", 0.0),
        ("failed until 30, pull QPS exceeded", "i3:1", 10.0),  # half a token after 10 s
        ("failed until 30, pull QPS exceeded", "i4:1", 10.0),
        ("failed until 70, pull QPS exceeded", "i4:1", 30.0),  # one and a half: one of them begins
    ] == [entry for entry in node.log if entry[0].startswith("failed")]
    assert [0.0, 0.0, 0.0, 30.0, 70.0] == [pull.done_at for pull in pulls]
    assert [0, 0, 0, 2, 3] == [pull.failures for pull in pulls]


def test_a_pull_that_rests_finds_what_another_has_brought_and_needs_no_turn():
    node = Node(runtime=RuntimeSpec(parallel_pulls=0, pull_qps=0.001, pull_burst=1))
    node.ask(API, "a")
    resting = node.ask(API, "b")
    node.env.run()

    assert [("was there", "api:1", 10.0), ("ready", "b", 10.0)] == node.log[-2:]
    assert (1, 0) == (resting.failures, resting.downloaded)


def test_a_pull_that_rests_can_be_withdrawn():
    node = Node(runtime=RuntimeSpec(pull_qps=0.001, pull_burst=1))
    node.ask(API, "a")
    resting = node.ask(WEB, "b")
    node.env.at(8.0, node.puller.cancel, resting)
    node.env.run()

    assert 8.0 == node.env.now
    assert not node.store.holds(WEB.digest)
