"""
What the store of blobs says besides the documents themselves, in one question.

The record of a configuration says by which snapshotter its image was unpacked, that of a manifest from which repository it
came and whether its layers are to be kept as blobs. That tells how the runtime reuses them: where they are thrown away once
unpacked, only what lies below a new layer is of use. Blobs alone do not tell, because they lie there until somebody clears
up.
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
"""Images whose blobs are looked for; a record is small, but there is no need to list them all."""
ASKED_LIMIT: Final = 1024
PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class StoredBlob(msgspec.Struct, frozen=True, gc=False):
    """A blob that is there."""

    digest: str
    since: float
    name: str = ""
    """Where it came from, as an image would be called, but without the port of the registry."""
    keeps_layers: bool = False
    """Whether it is a manifest whose layers stay as blobs."""


class ContentSurvey(msgspec.Struct, frozen=True):
    """What one question brought to light."""

    unpacked_by: dict[str, tuple[str, ...]]
    """Snapshotters, by the digest of the configuration."""
    present: dict[str, StoredBlob]
    """Of those that were asked for."""
    manifests: list[StoredBlob]
    """The newest first; empty unless asked for."""


async def survey(
    calls: ContainerdClient, snapshotters: Iterable[str], asked: Collection[str] = (), *, manifests: bool = False
) -> ContentSurvey:
    """Ask once for everything that is wanted."""
    names = [name for name in snapshotters if PLAIN_NAME.fullmatch(name)]
    wanted = set(sorted(asked)[:ASKED_LIMIT])
    filters = [f'labels."{UNPACKED_BY}{name}"' for name in names]
    filters += [f'digest=="{digest}"' for digest in sorted(wanted)]
    filters += [f'labels."{HAS_CONFIG}"'] if manifests else []
    result = ContentSurvey({}, {}, [])
    if not filters:
        return result
    async with aclosing(calls.contents(filters)) as infos:
        async for info in infos:
            _file(info, wanted, result, manifests=manifests)
    result.manifests.sort(key=lambda blob: (-blob.since, blob.digest))
    return result


def reuse(sample: Collection[ContainerdImage], present: Mapping[str, StoredBlob]) -> Reuse:
    """
    Judge by images that are unpacked: where most keep their top layer as a blob, any blob is of use.

    An image that keeps its layers and has no top layer says nothing: the same was unpacked before, from another blob, so
    this one was never fetched.
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
    """Return ``registry/repository@digest``, from the first registry the blob is known to be in."""
    for key in sorted(info.labels):
        if key.startswith(CAME_FROM):
            repository = info.labels[key].partition(",")[0]
            return f"{key.removeprefix(CAME_FROM)}/{repository}@{info.digest}"
    return ""
