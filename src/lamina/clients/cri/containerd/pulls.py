"""
Active pulls of a containerd.

containerd reports which blobs are being downloaded and their progress, but not for which image. The manifests, which
arrive before their layers, give the image. A pull lasts from its first download until its top layer is unpacked. Its
bytes are those of all layers that were missing when it began.

    downloads --manifest found--> active pull --top layer unpacked--> held image
          |                           |
          +--> reported by its ref    +--cancelled, or idle for too long--> dropped

Not every version reports a cancelled pull. If a pull has no download and its layers are neither stored nor unpacked, it
was cancelled.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Final

import msgspec

from lamina.clients.cri.containerd.event_log import ContainerdEventLog
from lamina.clients.cri.containerd.image_documents import ContainerdImage
from lamina.clients.cri.protos import content_pb2
from lamina.model.digest import Digest, DigestError, parse_digest
from lamina.model.layer_report import ActivePull

STALLED: Final = 60.0
"""Seconds after which a download without progress is ignored: failed downloads stay in the store for a day."""
FORGOTTEN: Final = 600.0
"""Seconds without progress after which a pull is dropped; unpacking a large layer shows no progress."""
PULL_LIMIT: Final = 64
NAME_LIMIT: Final = 512
LAYER: Final = "layer-"
DOUBTFUL: Final = 2
"""Consecutive looks without a download of a pull; one can fall between two downloads."""


class ContainerdDownload(msgspec.Struct, frozen=True, gc=False):
    """A blob that is being downloaded."""

    ref: str
    digest: str
    """Empty if the store does not report it."""
    offset: int
    total: int
    started: float

    @property
    def is_layer(self) -> bool:
        """Whether it is a layer, by its ref."""
        return self.ref.startswith(LAYER)


class ContainerdPull(msgspec.Struct):
    """A pull whose manifest is known."""

    image: ContainerdImage
    name: str
    missing: dict[str, int]
    """Compressed bytes of the layers that were missing when it began, by digest."""
    start: float
    alive: float
    seen: set[str] = msgspec.field(default_factory=set)
    """Missing layers whose download was seen."""
    quiet: int = 0
    """Consecutive looks without a download."""


def downloads(statuses: Iterable[content_pb2.Status], now: float) -> list[ContainerdDownload]:
    """Return the downloads with recent progress, ordered by ref."""
    going = []
    for status in statuses:
        updated = status.updated_at.seconds + status.updated_at.nanos / 1e9
        if now - updated > STALLED:
            continue
        started = status.started_at.seconds + status.started_at.nanos / 1e9
        # "layer-sha256:..." or, for a layer with its own name, "layer-name@sha256:..."
        digest = _digest(status.expected) or _digest(status.ref.partition("-")[2].rpartition("@")[2])
        going.append(
            ContainerdDownload(status.ref[:NAME_LIMIT], digest, max(status.offset, 0), max(status.total, 0), started)
        )
    return sorted(going, key=lambda download: download.ref)


class ContainerdPulls:
    """The active pulls."""

    def __init__(self, event_log: ContainerdEventLog) -> None:
        self.going: dict[Digest, ContainerdPull] = {}
        self._event_log = event_log

    def orphans(self, found: Iterable[ContainerdDownload]) -> list[ContainerdDownload]:
        """Return layer downloads that no known pull explains."""
        explained = {digest for going in self.going.values() for digest in going.missing}
        return [download for download in found if download.is_layer and download.digest not in explained]

    def begin(
        self, image: ContainerdImage, name: str, here: Mapping[str, float], unpacked: set[str], start: float
    ) -> None:
        """
        Add the pull of *image*, which began at *start*.

        *here* gives the creation time of each stored layer blob; *unpacked* contains the unpacked chain ids.
        """
        chain = image.chain()
        prepared = [self._event_log.prepared[one] for one in chain if one in self._event_log.prepared]
        start = min([start, *(at for at in prepared if start - at < FORGOTTEN)])
        missing = {}
        for layer, one in zip(image.layers, chain, strict=True):
            span = self._event_log.spans.get(one)
            old = one in unpacked and (span is None or span.end < start)
            if not old and here.get(layer.digest, start) >= start:
                missing[str(layer.digest)] = layer.size
        self.going[image.digest] = ContainerdPull(image, name, missing, start, start)

    def progress(self, found: Iterable[ContainerdDownload], unpacked: set[str], now: float) -> None:
        """Update the progress of all pulls and drop ended ones; *unpacked* contains chain ids."""
        offsets = {download.digest: download.offset for download in found}
        given_up, self._event_log.given_up = self._event_log.given_up, set()
        for digest, going in list(self.going.items()):
            active = going.missing.keys() & offsets.keys()
            going.quiet = 0 if active else going.quiet + 1
            if active:
                going.alive = now
                going.seen |= active
            stopped = not active and not given_up.isdisjoint(going.image.chain())
            unpacked_now = going.image.top in unpacked and not active
            if unpacked_now or stopped or now - going.alive > FORGOTTEN:
                del self.going[digest]

    def doubtful(self) -> list[ContainerdPull]:
        """Return pulls without a download: they are being unpacked, or were cancelled."""
        return [going for going in self.going.values() if going.seen and going.quiet == DOUBTFUL]

    def drop_given_up(self, here: Container[str], unpacked: set[str]) -> None:
        """Drop doubtful pulls whose layers are neither all stored (*here*) nor *unpacked*."""
        for going in self.doubtful():
            chain = dict(zip((str(layer.digest) for layer in going.image.layers), going.image.chain(), strict=True))
            if not all(digest in here or chain[digest] in unpacked for digest in going.missing):
                del self.going[going.image.digest]

    def report(self, found: Iterable[ContainerdDownload], unpacked: set[str]) -> tuple[ActivePull, ...]:
        """Return all pulls: those of known images first, then unexplained downloads."""
        found = list(found)
        by_digest = {download.digest: download for download in found}
        known = []
        explained = set()
        for digest, going in sorted(self.going.items()):
            explained |= {going.image.config, going.image.digest, *going.missing}
            done = sum(self._done(going, unpacked, by_digest).values())
            known.append(ActivePull(name=going.name, digest=digest, done=done, total=sum(going.missing.values())))
        others = [
            ActivePull(
                name=download.ref, done=min(download.offset, download.total or download.offset), total=download.total
            )
            for download in found
            if download.digest not in explained
        ]
        return (*known, *others)[:PULL_LIMIT]

    def _done(
        self, going: ContainerdPull, unpacked: set[str], found: Mapping[str, ContainerdDownload]
    ) -> dict[str, int]:
        done = {}
        for layer, chain in zip(going.image.layers, going.image.chain(), strict=True):
            digest = str(layer.digest)
            if digest not in going.missing:
                continue
            if digest in found:
                done[digest] = min(found[digest].offset, layer.size)
            elif digest in going.seen or self._event_log.created.get(digest, 0.0) >= going.start or chain in unpacked:
                done[digest] = layer.size
        return done


def _digest(text: str) -> str:
    try:
        return parse_digest(text)
    except DigestError:
        return ""
