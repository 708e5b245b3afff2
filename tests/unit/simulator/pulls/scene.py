"""A node on a stage: a store, a puller, and a log of (what, whom, when) that stories end in."""

from dataclasses import dataclass

from lamina.model.image import Image, Layer
from lamina.simulator.engine import Environment, Network
from lamina.simulator.pulls import (
    DiskSpec,
    ImagePullRequest,
    LayerSources,
    NodeImageStore,
    Puller,
    RemovalReason,
    RuntimeSpec,
)
from lamina.testing import a_digest, an_image

Log = list[tuple[str, str, float]]

NAMES = {a_digest(name): name for name in ("base", "web", "api", "empty", "lib", "a", "b", "c", "d", "e")}

BASE = {"base": 600}
WEB = an_image("web:1", {**BASE, "web": 200})
API = an_image("api:1", {**BASE, "api": 100})


def stack(name: str, *layers: str, size: int = 100) -> Image:
    """An image of layers that all have one size."""
    return an_image(name, dict.fromkeys(layers, size))


@dataclass(frozen=True)
class Described:
    """As much of a node as its source has to know."""

    name: str
    runtime: RuntimeSpec
    bandwidth: float = 100.0
    uplink: str = ""


class Scribe:
    """A watcher that writes everything down."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.log: Log = []

    def note(self, what: str, whom: str) -> None:
        self.log.append((what, whom, round(self.env.now, 6)))

    def pull_began(self, pull: ImagePullRequest, missing: tuple[Layer, ...]) -> None:
        self.note(f"began, {sum(layer.size for layer in missing)} bytes", pull.image.names[0])

    def layer_pulled(self, layer: Layer) -> None:
        self.note("layer", NAMES.get(layer.digest, layer.digest))

    def pull_done(self, pull: ImagePullRequest, *, news: bool) -> None:
        self.note("done" if news else "was there", pull.image.names[0])

    def pull_failed(self, pull: ImagePullRequest, reason: str, retry_at: float) -> None:
        self.note(f"failed until {retry_at:g}, {reason}", pull.image.names[0])

    def images_removed(self, images: tuple[Image, ...], freed: int, why: RemovalReason) -> None:
        self.note(f"{why}, {freed} bytes", " ".join(image.names[0] for image in images))

    def disk_pressure(self, on: bool) -> None:
        self.note("pressure", "on" if on else "off")


class Node:
    """A node that downloads 100 bytes per second."""

    def __init__(
        self,
        *held: Image,
        runtime: RuntimeSpec | None = None,
        disk: DiskSpec | None = None,
        env: Environment | None = None,
        sources: LayerSources | None = None,
        name: str = "n1",
    ) -> None:
        spec = runtime or RuntimeSpec()
        self.env = env or Environment()
        self.network = Network(self.env)
        self.scribe = Scribe(self.env)
        self.store = NodeImageStore(spec, disk, held)
        self.sources = sources or LayerSources(self.network)
        source = self.sources.for_node(Described(name, spec))
        self.puller = Puller(self.env, self.network, self.store, spec, source, self.scribe)

    def ask(self, image: Image, who: str = "pod") -> ImagePullRequest:
        return self.puller.request(image, lambda: self.scribe.note("ready", who))

    def ask_and_use(self, image: Image) -> ImagePullRequest:
        """Ask as a pod that keeps the image in use from then on."""
        return self.puller.request(image, lambda: self.store.acquire(image, self.env.now))

    @property
    def log(self) -> Log:
        return self.scribe.log

    def times(self, what: str) -> dict[str, float]:
        """When it happened to whom, the last time."""
        return {whom: at for said, whom, at in self.log if said == what}
