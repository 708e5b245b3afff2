"""A runtime that follows a script, images out of thin air, and somebody who writes down what a reader tells."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec

from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.model.digest import Digest, digest_of
from lamina.model.holdings import Holdings, StoredImage
from lamina.model.image import Layer, Platform
from lamina.model.layer_report import NodeRuntime

AMD64 = Platform("linux", "amd64")
OCI = "application/vnd.oci.image.manifest.v1+json"
AWAY = RuntimeSourceError("containerd", "nobody listens at /run/containerd/containerd.sock")


def a_layer(text: str, size: int = 1000, *, measured: bool = True) -> Layer:
    return Layer(digest_of(text.encode()), size, digest_of(f"{text} unpacked".encode()), 2 * size if measured else None)


def an_image(number: int, *names: str, layers: int = 2, measured: bool = True, filling: int = 0) -> StoredImage:
    """An image whose bottom layer many others have, with a manifest that is what its digest says."""
    bottom = a_layer(f"base {number % 7}", 5000 + number % 7, measured=measured)
    others = [a_layer(f"{number}/{one}", 1000 + number, measured=measured) for one in range(1, layers)]
    stack = (bottom, *others)
    described = [{"digest": layer.digest, "size": layer.size, "mediaType": "application/x"} for layer in stack]
    document = {"schemaVersion": 2, "mediaType": OCI, "layers": described, "annotations": {"filling": "x" * filling}}
    manifest = json.dumps(document).encode()
    return StoredImage(
        digest=digest_of(manifest),
        names=names or (f"registry.example/team/app-{number}:1.{number}",),
        size=sum(layer.size for layer in stack),
        layers=stack,
        manifest=manifest,
        media_type=OCI,
        platform=AMD64,
    )


def holding(*images: StoredImage, **more: Any) -> Holdings:
    found = tuple(sorted(images, key=lambda one: one.digest))
    told: dict[str, Any] = {"runtime": NodeRuntime("containerd", "2.4.2"), "platform": AMD64, "disk": 10**12} | more
    return Holdings(images=found, **{"disk_free": 10**11, **told})


def unmeasured(image: StoredImage) -> StoredImage:
    layers = tuple(msgspec.structs.replace(layer, unpacked=None) for layer in image.layers)
    return msgspec.structs.replace(image, layers=layers)


def digests(*images: StoredImage) -> list[Digest]:
    return sorted(image.digest for image in images)


Scene = Holdings | BaseException | Callable[[], Any]


class ScriptedSource:
    """Answers one look after the other as the script says, and then always the last; a change a second."""

    def __init__(self, *scenes: Scene, every: float = 1.0) -> None:
        self.scenes = list(scenes)
        self.every = every
        self.looked: list[float] = []
        self.closed = 0
        self.changing: list[BaseException] = []

    async def look(self) -> Holdings:
        self.looked.append(asyncio.get_running_loop().time())
        scene = self.scenes.pop(0) if len(self.scenes) > 1 else self.scenes[0]
        if isinstance(scene, BaseException):
            raise scene
        if isinstance(scene, Holdings):
            return scene
        found: Holdings = await scene()
        return found

    async def changed(self) -> None:
        await asyncio.sleep(self.every)
        if self.changing:
            raise self.changing.pop(0)

    async def close(self) -> None:
        self.closed += 1
