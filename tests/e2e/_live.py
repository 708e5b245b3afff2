"""What stories on a real control plane have in common: the scheduler as its own account, a node that reports, waiting."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from lamina.model.digest import Digest, digest_of
from lamina.model.reports import HeldImage, LayerReport
from lamina.wire.image_layers import encode_image_layers
from lamina.wire.node_layers_status import encode_node_layers, encode_node_layers_status
from testbed import Testbed

T = TypeVar("T")

ROOT: Final = Path(__file__).resolve().parents[2]
DEPLOY: Final = ROOT / "deploy"
SYSTEM: Final = "lamina-system"
CUSTOM: Final = "/apis/lamina.dev/v1alpha1"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"


def install(bed: Testbed) -> Path:
    """Apply what the project ships, and return a kubeconfig of the scheduler's own account."""
    bed.kubectl("apply", "-f", str(DEPLOY / "namespaces.yaml"))
    for folder in ("crds", "rbac", "policy"):
        bed.kubectl("apply", "-f", str(DEPLOY / folder))
    bed.kubectl("wait", "--for=condition=Established", "crd/nodelayers.lamina.dev", "crd/imagelayers.lamina.dev")
    return account(bed, bed.service_account_token(SYSTEM, "lamina-scheduler"), "lamina-scheduler")


def shipped_configuration() -> str:
    """Return the configuration that the project ships."""
    (found,) = yaml.safe_load((DEPLOY / "scheduler" / "configuration.yaml").read_text(encoding="utf-8"))[
        "data"
    ].values()
    return str(found)


def account(bed: Testbed, token: str, name: str) -> Path:
    """Write a kubeconfig for a token."""
    path = bed.folder / f"{name}.kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "bed",
                "clusters": [
                    {"name": "bed", "cluster": {"server": bed.url, "certificate-authority": str(bed.ca_file)}}
                ],
                "users": [{"name": name, "user": {"token": token}}],
                "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": name}}],
            }
        ),
        encoding="utf-8",
    )
    return path


@contextlib.contextmanager
def scheduler(kubeconfig: Path, log: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `lamina scheduler` as a process of its own, and end it politely."""
    command = [sys.executable, "-m", "lamina.cli.main", "scheduler", "--kubeconfig", str(kubeconfig)]
    with log.open("ab") as file:
        process = subprocess.Popen([*command, "--listen", "127.0.0.1:0", *options], stdout=file, stderr=file)
    try:
        yield process
        if process.poll() is not None:
            raise AssertionError(f"the scheduler ended by itself:\n{log.read_text(encoding='utf-8')[-4000:]}")
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


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
