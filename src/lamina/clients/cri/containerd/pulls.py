"""
What is on its way.

containerd tells which blobs are being downloaded and how far, not for which image: that follows from manifests, which
are there before their layers. A pull lasts from its first download until its top layer is unpacked; its bytes are those
of all layers that were missing when it began.

    downloads seen --manifest found--> going --top layer unpacked--> an image
          |                              |
          +--> told by its own name      +--given up, or nothing for a while--> forgotten

Not every version says that a pull was given up. Where no download is left and layers are neither here nor unpacked, it was.
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
"""Seconds after which a download that does not grow is none: what failed stays in the store for a day."""
FORGOTTEN: Final = 600.0
"""Seconds without a sign of life; unpacking a large layer gives none."""
PULL_LIMIT: Final = 64
NAME_LIMIT: Final = 512
LAYER: Final = "layer-"
DOUBTFUL: Final = 2
"""Looks in a row that found no download of a pull; between two downloads there may be one."""


class ContainerdDownload(msgspec.Struct, frozen=True, gc=False):
    """A blob that is being downloaded."""

    ref: str
    digest: str
    """Empty when the store does not say."""
    offset: int
    total: int
    started: float

    @property
    def is_layer(self) -> bool:
        """Whether it is a layer, or at least not known to be a document."""
        return self.ref.startswith(LAYER)


class ContainerdPull(msgspec.Struct):
    """A pull whose manifest is known."""

    image: ContainerdImage
    name: str
    missing: dict[str, int]
    """Compressed sizes of the layers that were not there when it began."""
    start: float
    alive: float
    seen: set[str] = msgspec.field(default_factory=set)
    """Of what was missing, what was downloading at some time."""
    quiet: int = 0
    """Looks in a row that found no download."""


def downloads(statuses: Iterable[content_pb2.Status], now: float) -> list[ContainerdDownload]:
    """Return what is really being downloaded, in the order of names."""
    going = []
    for status in statuses:
        updated = status.updated_at.seconds + status.updated_at.nanos / 1e9
        if now - updated > STALLED:
            continue
        started = status.started_at.seconds + status.started_at.nanos / 1e9
        # "layer-sha256:..." or, where the layer has a name of its own, "layer-name@sha256:..."
        digest = _digest(status.expected) or _digest(status.ref.partition("-")[2].rpartition("@")[2])
        going.append(
            ContainerdDownload(status.ref[:NAME_LIMIT], digest, max(status.offset, 0), max(status.total, 0), started)
        )
    return sorted(going, key=lambda download: download.ref)


class ContainerdPulls:
    """The pulls that are going on."""

    def __init__(self, ledger: ContainerdEventLog) -> None:
        self.going: dict[Digest, ContainerdPull] = {}
        self._ledger = ledger

    def orphans(self, found: Iterable[ContainerdDownload]) -> list[ContainerdDownload]:
        """Layers that no known pull explains."""
        explained = {digest for going in self.going.values() for digest in going.missing}
        return [download for download in found if download.is_layer and download.digest not in explained]

    def begin(
        self, image: ContainerdImage, name: str, here: Mapping[str, float], unpacked: set[str], start: float
    ) -> None:
        """
        Take up the pull of *image*, which began at *start*.

        *here* says since when blobs of its layers are there, *unpacked* which of its chain ids are.
        """
        chain = image.chain()
        prepared = [self._ledger.prepared[one] for one in chain if one in self._ledger.prepared]
        start = min([start, *(at for at in prepared if start - at < FORGOTTEN)])
        missing = {}
        for layer, one in zip(image.layers, chain, strict=True):
            span = self._ledger.spans.get(one)
            old = one in unpacked and (span is None or span.end < start)
            if not old and here.get(layer.digest, start) >= start:
                missing[str(layer.digest)] = layer.size
        self.going[image.digest] = ContainerdPull(image, name, missing, start, start)

    def progress(self, found: Iterable[ContainerdDownload], unpacked: set[str], now: float) -> None:
        """Take over how far everything has come, and strike out what is at an end; *unpacked* are chain ids."""
        offsets = {download.digest: download.offset for download in found}
        given_up, self._ledger.given_up = self._ledger.given_up, set()
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
        """Pulls of which nothing is downloading any more; either they are being unpacked, or they were given up."""
        return [going for going in self.going.values() if going.seen and going.quiet == DOUBTFUL]

    def drop_given_up(self, here: Container[str], unpacked: set[str]) -> None:
        """Strike out those of the doubtful whose layers are not all *here* or *unpacked*."""
        for going in self.doubtful():
            chain = dict(zip((str(layer.digest) for layer in going.image.layers), going.image.chain(), strict=True))
            if not all(digest in here or chain[digest] in unpacked for digest in going.missing):
                del self.going[going.image.digest]

    def told(self, found: Iterable[ContainerdDownload], unpacked: set[str]) -> tuple[ActivePull, ...]:
        """Return every pull, those of known images first."""
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
            elif digest in going.seen or self._ledger.created.get(digest, 0.0) >= going.start or chain in unpacked:
                done[digest] = layer.size
        return done


def _digest(text: str) -> str:
    try:
        return parse_digest(text)
    except DigestError:
        return ""
