"""One image at a time, first come, first served. Stories end in a log of (what, whom, when)."""

import pytest

from lamina.model.image import Image, Layer
from lamina.simulator.engine import Environment
from lamina.simulator.pulls import Pull, Puller, Store
from lamina.testing import a_digest, an_image

Log = list[tuple[str, str, float]]

BASE = {"base": 600}
WEB = an_image("web:1", {**BASE, "web": 200})
API = an_image("api:1", {**BASE, "api": 100})
NAMES = {a_digest(name): name for name in ("base", "web", "api", "empty")}


class Scribe:
    """A watcher that writes everything down."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.log: Log = []

    def note(self, what: str, whom: str) -> None:
        self.log.append((what, whom, self.env.now))

    def pull_began(self, pull: Pull, missing: tuple[Layer, ...]) -> None:
        self.note(f"began, {sum(layer.size for layer in missing)} bytes", pull.image.names[0])

    def layer_pulled(self, layer: Layer) -> None:
        self.note("layer", NAMES[layer.digest])

    def pull_done(self, pull: Pull, *, news: bool) -> None:
        self.note("done" if news else "was there", pull.image.names[0])


class Node:
    """A store, a puller at 100 bytes per second, and the log."""

    def __init__(self, *held: Image) -> None:
        self.env = Environment()
        self.scribe = Scribe(self.env)
        self.store = Store(held)
        self.puller = Puller(self.env, self.store, 100.0, self.scribe)

    def ask(self, image: Image, who: str) -> Pull:
        return self.puller.ask(image, lambda: self.scribe.note("ready", who))

    @property
    def log(self) -> Log:
        return self.scribe.log


@pytest.fixture
def node() -> Node:
    return Node()


def test_layers_come_bottom_first_at_the_rate_of_the_link(node):
    node.ask(WEB, "a")
    node.env.run()

    assert [
        ("began, 800 bytes", "web:1", 0.0),
        ("layer", "base", 6.0),  # 600 / 100
        ("layer", "web", 8.0),  # + 200 / 100
        ("done", "web:1", 8.0),
        ("ready", "a", 8.0),
    ] == node.log
    assert (800, 1) == (node.puller.pulled_bytes, node.puller.pulled_images)


def test_a_second_image_waits_and_finds_the_shared_layer(node):
    node.ask(WEB, "a")
    node.env.at(1.0, node.ask, API, "b")
    node.env.run()

    assert [
        ("began, 800 bytes", "web:1", 0.0),
        ("layer", "base", 6.0),
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
        ("layer", "base", 6.0),
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


def test_an_empty_layer_arrives_at_once(node):
    node.ask(an_image("tiny:1", {"empty": 0, "api": 100}), "a")
    node.env.run()

    assert [
        ("began, 100 bytes", "tiny:1", 0.0),
        ("layer", "empty", 0.0),
        ("layer", "api", 1.0),
        ("done", "tiny:1", 1.0),
        ("ready", "a", 1.0),
    ] == node.log


def test_whoever_asks_again_when_told_queues_behind_those_that_waited(node):
    """A pod with two images asks for the second when the first is there; another pod asked before that."""
    node.puller.ask(API, lambda: node.ask(WEB, "a"))
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
        ("layer", "base", 6.0),
        ("layer", "api", 7.0),
        ("done", "api:1", 7.0),
    ] == node.log


def test_withdrawing_what_is_done_changes_nothing(node):
    pull = node.ask(API, "a")
    node.env.run()
    node.puller.cancel(pull)

    assert API.digest in node.store.images


def test_a_node_that_is_gone_gets_nothing_more(node):
    """What had arrived stays counted; the layer under way never becomes present."""
    node.ask(WEB, "a")
    node.ask(API, "b")
    node.env.at(7.0, node.puller.stop)
    node.env.run()

    assert [("began, 800 bytes", "web:1", 0.0), ("layer", "base", 6.0)] == node.log
    assert (600, 0) == (node.puller.pulled_bytes, node.puller.pulled_images)
    assert {a_digest("base"): 600} == node.store.layers


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

    assert (0.0, 8.0) == (pull.asked_at, pull.began_at)
