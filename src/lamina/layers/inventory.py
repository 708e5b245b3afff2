"""
Catalog, reports, arrivals and index together: the one thing the loop feeds and plugins ask.

A report names images, the catalog says what they consist of, the index says which rows hold which layers. What pods
call images is known from whoever described them, and else from the names under which nodes hold them. Reports may come
before their node and before their images are known; they are kept and take effect when they can. A report that cannot be
true is not believed: its node counts as one that reported nothing, and why is kept as a condition.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from lamina.layers.arriving_images import ArrivingImages, ArrivingImagesSnapshot
from lamina.layers.catalog import FOR_EVER, Catalog, CatalogSnapshot
from lamina.layers.layer_index import HeldRow, LayerIndex
from lamina.layers.pull_rates import PullRates, RowRates
from lamina.layers.readiness_cache import ReadinessCache
from lamina.layers.readiness_estimator import ReadinessEstimator
from lamina.layers.report_checks import ANOTHER_MACHINE, MORE_THAN_DISK, TOO_EARLY, cleaned, least_bytes
from lamina.layers.report_freshness import ReportFreshness, ReportFreshnessSnapshot
from lamina.layers.row_platforms import RowPlatformsSnapshot
from lamina.layers.unstarted_pods import UnstartedPods, UnstartedPodsSnapshot
from lamina.model.digest import Digest
from lamina.model.image import Image, Platform
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.model.pod import PodUid

# Reports kept for nodes that are not there: a scheduler that starts may be told of all reports before all nodes.
MOST_EARLY: Final = 32_768


class InventoryNode(msgspec.Struct, frozen=True, kw_only=True):
    """What an `Inventory` knows of one node that is there."""

    name: str
    row: int
    uid: str
    platform: Platform
    report: LayerReport | None = None
    claims: bool = False
    """Whether the names under which it holds images count."""
    room: int | None = None
    condition: str = ""
    poorer: bool = False


class InventorySnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an `Inventory` knows, as data. What a query works out from it is left out."""

    now: float
    meanings: int
    catalog: CatalogSnapshot
    images: tuple[Image, ...]
    """Images that rows hold or expect and the catalog does not know any more."""
    platforms: RowPlatformsSnapshot
    nodes: tuple[InventoryNode, ...]
    early: tuple[tuple[LayerReport, str], ...]
    waiting: dict[Digest, tuple[str, ...]]
    held: tuple[HeldRow, ...]
    rates: tuple[RowRates, ...]
    trust: ReportFreshnessSnapshot
    arrivals: ArrivingImagesSnapshot
    unstarted: UnstartedPodsSnapshot
    complaints: dict[str, int]


class Inventory:
    """What is known about images and about the layers on nodes."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self.now = 0.0
        self.catalog = Catalog()
        self.index = LayerIndex()
        self.rates = PullRates(self.index.capacity)
        self.arrivals = ArrivingImages(self.index, self.rates)
        self.trust = ReportFreshness()
        self.wants = ReadinessCache(self.catalog, self.index, ReadinessEstimator(self.index, self.rates, self.arrivals))
        """What pods want, and how soon they would have it where."""
        self.complaints: Counter[str] = Counter()
        """How often a report made no sense, by what was wrong with it."""
        self.conditions: dict[str, str] = {}
        """What is wrong with the newest report of a node."""
        self.meanings = 0
        """Grows whenever nodes give a name another meaning: whatever was kept by name has to be judged anew."""
        self._rows: dict[str, tuple[int, str]] = {}
        self._platforms: dict[str, Platform] = {}
        self._reports: dict[str, LayerReport] = {}
        """The newest report of each node there is."""
        self._early: OrderedDict[str, tuple[LayerReport, str]] = OrderedDict()
        """Reports about nodes that are not there, and what is wrong with them: perhaps the next of that name."""
        self._claimed: dict[str, tuple[Platform, tuple[HeldImage, ...]]] = {}
        """The images of each node whose names count, and on which platform."""
        self._renamed: set[str] = set()
        """Names that mean something else since pods were last told."""
        self._followed: list[int] = []
        """Rows that did not say how fast they are, and count as something else since pods were last told."""
        self._waiting: dict[Digest, set[str]] = {}
        """Images of which nobody knows what they consist of, and the nodes that hold them and are believed."""
        self._room: dict[str, int] = {}
        """How many bytes more surely fit on the disk of a node that told of one."""
        self._unstarted = UnstartedPods()
        self._poorer: set[str] = set()
        """Nodes that hold less than when the pods on them were last looked at."""

    # -- nodes and reports -------------------------------------------------------------------------------------------

    def join(self, node: str, uid: str, row: int, platform: Platform | None = None) -> bool:
        """A node has this row from now on; say whether layers are known of it."""
        self._rows[node] = (row, uid)
        self._platforms[node] = platform or Platform()
        self.wants.place(row, self._platforms[node])
        if node in self._claimed:
            self._claim(node, self._claimed[node][1])
            self._tell_pods()
        for pod in self._unstarted.concerned(nodes=[node]):
            self._await(pod)
        early, complaint = self._early.pop(node, (None, ""))
        if early is None or _about_another(early, uid):
            return False
        self._reports[node] = early
        if complaint:
            self._complain(node, complaint)
        known = self._apply(node)
        self._tell_pods()
        return known

    def leave(self, node: str) -> None:
        """A node is gone, and its report with it."""
        self._claim(node, ())
        row, _ = self._rows.pop(node)
        del self._platforms[node]
        self.wants.leave(row)
        self.arrivals.forget(row)
        self.index.forget(row)
        self.rates.observe(row, 0.0, 0.0, 0, 0)
        self._let_others_follow()
        self.trust.forget(row)
        self.conditions.pop(node, None)
        self._forget(node)
        self._poorer.discard(node)
        self._tell_pods()

    def report(self, report: LayerReport) -> list[int]:
        """Take a report in; return the rows about which more is known now. A late report is dropped."""
        node = report.node
        report, complaint = cleaned(report)
        if report.observed_at > self.now:
            # Nobody has seen what is to come; and reports are looked at again later, when that has passed.
            report = msgspec.structs.replace(report, observed_at=self.now)
        if node not in self._rows or _about_another(report, self._rows[node][1]):
            if node in self._rows:
                self.complaints[ANOTHER_MACHINE] += 1
            before, _ = self._early.get(node, (None, ""))
            if before is None or not _older(report, before):
                self._early[node] = (report, complaint)
                self._early.move_to_end(node)
                if len(self._early) > MOST_EARLY:
                    self._early.popitem(last=False)
                    self.complaints[TOO_EARLY] += 1
            return []
        known = self._reports.get(node)
        if known is not None and _older(report, known):
            return []
        self._forget(node)
        self._reports[node] = report
        self.conditions.pop(node, None)
        if complaint:
            self._complain(node, complaint)
        known_more = [self._rows[node][0]] if self._apply(node) else []
        return [*known_more, *self._tell_pods()]

    def withdraw(self, node: str) -> list[int]:
        """A node's report is gone: nothing is known of it until the next; return the rows that changes."""
        self._early.pop(node, None)
        self.conditions.pop(node, None)
        if node not in self._reports:
            return []
        self._forget(node)
        self._claim(node, ())
        self._poorer.add(node)
        row, _ = self._rows[node]
        known = bool(self.index.reported[row])
        self.index.forget(row)
        self.rates.observe(row, 0.0, 0.0, 0, 0)
        self._let_others_follow()
        self.trust.forget(row)
        return [*([row] if known else []), *self._tell_pods()]

    def _complain(self, node: str, what: str) -> None:
        self.complaints[what] += 1
        self.conditions[node] = what

    def _forget(self, node: str) -> None:
        """Drop a node's report, and that it waits for what images in it consist of."""
        self._stop_waiting(node)
        self._reports.pop(node, None)
        self._room.pop(node, None)

    def _stop_waiting(self, node: str) -> None:
        report = self._reports.get(node)
        for held in report.images if report is not None and self._waiting else ():
            waiting = self._waiting.get(held.digest)
            if waiting is not None:
                waiting.discard(node)
                if not waiting:
                    del self._waiting[held.digest]

    def _apply(self, node: str) -> bool:
        """Let a node's report take effect, as far as its images are known; say whether that changed anything."""
        report = self._reports[node]
        row, _ = self._rows[node]
        images = self._known_images(report)
        if not self._fit(node, images):
            return self._disbelieve(node)
        if len(images) < len(report.images):
            for held in report.images:
                if self.catalog.by_digest(held.digest) is None:
                    self._waiting.setdefault(held.digest, set()).add(node)
        self._claim(node, report.images)
        news = self.rates.observe(row, report.download_rate, report.unpack_rate, report.disk, report.disk_free)
        if news:
            self.index.touch(row)
            self._let_others_follow()
        news = self.trust.renew(row, report.observed_at, report.renews_within, self.now) or news
        first, coming = not self.index.reported.item(row), self.index.expected(row)
        gone, fresh, anew = self.index.swap(row, images, by_prefix=report.reuse == "prefix")
        if gone:
            self._poorer.add(node)
        # Pulls that wait were planned without what has come or gone unexpectedly.
        surprising = first or not (coming.issuperset(gone) and coming.issuperset(fresh))
        news = bool(gone or fresh or anew) or news
        return self.arrivals.reported(row, report.observed_at, anew=surprising) or news

    def _let_others_follow(self) -> None:
        """A node was seen to be faster or slower; those that have not been seen at all may count as something else now."""
        moved = self.rates.follow()
        if moved is not None:
            # Rows beyond have never been looked at.
            rows = [row for row, _ in self._rows.values() if row < len(moved) and moved[row]]
            for row in rows:
                self.index.touch(row)
            self._followed += rows

    def _add(self, found: dict[str, list[Image]]) -> list[int]:
        """Images that nodes were waiting for became known: add them and nothing else. Return the rows of those nodes."""
        rows: dict[str, int] = {node: self._rows[node][0] for node in sorted(found)}
        believed = {node: row for node, row in rows.items() if self._fit(node, found[node])}
        surprised = {
            node
            for node, row in believed.items()
            if not self.index.expected(row).issuperset(image.digest for image in found[node])
        }
        self.index.gain({row: found[node] for node, row in believed.items()})
        for node, row in rows.items():
            if node in believed:
                self.arrivals.reported(row, self._reports[node].observed_at, anew=node in surprised)
            else:
                self._disbelieve(node)
        return list(rows.values())

    def _known_images(self, report: LayerReport) -> list[Image]:
        images = (self.catalog.by_digest(held.digest) for held in report.images)
        return [image for image in images if image is not None]

    def _fit(self, node: str, images: Sequence[Image]) -> bool:
        """Say whether a node's disk can hold these images as well, beside those of its report that were known before."""
        report = self._reports[node]
        if not report.disk:
            return True
        room = self._room.get(node, report.disk) - sum(self.catalog.most_bytes(image) for image in images)
        if room < 0:
            # Layers that images share were counted for each of them; it takes longer to count them once.
            room = report.disk - least_bytes(self._known_images(report))
        self._room[node] = room
        return room >= 0

    def _disbelieve(self, node: str) -> bool:
        """A node's report cannot be true, and will not be however many of its images become known; say if it counted."""
        self._complain(node, MORE_THAN_DISK)
        self._stop_waiting(node)
        self._claim(node, ())
        self._poorer.add(node)
        row, _ = self._rows[node]
        known = bool(self.index.reported[row])
        self.index.forget(row)
        # Who says what cannot be true is not believed about its rates either.
        self.rates.observe(row, 0.0, 0.0, 0, 0)
        self._let_others_follow()
        return known

    # -- names -------------------------------------------------------------------------------------------------------

    def _claim(self, node: str, images: tuple[HeldImage, ...]) -> None:
        """From now on the names of these images on *node* count; whoever calls tells the pods."""
        platform = self._platforms[node]
        where, before = self._claimed.pop(node, (platform, ()))
        if where != platform:
            self._renamed |= self.catalog.claim(where, before, ())
            before = ()
        if before != images:
            self._renamed |= self.catalog.claim(platform, before, images)
        if images:
            self._claimed[node] = (platform, images)

    def _tell_pods(self) -> list[int]:
        """Look again at what waits by name, if names have moved; return all rows about which more is known now."""
        followed, self._followed = self._followed, []
        if not self._renamed:
            return followed
        renamed, self._renamed = self._renamed, set()
        self.meanings += 1
        self.wants.clear()
        return [*followed, *self._look_again(self._unstarted.concerned(renamed))]

    # -- images ------------------------------------------------------------------------------------------------------

    def learn(self, images: Iterable[Image], good_for: float = 0.0) -> tuple[bool, list[int]]:
        """Take images in; say whether anything was new, and the rows about which more is known now."""
        until = self.now + good_for if good_for > 0 else FOR_EVER
        news = False
        found: dict[str, list[Image]] = {}
        for image in images:
            if self.catalog.learn(image, until):
                news = True
                for node in self._waiting.pop(image.digest, ()):
                    found.setdefault(node, []).append(image)
        if not news:
            return False, []
        self.wants.clear()
        rows = [*self._add(found), *self._tell_pods()]
        moved, poorer = self._unstarted.moved(self.wants.meaning), self._poorer
        self._poorer = set()
        return True, [*rows, *self._look_again(self._unstarted.concerned(moved, poorer))]

    # -- pods on their way -------------------------------------------------------------------------------------------

    def expect(self, pod: PodUid, node: str, names: tuple[str, ...]) -> list[int]:
        """A pod was bound to a node and does not run yet; return the rows about which more is known now."""
        before = self.gone(pod)
        self._unstarted.put(pod, node, names)
        return [*before, *self._look_again([pod])]

    def ran(self, pod: PodUid) -> list[int]:
        """A pod runs."""
        if not self._unstarted.pop(pod):
            return []
        row = self.arrivals.ran(pod)
        return [] if row is None else [row]

    def gone(self, pod: PodUid) -> list[int]:
        """A pod is gone, or was not bound after all."""
        self._unstarted.pop(pod)
        row = self.arrivals.gone(pod)
        return [] if row is None else [row]

    def _look_again(self, pods: Iterable[PodUid]) -> list[int]:
        """Expect what pods need, wherever their nodes are there; return the rows about which more is known now."""
        rows = []
        for pod in pods:
            node, _ = self._unstarted[pod]
            if node in self._rows and self._await(pod):
                rows.append(self._rows[node][0])
        return rows

    def _await(self, pod: PodUid) -> bool:
        node, names = self._unstarted[pod]
        self._unstarted.saw(names, self.wants.meaning)
        found = (self.catalog.find(name, self._platforms[node]) for name in dict.fromkeys(names))
        return self.arrivals.expect(pod, self._rows[node][0], [image for image in found if image is not None])

    # -- time --------------------------------------------------------------------------------------------------------

    def pass_time(self, now: float) -> tuple[bool, list[int]]:
        """Move on; say whether names ceased to mean anything, and the rows about which time changes something."""
        self.now = now
        expired = self.catalog.expire(now)
        if expired:
            self.wants.clear()
        doubted = self.trust.pass_time(now)
        return expired, [*self.arrivals.pass_time(now), *doubted]

    # -- as data -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> InventorySnapshot:
        """Return everything that is known, as data. Shallow: reports and images are shared, nothing is worked out."""
        by_digest = self.catalog.by_digest
        return InventorySnapshot(
            now=self.now,
            meanings=self.meanings,
            catalog=self.catalog.snapshot(),
            images=tuple(image for image in self.index.images() if by_digest(image.digest) is not image),
            platforms=self.wants.snapshot(),
            nodes=tuple(self._node(name, row, uid) for name, (row, uid) in self._rows.items()),
            early=tuple(self._early.values()),
            waiting={digest: tuple(sorted(nodes)) for digest, nodes in self._waiting.items()},
            held=self.index.snapshot(),
            rates=self.rates.snapshot(),
            trust=self.trust.snapshot(),
            arrivals=self.arrivals.snapshot(),
            unstarted=self._unstarted.snapshot(),
            complaints=dict(self.complaints),
        )

    def _node(self, name: str, row: int, uid: str) -> InventoryNode:
        return InventoryNode(
            name=name,
            row=row,
            uid=uid,
            platform=self._platforms[name],
            report=self._reports.get(name),
            claims=name in self._claimed,
            room=self._room.get(name),
            condition=self.conditions.get(name, ""),
            poorer=name in self._poorer,
        )

    def restore(self, snapshot: InventorySnapshot) -> None:
        """Know what the snapshot was taken of; nothing may have happened before, apart from what plugins assume."""
        self.now = snapshot.now
        self.catalog.restore(snapshot.catalog)
        self.wants.restore(snapshot.platforms)
        for node in snapshot.nodes:
            self._restore_node(node)
        self._early = OrderedDict((report.node, (report, complaint)) for report, complaint in snapshot.early)
        self._waiting = {digest: set(nodes) for digest, nodes in snapshot.waiting.items()}
        images = {image.digest: image for image in (*snapshot.catalog.images, *snapshot.images)}
        for held in snapshot.held:
            self.index.swap(held.row, [images[digest] for digest in held.images], by_prefix=held.by_prefix)
        self.rates.restore(snapshot.rates)
        self.trust.restore(snapshot.trust)
        self.arrivals.restore(snapshot.arrivals, images)
        self._unstarted.restore(snapshot.unstarted)
        self.complaints = Counter(snapshot.complaints)
        self.meanings = snapshot.meanings
        self._renamed = set()

    def _restore_node(self, node: InventoryNode) -> None:
        self._rows[node.name] = (node.row, node.uid)
        self._platforms[node.name] = node.platform
        if node.report is not None:
            self._reports[node.name] = node.report
            if node.claims:
                self._claim(node.name, node.report.images)
        if node.room is not None:
            self._room[node.name] = node.room
        if node.condition:
            self.conditions[node.name] = node.condition
        if node.poorer:
            self._poorer.add(node.name)


def _older(report: LayerReport, known: LayerReport) -> bool:
    return report.node_uid == known.node_uid and report.sequence < known.sequence


def _about_another(report: LayerReport, uid: str) -> bool:
    return bool(report.node_uid) and bool(uid) and report.node_uid != uid
