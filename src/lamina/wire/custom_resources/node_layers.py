"""
The custom resource NodeLayers: the images on one node, as reported by its node agent.

    decode_node_layers         one object, as received from a watch
    decode_node_layers_list    one page of a list

The list of images is most of an object and similar on many nodes, so each distinct entry is decoded once and shared.
This module checks what the schema allows; `lamina.layers.report_checks` checks plausibility. `node_layers_status`
encodes what a node agent writes.
"""

import functools
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.digest import parse_digest
from lamina.model.image import Platform
from lamina.model.layer_report import ActivePull, HeldImage, LayerReport, NodeRuntime, Reuse
from lamina.wire.custom_resources.api_group import METADATA_LIMIT, CustomResourcePage, CustomResourceReader
from lamina.wire.decode_cache import NULL, memoized
from lamina.wire.errors import NothingSaidError
from lamina.wire.kube.meta import ObjectMeta
from lamina.wire.timestamps import seconds

KIND: Final = "NodeLayers"
PLURAL: Final = "nodelayers"

STATUS_LIMIT: Final = 256 * 1024
"""Largest status of an object in bytes."""
IMAGE_LIMIT: Final = 2000
NAME_LIMIT: Final = 16
"""Largest number of names of an image."""
NAME_LENGTH: Final = 512
PULL_LIMIT: Final = 16
TEXT_LENGTH: Final = 128
"""Longest other text, in characters."""
LARGEST: Final = 2**63 - 1
"""Integers of the schema have 64 bits."""

REUSES: Final[dict[str, Reuse]] = {"Prefix": "prefix", "Set": "set"}


class NodeLayersPlatform(msgspec.Struct, frozen=True, gc=False):
    """``status.platform``."""

    os: str = ""
    architecture: str = ""
    variant: str = ""


class NodeLayersRuntime(msgspec.Struct, frozen=True, gc=False):
    """``status.runtime``."""

    name: str = ""
    version: str = ""


class NodeLayersImage(msgspec.Struct, frozen=True, gc=False):
    """One of ``status.images``."""

    digest: str
    size: int = 0
    names: tuple[str, ...] | None = None
    lazy: bool = False


class NodeLayersPull(msgspec.Struct, frozen=True, gc=False):
    """One of ``status.pulling``."""

    name: str = ""
    digest: str | None = None
    done: int = 0
    total: int = 0


class NodeLayersStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``status``."""

    node_uid: str = msgspec.field(default="", name="nodeUID")
    runtime: NodeLayersRuntime | None = None
    platform: NodeLayersPlatform | None = None
    reuse: str = ""
    sequence: int = 0
    observed_at: str | None = None
    renew_seconds: int = 0
    images: list[Raw] | None = None
    pulling: Raw = NULL
    disk_bytes: int = 0
    free_bytes: int = 0
    download_rate: int = 0
    unpack_rate: int = 0


class NodeLayersObject(msgspec.Struct, frozen=True, gc=False):
    """A NodeLayers object."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    status: NodeLayersStatus | None = None


_IMAGE: Final = msgspec.json.Decoder(NodeLayersImage)
_PULLS: Final = msgspec.json.Decoder(tuple[NodeLayersPull, ...] | None)


def decode_node_layers(data: bytes | Raw) -> LayerReport:
    """Return the report of a NodeLayers. Raises NothingSaidError if the node agent has not reported yet."""
    return _NODE_LAYERS.one(data)


def decode_node_layers_list(data: bytes) -> CustomResourcePage[LayerReport]:
    """Return the reports of a NodeLayersList."""
    return _NODE_LAYERS.many(data)


def _report(found: NodeLayersObject) -> LayerReport:
    status = found.status
    if not found.metadata.name:
        raise ValueError("it has no name")
    if status is None or not status.observed_at:
        # This differs from a report of a node that holds no images.
        raise NothingSaidError(KIND, "its node agent has not reported yet", found.metadata.name)
    return LayerReport(
        node=found.metadata.name,
        node_uid=_text("status.nodeUID", status.node_uid),
        sequence=_count("status.sequence", status.sequence),
        observed_at=max(seconds(status.observed_at), 0.0),
        images=_images(status.images or ()),
        # Unknown values of a newer node agent are read as prefix, which promises less reuse.
        reuse=REUSES.get(status.reuse, "prefix"),
        renews_within=float(_count("status.renewSeconds", status.renew_seconds)),
        download_rate=float(_count("status.downloadRate", status.download_rate)),
        unpack_rate=float(_count("status.unpackRate", status.unpack_rate)),
        disk=_count("status.diskBytes", status.disk_bytes),
        disk_free=_count("status.freeBytes", status.free_bytes),
        pulling=_pulls(status.pulling),
        runtime=_runtime(status.runtime),
        platform=_platform(status.platform),
    )


def _images(entries: list[Raw] | tuple[Raw, ...]) -> tuple[HeldImage, ...]:
    if len(entries) > IMAGE_LIMIT:
        raise ValueError(f"status.images: {len(entries)} images, the limit is {IMAGE_LIMIT}")
    return tuple([_image(entry) for entry in entries])


def _read_image(text: bytes) -> HeldImage:
    entry = _IMAGE.decode(text)
    names = entry.names or ()
    if len(names) > NAME_LIMIT:
        raise ValueError(f"{len(names)} names, the limit is {NAME_LIMIT}")
    for name in names:
        if not 0 < len(name) <= NAME_LENGTH:
            raise ValueError(f"a name of {len(name)} characters, the limits are 1 and {NAME_LENGTH}")
    return HeldImage(_digest(entry.digest), _count("size", entry.size), names, entry.lazy)


def _read_pulls(text: bytes) -> tuple[ActivePull, ...]:
    entries = _PULLS.decode(text) or ()
    if len(entries) > PULL_LIMIT:
        raise ValueError(f"{len(entries)} pulls, the limit is {PULL_LIMIT}")
    return tuple(
        ActivePull(
            _text("name", entry.name, NAME_LENGTH),
            None if entry.digest is None else _digest(entry.digest),
            _count("done", entry.done),
            _count("total", entry.total),
        )
        for entry in entries
    )


def _runtime(entry: NodeLayersRuntime | None) -> NodeRuntime:
    if entry is None:
        return NodeRuntime()
    return NodeRuntime(_text("status.runtime.name", entry.name), _text("status.runtime.version", entry.version))


def _platform(entry: NodeLayersPlatform | None) -> Platform | None:
    """Return the platform if both operating system and architecture are given, else None."""
    if entry is None or not entry.os or not entry.architecture:
        return None
    parts = [_text("status.platform", part) for part in (entry.os, entry.architecture, entry.variant)]
    return Platform(*parts)


def _count(field: str, number: int) -> int:
    if not 0 <= number <= LARGEST:
        raise ValueError(f"{field}: {number} is not between 0 and 2^63")
    return number


def _text(field: str, text: str, most: int = TEXT_LENGTH) -> str:
    if len(text) > most:
        raise ValueError(f"{field}: {len(text)} characters, the limit is {most}")
    return text


_digest: Final = functools.lru_cache(maxsize=16_384)(parse_digest)
_image = memoized("status.images", _read_image)
_pulls = memoized("status.pulling", _read_pulls)

_NODE_LAYERS: Final = CustomResourceReader[NodeLayersObject, LayerReport](
    KIND, msgspec.json.Decoder(NodeLayersObject), STATUS_LIMIT + METADATA_LIMIT, _report
)
