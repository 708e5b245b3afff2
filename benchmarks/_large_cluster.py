"""
A large cluster as an API server sends it: nodes, pods, NodeLayers and ImageLayers.

Every object is one watch event, with managed fields and the other parts of real objects. Pods are written from one
template per owner, so that 150,000 of them need no memory and little time here. Owners differ in kind, size, labels and
requests; a few have anti-affinity between their pods, some have topology spread constraints.
"""

import functools
import hashlib
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import msgspec

import decode
from _catalog import popularity
from lamina.model.digest import Digest
from lamina.model.image import Platform
from lamina.model.layer_report import HeldImage, LayerReport, NodeRuntime
from lamina.wire.custom_resources.image_layers import encode_image_layers
from lamina.wire.custom_resources.node_layers_status import encode_node_layers_status

MB: Final = 1_000_000
HELD: Final = 100
"""Images on a node."""
LISTED: Final = 50
"""Images that a kubelet lists in a node's status."""
DAEMONS: Final = 4
"""Owners that have a pod on every node."""
PODS_PER_OWNER: Final = 40
NAMESPACES: Final = 25
ZONES: Final = 3
APART: Final = 0.03
"""Share of owners whose pods must be on different nodes."""
SPREAD: Final = 0.10
"""Share of owners whose pods are spread over zones."""
MADE: Final = "2026-03-01T09:00:00Z"
VERSION: Final = 90_000_000
LAMINA: Final = "/apis/lamina.dev/v1alpha1"


class Known(msgspec.Struct, frozen=True):
    """An image and its ImageLayers object."""

    held: HeldImage
    posted: bytes


class LargeCluster:
    """Writes the objects of a cluster; the same sizes give the same objects."""

    def __init__(self, nodes: int, pods: int, images: int, now: float) -> None:
        """Date the nodes' reports at *now*, in seconds since 1970."""
        self.nodes, self.pods, self.now = nodes, pods, now
        self.images = [an_image(random.Random(number), number) for number in range(images)]
        self.weights = popularity(images)
        self.paths = {
            "/api/v1/nodes": ("Node", "v1", self.node_objects),
            "/api/v1/pods": ("Pod", "v1", self.pod_objects),
            "/api/v1/namespaces": ("Namespace", "v1", self.namespace_objects),
            f"{LAMINA}/nodelayers": ("NodeLayers", "lamina.dev/v1alpha1", self.report_objects),
            f"{LAMINA}/imagelayers": ("ImageLayers", "lamina.dev/v1alpha1", self.image_objects),
        }

    def events(self, path: str) -> Iterator[bytes]:
        """Yield a streamed list: all objects, and the bookmark that ends it."""
        kind, version, objects = self.paths[path]
        for written in objects():
            yield b'{"type":"ADDED","object":' + written + b"}\n"
        ended = {"resourceVersion": str(VERSION), "annotations": {"k8s.io/initial-events-end": "true"}}
        mark = {"kind": kind, "apiVersion": version, "metadata": ended}
        yield json.dumps({"type": "BOOKMARK", "object": mark}).encode() + b"\n"

    # ----------------------------------------------------------------------------------------------------- the resources

    def namespace_objects(self) -> Iterator[bytes]:
        """Yield the namespaces."""
        for number in range(NAMESPACES):
            name = f"team-{number}"
            labels = {"kubernetes.io/metadata.name": name}
            yield compact({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata(name, number, labels=labels)})

    def node_objects(self) -> Iterator[bytes]:
        """Yield the nodes, each with the images that its kubelet lists."""
        for number in range(self.nodes):
            held = sorted(self.held_by(number), key=lambda image: -image.size)[:LISTED]
            yield compact(a_node(number, held))

    def pod_objects(self) -> Iterator[bytes]:
        """Yield the pods: first those of DaemonSets, then those of owners large and small."""
        rng = random.Random("pods")
        daemons = [(number, template) for number in range(self.nodes) for template in self.templates[:DAEMONS]]
        others = self.templates[DAEMONS:]
        weights = popularity(len(others))
        for serial in range(self.pods):
            if serial < len(daemons):
                node, template = daemons[serial]
            else:
                node, template = rng.randrange(self.nodes), rng.choices(others, cum_weights=weights)[0]
            digits = b"%032x" % rng.getrandbits(128)
            yield template % {
                b"suffix": b"%05x" % serial,
                b"uid": b"-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])),
                b"version": b"%d" % (40_000_000 + serial),
                b"node": b"node-%05d" % node,
                b"address": b"10.%d.%d.%d" % (node >> 8, node & 255, serial & 255),
                b"container": digits * 2,
            }

    def report_objects(self) -> Iterator[bytes]:
        """Yield the report of every node agent."""
        entries = {image.held.digest: an_entry(image.held) for image in self.images}
        for number in range(self.nodes):
            images = self.held_by(number)
            name, its_uid = node_name(number), uid(f"node {number}")
            report = LayerReport(
                node=name,
                node_uid=its_uid,
                sequence=7,
                observed_at=self.now,
                renews_within=600.0,
                download_rate=80.0 * MB,
                unpack_rate=150.0 * MB,
                disk=200_000 * MB,
                disk_free=90_000 * MB,
                runtime=NodeRuntime("containerd", "v2.1.4"),
                platform=Platform("linux", "amd64"),
            )
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": its_uid}
            head = {
                "apiVersion": "lamina.dev/v1alpha1",
                "kind": "NodeLayers",
                "metadata": metadata(name, number, ownerReferences=[owner], writer="lamina-agent"),
            }
            # A status as the node agent writes it, with entries that were encoded once for all nodes.
            listed = b",".join(entries[key] for key in sorted(image.digest for image in images))
            status = encode_node_layers_status(report).replace(b'"images":[]', b'"images":[' + listed + b"]")
            yield compact(head)[:-1] + b"," + status[1:]

    def image_objects(self) -> Iterator[bytes]:
        """Yield the ImageLayers of every image."""
        for number, image in enumerate(self.images):
            posted = json.loads(image.posted)
            yield compact(posted | {"metadata": metadata(posted["metadata"]["name"], number, writer="lamina-agent")})

    # ------------------------------------------------------------------------------------------------------- the pieces

    def held_by(self, node: int) -> list[HeldImage]:
        """Draw the images on a node; the same for the same node."""
        rng = random.Random(node)
        held: dict[Digest, HeldImage] = {}
        most = min(HELD, len(self.images))
        while len(held) < most:
            drawn = rng.choices(self.images, cum_weights=self.weights, k=HELD)
            held.update({image.held.digest: image.held for image in drawn})
        return list(held.values())[:most]

    @functools.cached_property
    def templates(self) -> list[bytes]:
        """A pod of each owner; the first ones are DaemonSets."""
        rng = random.Random("owners")
        owners = max(self.pods // PODS_PER_OWNER, DAEMONS + 1)
        return [self.template(rng, number) for number in range(owners)]

    def template(self, rng: random.Random, number: int) -> bytes:
        """Return a pod of one owner, with placeholders for what differs between its pods."""
        app = decode.an_app(rng, number)
        image = self.images[number] if number < DAEMONS else rng.choices(self.images, cum_weights=self.weights)[0]
        app["image"] = image.held.names[0]
        pod = decode.a_pod(rng, app, 0)
        kind = "DaemonSet" if number < DAEMONS else rng.choice(["ReplicaSet"] * 6 + ["StatefulSet", "Job"])
        pod["metadata"]["ownerReferences"][0] |= {
            "kind": kind,
            "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        }
        pod["metadata"] |= {
            "name": f"{app['name']}-{app['hash']}-@suffix@",
            "uid": "@uid@",
            "resourceVersion": "@version@",
        }
        pod["metadata"]["labels"] |= {"tier": f"tier-{number % 7}", "team": f"team-{number % NAMESPACES}"}
        pod["spec"] = decode.spec(app, "@suffix@", "@node@")
        pod["spec"]["schedulerName"] = rng.choice(["default-scheduler", "lamina"])
        selector = {"matchLabels": {"app.kubernetes.io/name": app["name"]}}
        drawn = rng.random()
        if number >= DAEMONS and drawn < APART:
            apart = [{"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]
            pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}
        elif number >= DAEMONS and drawn < APART + SPREAD:
            rule = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
            pod["spec"]["topologySpreadConstraints"] = [rule | {"labelSelector": selector}]
        pod["status"] |= {"podIP": "@address@", "podIPs": [{"ip": "@address@"}]}
        pod["status"]["containerStatuses"][0]["containerID"] = "containerd://@container@"
        written = compact({"kind": "Pod", "apiVersion": "v1", **pod}).replace(b"%", b"%%")
        for place in (b"suffix", b"uid", b"version", b"node", b"address", b"container"):
            written = written.replace(b"@" + place + b"@", b"%(" + place + b")b")
        return written


def an_image(rng: random.Random, number: int) -> Known:
    """Make an image of 5 to 14 layers: one of 40 bases, one of ten runtimes on it, and layers of its own."""
    base, runtime = rng.randrange(40), rng.randrange(10)
    names = [
        f"base-{base}",
        f"runtime-{base}-{runtime}",
        *(f"app-{number}-{each}" for each in range(rng.randrange(3, 13))),
    ]
    media = "application/vnd.oci.image"
    layers = [
        {"mediaType": f"{media}.layer.v1.tar+gzip", "digest": digest(name), "size": size_of(name)} for name in names
    ]
    manifest = compact(
        {
            "schemaVersion": 2,
            "mediaType": f"{media}.manifest.v1+json",
            "config": {"mediaType": f"{media}.config.v1+json", "digest": digest(f"config {number}"), "size": 7023},
            "layers": layers,
        }
    )
    posted = encode_image_layers(
        manifest,
        media_type=f"{media}.manifest.v1+json",
        platform=Platform("linux", "amd64"),
        diff_ids=[digest(f"diff {name}") for name in names],
        unpacked_sizes=[2 * size_of(name) for name in names],
    )
    called = Digest("sha256:" + hashlib.sha256(manifest).hexdigest())
    name = f"registry.example.com/shop/app-{number}:2026.3.{number % 40}"
    return Known(HeldImage(called, sum(map(size_of, names)), (name,)), posted)


def an_entry(image: HeldImage) -> bytes:
    """Return an image as the status of a NodeLayers lists it."""
    return compact({"digest": image.digest, "size": image.size, "names": list(image.names)})


def a_node(number: int, held: list[HeldImage]) -> dict[str, Any]:
    """Return a node as its kubelet writes it."""
    name = node_name(number)
    room = {"cpu": "32", "memory": "131072000Ki", "pods": "110", "ephemeral-storage": "206291944Ki"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": f"m{number % 4}.large",
        "topology.kubernetes.io/region": "north-1",
        "topology.kubernetes.io/zone": f"north-1{'abc'[number % ZONES]}",
    }
    conditions = [
        {
            "type": kind,
            "status": status,
            "lastHeartbeatTime": MADE,
            "lastTransitionTime": MADE,
            "reason": "KubeletSaysSo",
        }
        for kind, status in (
            ("MemoryPressure", "False"),
            ("DiskPressure", "False"),
            ("PIDPressure", "False"),
            ("Ready", "True"),
        )
    ]
    listed = [
        {"names": [f"{image.names[0].partition(':')[0]}@{image.digest}", *image.names], "sizeBytes": image.size}
        for image in held
    ]
    status = {
        "capacity": room,
        "allocatable": room,
        "conditions": conditions,
        "addresses": [{"type": "Hostname", "address": name}],
        "nodeInfo": {
            "containerRuntimeVersion": "containerd://2.1.4",
            "architecture": "amd64",
            "operatingSystem": "linux",
        },
        "images": listed,
    }
    meta = metadata(name, number, labels=labels, uid=uid(f"node {number}"), writer="kubelet")
    return {"kind": "Node", "apiVersion": "v1", "metadata": meta, "spec": {"podCIDR": "10.0.0.0/24"}, "status": status}


def metadata(name: str, number: int, *, writer: str = "kubectl", **more: Any) -> dict[str, Any]:
    """Return the metadata of an object, with managed fields of *writer*."""
    fields: dict[str, Any] = {
        "f:metadata": {"f:labels": {}},
        "f:status": {f"f:{field}": {} for field in ("conditions", "images", "summary")},
    }
    managed = {"manager": writer, "operation": "Update", "apiVersion": "v1", "time": MADE, "fieldsType": "FieldsV1"}
    return {
        "name": name,
        "uid": uid(name),
        "resourceVersion": str(30_000_000 + number),
        "generation": 1,
        "creationTimestamp": MADE,
        "managedFields": [managed | {"fieldsV1": fields}],
        **more,
    }


def node_name(number: int) -> str:
    """Return a node's name."""
    return f"node-{number:05}"


def uid(name: str) -> str:
    """Return a fake uid, the same for the same name."""
    digits = hashlib.sha256(name.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def digest(name: str) -> Digest:
    """Return a digest, the same for the same name."""
    return Digest("sha256:" + hashlib.sha256(name.encode()).hexdigest())


def size_of(layer: str) -> int:
    """Return the size of a layer, the same for the same name."""
    return (1 + int(digest(layer)[7:11], 16) % 60) * MB


def compact(document: object) -> bytes:
    """Return JSON as an API server writes it, without spaces."""
    return json.dumps(document, separators=(",", ":")).encode()
