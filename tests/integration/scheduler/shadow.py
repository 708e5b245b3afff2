"""
Lamina beside kube-scheduler with ``--observe`` and with the rights of a viewer: it binds nothing and says what it would
have saved.

Nodes hold images that share layers. kube-scheduler is told of whole images, as by kubelets; Lamina of their layers too.
"""

import json
import random
import time
from typing import Any, Final

from lamina.model.digest import digest_of
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.wire.custom_resources.image_layers import encode_image_layers
from lamina.wire.custom_resources.node_layers_status import encode_node_layers, encode_node_layers_status
from testbed import Testbed
from tests.integration.scheduler.live import Lamina, install, until
from tests.integration.scheduler.truth import Witness, add_pods, pod

MB: Final = 1_000_000
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
MERGE_PATCH: Final = "application/merge-patch+json"
BINDING: Final = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "observer"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lamina-viewer"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "observer"}],
}


def manifest(name: str, layers: dict[str, int]) -> bytes:
    """An image's manifest; layers of one name are the same layer everywhere."""

    def described(kind: str, what: str, size: int) -> dict[str, Any]:
        return {"mediaType": kind, "digest": digest_of(what.encode()), "size": size}

    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": described(CONFIG, f"configuration of {name}", 1000),
        "layers": [described(LAYER, layer, size) for layer, size in layers.items()],
    }
    return json.dumps(document).encode()


def shelves(bed: Testbed, *, nodes: int, images: int, dice: random.Random) -> list[str]:
    """Nodes that hold two images each; the answer is the names of all images."""
    names = [f"example.org/app-{number}:1" for number in range(images)]
    bytes_of, manifests = {}, {}
    for number, name in enumerate(names):
        layers = {f"base-{number % 3}": 600 * MB, f"app-{number}": dice.randrange(50, 200) * MB}
        manifests[name], bytes_of[name] = manifest(name, layers), sum(layers.values())
        bed.api("POST", "/apis/lamina.dev/v1alpha1/imagelayers", json.loads(encode_image_layers(manifests[name])))
    for number in range(nodes):
        node, held = f"n{number:03}", dice.sample(names, 2)
        told = [{"names": [name], "sizeBytes": bytes_of[name]} for name in held]
        bed.add_node(node, cpu="4", images=told)
        uid = bed.api("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
        path = "/apis/lamina.dev/v1alpha1/nodelayers"
        bed.api("POST", path, json.loads(encode_node_layers(node, uid)))
        report = LayerReport(
            node=node,
            node_uid=uid,
            sequence=1,
            observed_at=time.time(),
            images=tuple(HeldImage(digest_of(manifests[name]), bytes_of[name], (name,)) for name in held),
            download_rate=50.0 * MB,
            unpack_rate=200.0 * MB,
            disk=500_000 * MB,
            disk_free=400_000 * MB,
        )
        bed.api(
            "PATCH", f"{path}/{node}/status", json.loads(encode_node_layers_status(report)), content_type=MERGE_PATCH
        )
    return names


def observed(bed: Testbed, *, nodes: int, images: int, pods: int, seed: int) -> dict[str, Any]:
    """Tell the story; return its figures."""
    dice = random.Random(seed)
    install(bed)
    bed.api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING)
    names = shelves(bed, nodes=nodes, images=images, dice=dice)
    wanted = []
    for number in range(pods):
        one = pod(f"p{number:03}", cpu="200m", scheduler="default-scheduler")
        one["spec"]["containers"][0]["image"] = dice.choice(names)
        wanted.append(one)
    scheduler = Lamina(bed, access=bed.kubeconfig("observer"), words=["--observe"])
    with Witness(bed) as witness, scheduler:
        # One after the other, and nobody there to take them at first: nothing may happen to them.
        add_pods(bed, wanted[:5])
        time.sleep(3.0)
        untouched = witness.bound()
        bed.start_part("kube-scheduler")
        add_pods(bed, wanted[5:], over=10.0)
        until(lambda: witness.bound() == pods, 60.0, f"{pods} pods bound by kube-scheduler")
        until(lambda: tallies(scheduler)["compared"] >= pods - 5, 20.0, "pods are compared")
        told = tallies(scheduler)
        differences = scheduler.differences()
        code, took = scheduler.end(15.0)
        bed.parts["kube-scheduler"].kill()
    events = bed.api("GET", "/apis/events.k8s.io/v1/events")["items"]
    conditions = [one for one in bed.api("GET", "/api/v1/pods")["items"] if not one["spec"].get("nodeName")]
    summary = [one["msg"] for one in scheduler.said() if one["msg"].startswith("observed ")]
    figures = {
        "pods": pods,
        "bound_while_alone": untouched,
        "bound_by_lamina": len(scheduler.bindings()),
        "events_by_lamina": sum("lamina" in one.get("reportingController", "") for one in events),
        "unbound": len(conditions),
        **{name: round(value, 1) for name, value in told.items()},
        "summary": summary[-1] if summary else "",
        "differences": len(differences),
        "exit_code": code,
        "stopped_s": round(took, 2),
    }
    assert [] == scheduler.complaints()
    assert [] == differences, differences[:5]
    assert (0, 0, 0, 0) == (untouched, figures["bound_by_lamina"], figures["events_by_lamina"], code)
    assert figures["summary"]
    return figures


def tallies(scheduler: Lamina) -> dict[str, float]:
    """What was observed so far."""
    status, text = scheduler.page("/debug/observed")
    assert status == 200, text
    found: dict[str, float] = json.loads(text)["tallies"]
    return found
