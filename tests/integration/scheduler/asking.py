"""A registry beside the testbed, nodes that hold some of its images, and pods that want others."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from lamina.model.digest import Digest
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.wire.custom_resources.node_layers_status import encode_node_layers, encode_node_layers_status
from testbed import Testbed, made
from testbed.registry_server import RegistryServer
from tests.e2e._live import CUSTOM, node_of, publish_image, until
from tests.integration.scheduler.live import Lamina, configuration, install

MB: Final = 1_000_000
NODES: Final = ("n1", "n2", "n3")


class Shop:
    """A registry whose images share a large layer; one node holds one of them."""

    def __init__(self, bed: Testbed, registry: RegistryServer, *, holder: str = "n2") -> None:
        """Install everything, and let *holder* have the first image."""
        self.bed, self.registry, self.holder = bed, registry, holder
        install(bed)
        bed.kubectl("delete", "imagelayers,nodelayers", "--all")
        bed.add_nodes({"name": name, "cpu": "8", "memory": "16Gi"} for name in NODES)
        self._base = made.layer({"base": made.noise(1, 3 * MB)})
        first = made.image([self._base, made.layer({"app": b"first"})])
        self.first = made.push(registry.host, f"shop-{time.time_ns()}/first:1", first)
        self.digest = Digest(first.digest)
        publish_image(bed, first.manifest)
        for node in NODES:
            self._report(node)

    def _report(self, node: str) -> None:
        """Report as an agent would, of a line so slow that three megabytes take a minute."""
        uid = self.bed.api("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
        images = (HeldImage(self.digest, 0, (self.first,)),) if node == self.holder else ()
        report = LayerReport(
            node=node, node_uid=uid, sequence=1, observed_at=time.time(), images=images, download_rate=0.05 * MB
        )
        self.bed.api("POST", f"{CUSTOM}/nodelayers", json.loads(encode_node_layers(node, uid)))
        self.bed.api("PATCH", f"{CUSTOM}/nodelayers/{node}/status", json.loads(encode_node_layers_status(report)))

    def sell(self, name: str) -> str:
        """Push an image that no node has ever had and that shares the large layer; return its name."""
        image = made.image([self._base, made.layer({"app": name.encode()})])
        return made.push(self.registry.host, f"shop-{time.time_ns()}/{name}:1", image)

    def rules(self, **more: Any) -> Path:
        """Write down that this registry may be asked."""
        path = self.bed.folder / "registries.yaml"
        entry = {"host": self.registry.host, "plainHttp": True, "private": True, **more}
        path.write_text(yaml.safe_dump({"registries": [entry]}), encoding="utf-8")
        return path

    def scheduler(self, *words: str, name: str = "lamina", **config: Any) -> Lamina:
        """A scheduler that may ask it."""
        asked = ("--registries", str(self.rules()), "--seed", "0", *words)
        return Lamina(self.bed, name, config=configuration(**config), words=asked)


def bound_within(bed: Testbed, pods: Sequence[str], seconds: float = 30.0) -> list[float]:
    """Seconds after now at which each pod is seen bound; they are looked at in turn."""
    began = time.monotonic()
    taken = []
    for pod in pods:
        until(f"{pod} is bound", lambda name=pod: node_of(bed, name), seconds)  # type: ignore[misc]
        taken.append(time.monotonic() - began)
    return taken
