"""Which way a layer takes: the registry, shared uplinks, other nodes."""

import pytest

from lamina.model.errors import WiringError
from lamina.model.image import Image
from lamina.simulator.engine import Environment, Network
from lamina.simulator.pulls import ImagePullRequest, LayerSources, NodeImageStore, Puller, RuntimeSpec
from tests.unit.simulator.pulls.scene import Described, Scribe, stack

PEERS = RuntimeSpec(peers=True, slots=1)
IMAGE = stack("i:1", "a", "b", size=1000)


class Town:
    """Some nodes of 100 bytes per second each, one registry, and the way in between."""

    def __init__(self, registry: float = 0.0, uplinks: dict[str, float] | None = None) -> None:
        self.env = Environment()
        self.network = Network(self.env)
        self.sources = LayerSources(self.network, registry, uplinks)
        self.pullers: dict[str, Puller] = {}

    def join(self, name: str, *held: Image, uplink: str = "", runtime: RuntimeSpec | None = None) -> Puller:
        spec = runtime or RuntimeSpec(slots=1)
        source = self.sources.for_node(Described(name, spec, uplink=uplink))
        store = NodeImageStore(spec, None, held)
        puller = self.pullers[name] = Puller(self.env, self.network, store, spec, source, Scribe(self.env))
        return puller

    def ask(self, name: str, image: Image = IMAGE) -> ImagePullRequest:
        return self.pullers[name].request(image, lambda: None)


@pytest.mark.parametrize(
    ("registry", "uplinks", "done"),
    [
        pytest.param(0.0, {}, 20.0, id="each at its own rate"),
        pytest.param(100.0, {}, 40.0, id="they share the registry"),
        pytest.param(0.0, {"edge": 50.0}, 80.0, id="they share an uplink"),
        pytest.param(1000.0, {"edge": 1000.0}, 20.0, id="neither is full"),
    ],
)
def test_two_nodes_that_pull_at_once_share_what_lies_between_them_and_the_registry(registry, uplinks, done):
    town = Town(registry, uplinks)
    for name in ("n1", "n2"):
        town.join(name, uplink=next(iter(uplinks), ""))
    pulls = [town.ask("n1"), town.ask("n2")]
    town.env.run()

    assert [done, done] == [pytest.approx(pull.done_at) for pull in pulls]


def test_an_uplink_has_to_be_described():
    with pytest.raises(WiringError, match="node 'n1': there is no uplink 'edge'; add it to `uplinks`"):
        Town().join("n1", uplink="edge")


def test_a_layer_comes_from_a_peer_that_holds_it():
    """The registry would take 2000 s."""
    town = Town(registry=1.0)
    town.join("n1", IMAGE, runtime=PEERS)
    town.join("n2", runtime=PEERS)
    pull = town.ask("n2")
    town.env.run()

    assert 20.0 == pull.done_at


def test_without_peers_the_registry_serves_everybody():
    town = Town(registry=1.0)
    town.join("n1", IMAGE)
    town.join("n2")
    pull = town.ask("n2")
    town.env.run()

    assert 2000.0 == pull.done_at


def test_the_holder_that_serves_fewest_serves_the_next():
    """Two holders and two that ask: each has a holder for itself."""
    town = Town(registry=1.0)
    for name in ("n1", "n2"):
        town.join(name, IMAGE, runtime=PEERS)
    for name in ("n3", "n4"):
        town.join(name, runtime=PEERS)
    pulls = [town.ask("n3"), town.ask("n4")]
    town.env.run()

    assert [20.0, 20.0] == [pull.done_at for pull in pulls]


def test_a_holder_that_is_busy_is_not_asked_while_another_is_idle():
    town = Town()
    busy, idle, asking = (
        town.join(name, *held, runtime=PEERS)._source for name, held in (("n1", [IMAGE]), ("n2", [IMAGE]), ("n3", []))
    )
    town.network.start((busy.upload,), 1000, lambda: None)

    assert [idle] * 4 == [town.sources.nearest(asking, IMAGE.layers[0].digest) for _ in range(4)]


def test_what_has_just_arrived_is_served_to_the_next():
    town = Town(registry=1.0)
    town.join("n1", IMAGE, runtime=PEERS)
    town.join("n2", runtime=PEERS)
    town.ask("n2")
    town.env.run()
    town.pullers["n1"].stop()
    town.join("n3", runtime=PEERS)
    pull = town.ask("n3")
    town.env.run()

    assert 40.0 == pull.done_at


@pytest.mark.parametrize(
    ("uplinks", "done"),
    [
        pytest.param(("edge", "edge"), 20.0, id="beside each other: no uplink in between"),
        pytest.param(("edge", "far"), 40.0, id="both uplinks in between, the slower counts"),
        pytest.param(("", "far"), 40.0, id="one uplink in between"),
    ],
)
def test_peers_reach_each_other_over_their_uplinks(uplinks, done):
    town = Town(registry=1.0, uplinks={"edge": 80.0, "far": 50.0})
    town.join("n1", IMAGE, uplink=uplinks[0], runtime=PEERS)
    town.join("n2", uplink=uplinks[1], runtime=PEERS)
    pull = town.ask("n2")
    town.env.run()

    assert done == pull.done_at


def test_a_node_that_discards_blobs_has_nothing_for_others():
    runtime = RuntimeSpec(peers=True, slots=1, reuse="prefix")
    town = Town(registry=1.0)
    town.join("n1", IMAGE, runtime=runtime)
    town.join("n2", runtime=runtime)
    pull = town.ask("n2")
    town.env.run()

    assert 2000.0 == pull.done_at
    assert {} == town.sources.holders


def test_nobody_is_asked_for_what_was_removed():
    town = Town(registry=1.0)
    puller = town.join("n1", IMAGE, runtime=PEERS)
    puller._store.remove(IMAGE.digest)

    assert {} == town.sources.holders
