"""
The layer room once more, in sets and lists and one row at a time: what bits, patches and arrays are held against.

Written from what the room promises, and slow on purpose: what a row has is put together from reports every time somebody
asks. Only what has a history is kept: reports, pull queues, and what was observed. Nothing is imported from the room.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer
from lamina.model.layer_report import LayerReport

Chain = tuple[Digest, ...]

DOWNLOAD: Final = 125e6
UNPACK: Final = 100e6


def all_known(image: Image) -> bool:
    """Whether the diff ids of all layers are known, so that its chains have the names that runtimes give them."""
    return all(layer.diff_id is not None for layer in image.layers)


class Store:
    """Everything that follows from having some images."""

    def __init__(self, images: Iterable[Image]) -> None:
        self.images: set[Digest] = set()
        self.blobs: set[Digest] = set()
        self.diffs: set[Digest | None] = set()
        self.chains: set[Chain] = set()
        self.diff_chains: set[tuple[Digest | None, ...]] = set()
        for image in images:
            digests = tuple(layer.digest for layer in image.layers)
            diffs = tuple(layer.diff_id for layer in image.layers)
            self.images.add(image.digest)
            self.blobs.update(digests)
            self.diffs.update(diff for diff in diffs if diff is not None)
            self.chains.update(digests[: end + 1] for end in range(len(digests)))
            if all_known(image):
                self.diff_chains.update(diffs[: end + 1] for end in range(len(diffs)))

    def names(self) -> int:
        """Count the different things an index has to know these images by."""
        return sum(map(len, (self.images, self.blobs, self.diffs, self.chains, self.diff_chains)))


class Need:
    """What a set of images consists of."""

    def __init__(self, images: Sequence[Image]) -> None:
        self.images = list({image.digest: image for image in images}.values())
        self._layers: dict[Digest, list[Layer]] = {}
        self._stacks: dict[Chain, list[tuple[Image, int]]] = {}
        for image in self.images:
            for place, layer in enumerate(image.layers):
                self._layers.setdefault(layer.digest, []).append(layer)
                chain = tuple(one.digest for one in image.layers[: place + 1])
                self._stacks.setdefault(chain, []).append((image, place))
        self.total = sum(layers[0].size for layers in self._layers.values())
        """Compressed bytes of each distinct blob."""

    @functools.lru_cache(maxsize=65_536)  # noqa: B019 - the same few sets are asked for over and over
    def not_held(self, has: Store, *, by_prefix: bool) -> tuple[int, int, bool]:
        """Return bytes to download as a runtime reuses them, unpacked bytes to write, and whether all images are there."""
        stacks = [chain for chain in self._stacks if not self._has_chain(chain, has)]
        if by_prefix:
            fresh = [chain[-1] for chain in stacks if chain[-1] not in chain[:-1]]
        else:
            fresh = [
                digest
                for digest, layers in self._layers.items()
                if digest not in has.blobs and not has.diffs & {layer.diff_id for layer in layers}
            ]
        return (
            sum(self._layers[digest][0].size for digest in fresh),
            sum(self._unpacked(chain) for chain in stacks),
            has.images >= {image.digest for image in self.images},
        )

    def _unpacked(self, chain: Chain) -> int:
        """Return the unpacked bytes of a chain's uppermost layer, as told by whoever knows it best."""
        tellings = self._stacks[chain]
        image, place = next((one for one in tellings if all_known(one[0])), tellings[0])
        layer = image.layers[place]
        return round(2.3 * layer.size) if layer.unpacked is None else layer.unpacked

    def _has_chain(self, chain: Chain, has: Store) -> bool:
        named = {
            tuple(layer.diff_id for layer in image.layers[: place + 1])
            for image, place in self._stacks[chain]
            if all_known(image)
        }
        return chain in has.chains or bool(named & has.diff_chains)


_NEEDS: dict[tuple[Digest, ...], Need] = {}
_STORES: dict[frozenset[Digest], Store] = {}


def need_of(*images: Image) -> Need:
    """Return what images consist of. A digest means the same for ever, so it is not worked out twice."""
    key = tuple(image.digest for image in images)
    if key not in _NEEDS:
        _NEEDS[key] = Need(images)
    return _NEEDS[key]


def store_of(*images: Image) -> Store:
    """Return what follows from having images, likewise."""
    key = frozenset(image.digest for image in images)
    if key not in _STORES:
        _STORES[key] = Store(images)
    return _STORES[key]


@dataclass
class Pull:
    """An image in a row's queue."""

    image: Image
    begins: float
    seconds: float
    eta: float
    ran_at: float | None = None
    claims: set[str] = field(default_factory=set)


@dataclass
class Row:
    """What is kept of a row; there is one for each node that is there."""

    node: str
    uid: str
    platform: str
    queue: list[Pull] = field(default_factory=list)
    claimed: dict[str, list[Digest]] = field(default_factory=dict)
    """Pod → what it found missing here."""
    report: LayerReport | None = None
    observed: tuple[float, float, int, int] = (0.0, 0.0, 0, 0)
    """Download and unpack rate (0: not told), disk and used, of the last report that was believed."""
    promise: tuple[float, float] | None = None
    """Until when that report is believed in full, and in how long belief halves."""

    @property
    def queue_end(self) -> float:
        """When the last pull ends."""
        return max((one.eta for one in self.queue if one.ran_at is None), default=-math.inf)


class Model:
    """An inventory in dictionaries."""

    def __init__(self) -> None:
        self.now = self.clock = self.doubt_clock = 0.0
        self.known: dict[Digest, Image] = {}
        self.names: dict[tuple[str, str], tuple[Digest, float]] = {}
        self.rows: dict[int, Row] = {}
        self.early: dict[str, LayerReport] = {}
        self.pods: dict[str, tuple[str, tuple[str, ...]]] = {}
        """Pods that have a node and do not run."""
        self.platforms: list[str] = []

    # -- what is known -----------------------------------------------------------------------------------------------

    def row_of(self, node: str) -> int | None:
        """Return a node's row."""
        return next((number for number, row in self.rows.items() if row.node == node), None)

    def held(self, row: Row) -> list[Image] | None:
        """Return what a row holds; None: nothing was said, or nothing that can be true."""
        if row.report is None:
            return None
        images = [self.known[one.digest] for one in row.report.images if one.digest in self.known]
        sizes = {layer.digest: layer.size for image in images for layer in image.layers}
        return None if row.report.disk and sum(sizes.values()) > row.report.disk else images

    def by_prefix(self, row: Row) -> bool:
        """Whether a row reuses only what lies on the same layers."""
        return self.held(row) is None or row.report is None or row.report.reuse == "prefix"

    def store(self, row: Row, coming: Iterable[Image] | None = None) -> Store:
        """Return all that is there or on its way."""
        queue = [one.image for one in row.queue] if coming is None else coming
        return store_of(*(self.held(row) or ()), *queue)

    def find(self, name: str, platform: str) -> Image | None:
        """Return what a name means."""
        digest, until = self.names.get((name, platform), (None, 0.0))
        return self.known[digest] if digest is not None and until > self.now else None

    def need(self, names: Sequence[str], platform: str) -> Need | None:
        """Return what names consist of; None when one of them is not known."""
        images = [self.find(name, platform) for name in names]
        found = [image for image in images if image is not None]
        return need_of(*found) if len(found) == len(images) else None

    # -- how soon ----------------------------------------------------------------------------------------------------

    def pull(self, row: Row, image: Image, coming: Iterable[Image] | None = None) -> float:
        """Return how long an image takes once its turn has come, after all that is there or comes before it."""
        download, unpack, _ = need_of(image).not_held(self.store(row, coming), by_prefix=self.by_prefix(row))
        return self.transfer(row, download, unpack)

    def rates(self, row: Row) -> list[float]:
        """Return how fast a row downloads and unpacks: as it told, or as the middle of those that told, in steps of 5 %."""
        found = []
        for which, usual in enumerate((DOWNLOAD, UNPACK)):
            told = sorted(told for one in self.rows.values() if (told := self.observed(one)[which]))
            if told:
                usual = 1.05 ** round(math.log(told[(len(told) - 1) // 2], 1.05))
            found.append(self.observed(row)[which] or usual)
        return found

    def observed(self, row: Row) -> tuple[float, float, int, int]:
        """Return rates, disk and what is used of it, as far as they are believed."""
        return (0.0, 0.0, 0, 0) if self.held(row) is None else row.observed

    def transfer(self, row: Row, download: int, unpack: int) -> float:
        """Return how long bytes take to come and to be unpacked."""
        one, other = (size / rate for size, rate in zip((download, unpack), self.rates(row), strict=True))
        return max(one, other) + 0.15 * min(one, other) + 0.04

    def seconds(self, row: Row, need: Need, *, whole_only: bool) -> tuple[float, float, float]:
        """Return seconds until ready, seconds of download, and the share of bytes to download."""
        by_prefix = self.by_prefix(row)
        download, unpack, complete = need.not_held(self.store(row), by_prefix=by_prefix)
        if whole_only and not complete:
            download, unpack, _ = need.not_held(store_of(), by_prefix=False)
        _, _, disk, used = self.observed(row)
        rate = self.rates(row)[0]
        if complete:
            wanted = {image.digest for image in need.images}
            etas = [one.eta for one in row.queue if one.ran_at is None and one.image.digest in wanted]
            ready = max([0.0, *(eta - self.clock for eta in etas)])
        else:
            over = used + (0 if by_prefix else download) + unpack - 0.85 * disk
            room = max(over, 0.0) / ((2.3 if by_prefix else 3.3) * rate) if disk else 0.0
            ready = max(row.queue_end - self.clock, 0.0) + self.transfer(row, download, unpack) + room
        return ready, 0.0 if complete else download / rate, download / max(need.total, 1)

    def trust(self, row: Row) -> float:
        """Return how far a row's report is believed."""
        end, half = row.promise or (math.inf, 1.0)
        halvings = (self.doubt_clock - end) / half
        return 1.0 if halvings <= 0 else 0.0 if halvings >= 4 else 0.5**halvings

    # -- nodes, reports, images --------------------------------------------------------------------------------------

    def join(self, node: str, uid: str, number: int, platform: str) -> None:
        row = self.rows[number] = Row(node, uid, platform)
        if platform not in self.platforms:
            self.platforms.append(platform)
        for pod, (where, _) in self.pods.items():
            if where == node:
                self.wait(pod)
        early = self.early.pop(node, None)
        if early is not None and not _foreign(early, uid):
            row.report = early
            self.take_over(row, None)

    def leave(self, number: int) -> None:
        left = self.rows.pop(number)
        if all(row.platform != left.platform for row in self.rows.values()):
            self.platforms.remove(left.platform)

    def report(self, report: LayerReport) -> None:
        report = msgspec.structs.replace(report, observed_at=min(report.observed_at, self.now))
        number = self.row_of(report.node)
        row = None if number is None else self.rows[number]
        if row is None or _foreign(report, row.uid):
            if not _late(report, self.early.get(report.node)):
                self.early[report.node] = report
        elif not _late(report, row.report):
            before = self.held(row)
            row.report = report
            self.take_over(row, before)

    def take_over(self, row: Row, before: list[Image] | None) -> None:
        """Let a report take effect; *before* is what the row was believed to hold."""
        report, held = row.report, self.held(row)
        if report is None or held is None:
            return
        coming = {one.image.digest for one in row.queue}
        surprising = before is None or bool((store_of(*before).images ^ store_of(*held).images) - coming)
        row.observed = (
            report.download_rate,
            report.unpack_rate,
            report.disk,
            report.disk - report.disk_free,
        )
        row.promise = None
        if report.renews_within:
            row.promise = (report.observed_at + 2 * report.renews_within, report.renews_within)
        there = store_of(*held).images
        row.queue = [
            one
            for one in row.queue
            if one.image.digest not in there and (one.ran_at is None or report.observed_at < one.ran_at)
        ]
        self.replan(row, anew=surprising)

    def learn(self, images: Sequence[Image], good_for: float) -> bool:
        before = {number: self.held(row) for number, row in self.rows.items()}
        fresh = {image.digest for image in images} - self.known.keys()
        news = False
        for image in images:
            news = news or image.digest not in self.known
            self.known.setdefault(image.digest, image)
            for name in image.names:
                known = self.find(name, image.platform.architecture)
                news = news or known is None or known.digest != image.digest
                until = self.now + good_for if good_for else math.inf
                self.names[name, image.platform.architecture] = (image.digest, until)
        for number, row in self.rows.items():
            if row.report is not None and fresh & {one.digest for one in row.report.images}:
                self.take_over(row, before[number])
        if news:
            for pod in self.pods:
                self.wait(pod)
        return news

    # -- pods --------------------------------------------------------------------------------------------------------

    def expect(self, pod: str, node: str, names: tuple[str, ...]) -> None:
        self.gone(pod)
        self.pods[pod] = (node, names)
        self.wait(pod)

    def wait(self, pod: str) -> None:
        """Queue what a pod lacks and does not wait for yet."""
        node, names = self.pods[pod]
        number = self.row_of(node)
        if number is None:
            return
        row = self.rows[number]
        there = store_of(*(self.held(row) or ())).images
        for name in names:
            image = self.find(name, row.platform)
            if image is None or image.digest in there or image.digest in row.claimed.get(pod, ()):
                continue
            row.claimed.setdefault(pod, []).append(image.digest)
            queued = next((one for one in row.queue if one.image.digest == image.digest), None)
            if queued is None:
                seconds = self.pull(row, image)
                begins = max(self.now, row.queue_end)
                queued = Pull(image, begins, seconds, begins + seconds)
                row.queue.append(queued)
            queued.claims.add(pod)

    def ran(self, pod: str) -> None:
        if self.pods.pop(pod, None) is None:
            return
        for row in self.rows.values():
            claimed = row.claimed.pop(pod, ())
            found = [one for one in row.queue if one.image.digest in claimed and one.ran_at is None]
            for one in found:
                one.ran_at = self.now
            if found:
                self.replan(row)

    def gone(self, pod: str) -> None:
        self.pods.pop(pod, None)
        for row in self.rows.values():
            if row.claimed.pop(pod, None) is None:
                continue
            for one in row.queue:
                one.claims.discard(pod)
            stays = [one for one in row.queue if one.claims or one.ran_at is not None or one.begins < self.now]
            anew = len(stays) < len(row.queue)
            row.queue = stays
            self.replan(row, anew=anew)

    def replan(self, row: Row, *, anew: bool = False) -> None:
        """What has begun goes on, the rest follows, one after the other."""
        free = self.now
        for place, one in enumerate(row.queue):
            if one.ran_at is not None:
                continue
            if one.begins < self.now and free == self.now:
                one.eta = max(one.eta, self.now)
            else:
                if anew:
                    one.seconds = self.pull(row, one.image, [other.image for other in row.queue[:place]])
                one.begins, one.eta = free, free + one.seconds
            free = one.eta

    def pass_time(self, now: float) -> bool:
        expired = any(self.now < until <= now for _, until in self.names.values())
        self.now = now
        if now >= self.doubt_clock + 30:
            self.doubt_clock = now
        if now >= self.clock + 0.25:
            self.clock = now
            for row in self.rows.values():
                stays = [one for one in row.queue if not self.is_late(one)]
                if len(stays) < len(row.queue):
                    row.queue = stays
                    self.replan(row, anew=True)
        return expired

    def is_late(self, one: Pull) -> bool:
        """Whether a pull took too long, or was deduced to have ended and nobody ever said so."""
        if one.ran_at is not None:
            return self.now > one.ran_at + 600
        return self.now > one.begins + one.seconds + max(3 * one.seconds, 60.0)


def _foreign(report: LayerReport, uid: str) -> bool:
    return bool(report.node_uid and uid and report.node_uid != uid)


def _late(report: LayerReport, before: LayerReport | None) -> bool:
    return before is not None and before.node_uid == report.node_uid and report.sequence < before.sequence
