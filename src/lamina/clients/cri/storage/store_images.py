"""
Puts records and documents together: what an image is called, and which layers it stands on.

A layer's compressed digest and size are the manifest's, because the same unpacked layer may have come with another image
in another compression, and its record knows only the first. Where there is no manifest to go by, they are the record's;
and a layer that never was compressed is called by its diff id. Never touches a file.
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
    """The layers up to *top*, bottom first; None when one is missing or incomplete, or they never end."""
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
    What an image amounts to, *held* being its chain and *manifests* all that is kept for it, that in use first.

    One for each manifest that is an image's: a pod may name any of them. Tags go to the one in use, and the digests of
    indexes too, for nothing tells which of the manifests they led to.
    """
    usable = [digest for digest in manifests if _is_usable(image, digest, manifests[digest], held)]
    pulled = known(image.digest)
    others = [digest for digest in (*manifests, pulled) if digest is not None and digest not in usable]
    platform = configured.platform if configured and configured.platform.architecture else None
    for place, digest in enumerate(usable):
        described = manifests[digest] or StoreManifest()
        if described.layers is not None and len(described.layers) != len(held):
            # It is not what was unpacked, so it explains nothing of what is held.
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


def names(told: Sequence[str], digests: Sequence[Digest], images: Sequence[Digest], *, tags: bool) -> tuple[str, ...]:
    """
    All that an image may be called by: each repository with each of its *digests*, and the names it was *told* by.

    The latter only if it has the *tags*, and none with the digest of another one of *images*.
    """
    found: dict[str, None] = {}
    repositories: dict[str, None] = {}
    for name in told[:NAME_LIMIT]:
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
        # It cannot be read. The one in use is no index where there are layers; what the others are, nobody knows.
        return bool(held) and digest == image.big_data_digests.get(MANIFEST)
    return described.layers is not None


def _layers(
    held: Sequence[LayerRecord], listed: Sequence[Layer] | None, configured: StoreConfig | None
) -> tuple[Layer, ...]:
    """All layers, or none when there is one of which nothing is known."""
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
