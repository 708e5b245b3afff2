"""
Facts from containerd's content store besides the documents, in one query.

A configuration's record names the snapshotter that unpacked its image. A manifest's record names its repository and
whether its layers are retained as blobs. That shows how the runtime reuses layers: if it discards blobs after
unpacking, only layers below a new layer can be reused. The blobs alone do not show it, because they stay until garbage
collection.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import aclosing
from typing import Final

import msgspec

from lamina.clients.cri.containerd.containerd_client import ContainerdClient
from lamina.clients.cri.containerd.image_documents import ContainerdImage
from lamina.clients.cri.protos import content_pb2
from lamina.model.layer_report import Reuse

UNPACKED_BY: Final = "containerd.io/gc.ref.snapshot."
HAS_CONFIG: Final = "containerd.io/gc.ref.content.config"
KEEPS_LAYER: Final = "containerd.io/gc.ref.content.l."
CAME_FROM: Final = "containerd.io/distribution.source."

SAMPLE: Final = 32
"""Images whose blobs are queried; a sample suffices."""
ASKED_LIMIT: Final = 1024
PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class StoredBlob(msgspec.Struct, frozen=True, gc=False):
    """A blob that exists."""

    digest: str
    since: float
    name: str = ""
    """Image name of its origin; containerd records it without the registry's port."""
    keeps_layers: bool = False
    """Whether it is a manifest whose layers are retained as blobs."""


class ContentSurvey(msgspec.Struct, frozen=True):
    """The result of one query."""

    unpacked_by: dict[str, tuple[str, ...]]
    """Snapshotters, by the digest of the configuration."""
    present: dict[str, StoredBlob]
    """The requested blobs that exist."""
    manifests: list[StoredBlob]
    """Newest first; empty unless requested."""


async def survey(
    client: ContainerdClient, snapshotters: Iterable[str], asked: Collection[str] = (), *, manifests: bool = False
) -> ContentSurvey:
    """Query all requested facts at once."""
    names = [name for name in snapshotters if PLAIN_NAME.fullmatch(name)]
    wanted = set(sorted(asked)[:ASKED_LIMIT])
    filters = [f'labels."{UNPACKED_BY}{name}"' for name in names]
    filters += [f'digest=="{digest}"' for digest in sorted(wanted)]
    filters += [f'labels."{HAS_CONFIG}"'] if manifests else []
    result = ContentSurvey({}, {}, [])
    if not filters:
        return result
    async with aclosing(client.contents(filters)) as infos:
        async for info in infos:
            _file(info, wanted, result, manifests=manifests)
    result.manifests.sort(key=lambda blob: (-blob.since, blob.digest))
    return result


def reuse(sample: Collection[ContainerdImage], present: Mapping[str, StoredBlob]) -> Reuse:
    """
    Return "set" if most unpacked images retain their top layer as a blob, so any blob can be reused; else "prefix".

    An image that retains its layers but has no top blob is ignored: the same content was unpacked from another blob, so
    this one was never downloaded.
    """
    kept = dropped = 0
    for image in sample:
        manifest = present.get(image.digest)
        if manifest is None or not manifest.keeps_layers:
            dropped += 1
        elif image.layers[-1].digest in present:
            kept += 1
    return "set" if kept > dropped else "prefix"


def _file(info: content_pb2.Info, wanted: set[str], result: ContentSurvey, *, manifests: bool) -> None:
    since = info.created_at.seconds + info.created_at.nanos / 1e9
    by = tuple(sorted(key.removeprefix(UNPACKED_BY) for key in info.labels if key.startswith(UNPACKED_BY)))
    if by:
        result.unpacked_by[info.digest] = by
    keeps = any(key.startswith(KEEPS_LAYER) for key in info.labels)
    if info.digest in wanted:
        result.present[info.digest] = StoredBlob(info.digest, since, keeps_layers=keeps)
    if manifests and HAS_CONFIG in info.labels:
        result.manifests.append(StoredBlob(info.digest, since, _origin(info), keeps))


def _origin(info: content_pb2.Info) -> str:
    """Return ``registry/repository@digest`` for the first registry in the blob's labels."""
    for key in sorted(info.labels):
        if key.startswith(CAME_FROM):
            repository = info.labels[key].partition(",")[0]
            return f"{key.removeprefix(CAME_FROM)}/{repository}@{info.digest}"
    return ""
