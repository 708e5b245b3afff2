"""Nodes that report their layers, and pods that come and go, on a real control plane without agents and kubelets."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from lamina.model.digest import Digest, digest_of
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.wire.custom_resources.image_layers import encode_image_layers
from lamina.wire.custom_resources.node_layers_status import encode_node_layers, encode_node_layers_status
from testbed import Testbed

T = TypeVar("T")

CUSTOM: Final = "/apis/lamina.dev/v1alpha1"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"


def until(what: str, ask: Callable[[], T | None], seconds: float = 30.0) -> T:
    """Ask again and again until there is an answer."""
    end = time.monotonic() + seconds
    while (answer := ask()) is None:
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds:g} s")
        time.sleep(0.05)
    return answer


def manifest_of(layers: Sequence[tuple[bytes, int]]) -> bytes:
    """Write a manifest with layers of these contents and sizes."""
    listed = [
        {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest_of(content), "size": size}
        for content, size in layers
    ]
    config = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest_of(b"{}"), "size": 2}
    return json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": listed}).encode()


def publish_image(bed: Testbed, manifest: bytes) -> Digest:
    """Write down what an image consists of, as an agent would."""
    bed.api("POST", f"{CUSTOM}/imagelayers", json.loads(encode_image_layers(manifest, media_type=MANIFEST)))
    return digest_of(manifest)


class Reporter:
    """Reports for nodes, as their agents would."""

    def __init__(self, bed: Testbed) -> None:
        """Report to *bed*."""
        self._bed = bed
        self._uids: dict[str, str] = {}
        self._sequence = 0

    def report(self, node: str, images: dict[Digest, tuple[str, ...]]) -> None:
        """Say which images a node holds, and by which names."""
        if node not in self._uids:
            self._uids[node] = self._bed.api("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
            self._bed.api("POST", f"{CUSTOM}/nodelayers", json.loads(encode_node_layers(node, self._uids[node])))
        self._sequence += 1
        report = LayerReport(
            node=node,
            node_uid=self._uids[node],
            sequence=self._sequence,
            observed_at=time.time(),
            images=tuple(HeldImage(digest, 0, names) for digest, names in images.items()),
        )
        self._bed.api("PATCH", f"{CUSTOM}/nodelayers/{node}/status", json.loads(encode_node_layers_status(report)))


def make_pod(bed: Testbed, name: str, image: str, requests: dict[str, str], **spec: Any) -> dict[str, Any]:
    """Create a pod for the scheduler called lamina."""
    container = {"name": "main", "image": image, "resources": {"requests": requests}}
    return bed.api(
        "POST",
        "/api/v1/namespaces/default/pods",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"schedulerName": "lamina", "containers": [container], **spec},
        },
    )


def node_of(bed: Testbed, pod: str) -> str | None:
    """Return the node a pod is bound to; None while it waits."""
    found = bed.api("GET", f"/api/v1/namespaces/default/pods/{pod}")["spec"].get("nodeName")
    return found or None


def run_pod(bed: Testbed, pod: str) -> None:
    """Say that a pod runs, as its kubelet would."""
    bed.api("PATCH", f"/api/v1/namespaces/default/pods/{pod}/status", {"status": {"phase": "Running"}})


def remove_pod(bed: Testbed, pod: str) -> None:
    """Delete a pod at once; there is no kubelet that would let it end."""
    bed.api("DELETE", f"/api/v1/namespaces/default/pods/{pod}", {"gracePeriodSeconds": 0})
