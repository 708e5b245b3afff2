"""
Combines records and documents of CRI-O's store to images with names and layers.

Compressed digest and size of a layer come from the manifest. A layer's record has only those of the first image that
brought the layer, perhaps with another compression; they are used if there is no manifest. A layer that was never
compressed has its diff id as digest. This module reads no files.
"""

from collections.abc import Iterator, Mapping, Sequence

from lamina.clients.cri.storage.store_documents import StoreConfig, StoreManifest
from lamina.clients.cri.storage.store_records import MANIFEST, NAME_LIMIT, ImageRecord, LayerRecord, known
from lamina.model.digest import Digest
from lamina.model.holdings import StoredImage
from lamina.model.image import Layer
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.wire.oci.manifest import LAYER_LIMIT


def chain(top: str, layers: Mapping[str, LayerRecord]) -> tuple[LayerRecord, ...] | None:
    """Return the layers up to *top*, bottom first; None if one is missing or incomplete, or they form a loop."""
    found: list[LayerRecord] = []
    while top:
        layer = layers.get(top)
        if layer is None or not layer.complete or len(found) == LAYER_LIMIT:
            return None
        found.append(layer)
        top = layer.parent
    return tuple(reversed(found))


def stored_images(
    image: ImageRecord,
    held: Sequence[LayerRecord],
    manifests: Mapping[Digest, StoreManifest | None],
    configured: StoreConfig | None,
) -> Iterator[StoredImage]:
    """
    Yield one image for each image manifest, because a pod may name any of them.

    *held* is the layer chain, and *manifests* all stored manifests, the one in use first. Tags and index digests go to
    the one in use, because the records do not show which manifest they led to.
    """
    usable = [digest for digest in manifests if _is_usable(image, digest, manifests[digest], held)]
    pulled = known(image.digest)
    others = [digest for digest in (*manifests, pulled) if digest is not None and digest not in usable]
    platform = configured.platform if configured and configured.platform.architecture else None
    for place, digest in enumerate(usable):
        described = manifests[digest] or StoreManifest()
        if described.layers is not None and len(described.layers) != len(held):
            # This manifest does not describe the unpacked layers, so it is not used.
            described = StoreManifest()
        layers = _layers(held, described.layers, configured)
        yield StoredImage(
            digest=digest,
            names=names(image.names, (digest, *others) if place == 0 else (digest,), usable, tags=place == 0),
            size=sum({layer.digest: layer.size for layer in layers}.values()),
            layers=layers,
            manifest=described.data,
            media_type=described.media_type,
            platform=platform,
        )


def names(
    recorded: Sequence[str], digests: Sequence[Digest], images: Sequence[Digest], *, tags: bool
) -> tuple[str, ...]:
    """
    Return all names of an image: each repository with each of its *digests*, and the recorded names (*recorded*).

    Recorded names are included only with *tags*, and without those that contain the digest of another of *images*.
    """
    found: dict[str, None] = {}
    repositories: dict[str, None] = {}
    for name in recorded[:NAME_LIMIT]:
        try:
            reference = parse_reference(name)
        except ReferenceFormatError:
            continue
        repositories[reference.name] = None
        if tags and (reference.digest in digests or reference.digest not in images):
            found[name] = None
    found.update((f"{repository}@{digest}", None) for repository in repositories for digest in digests)
    return tuple(found)


def _is_usable(
    image: ImageRecord, digest: Digest, described: StoreManifest | None, held: Sequence[LayerRecord]
) -> bool:
    if described is None:
        # Unreadable. The manifest in use is not an index if there are layers; the others are unknown.
        return bool(held) and digest == image.big_data_digests.get(MANIFEST)
    return described.layers is not None


def _layers(
    held: Sequence[LayerRecord], listed: Sequence[Layer] | None, configured: StoreConfig | None
) -> tuple[Layer, ...]:
    """Return all layers; empty if one of them has neither digest nor diff id."""
    diff_ids = configured.diff_ids if configured and len(configured.diff_ids) == len(held) else (None,) * len(held)
    found = []
    for place, record in enumerate(held):
        diff_id = record.diff_id or diff_ids[place]
        if listed is not None:
            digest, size = listed[place].digest, listed[place].size
        elif record.compressed is not None:
            digest, size = record.compressed
        elif diff_id is not None:
            digest, size = diff_id, record.unpacked or 0
        else:
            return ()
        found.append(Layer(digest, size, diff_id, record.unpacked))
    return tuple(found)
