"""
Inventory of image layers: joins the catalog, node reports, arriving images and the layer index.

The scheduling loop feeds the inventory and plugins query it. A report lists images, the catalog gives their layers, and
the index records which rows hold which layers. Image names come from sources that described the image, or else from the
names under which nodes hold it. A report may arrive before its node or before its images are known; it is kept until it
can take effect. A report that cannot be true is rejected: its node is treated as unreported, and `conditions` names the
fault.
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

# Reports kept for unknown nodes. At startup, all reports may arrive before all nodes.
MOST_EARLY: Final = 32_768


class InventoryNode(msgspec.Struct, frozen=True, kw_only=True):
    """Serializable form of one known node."""

    name: str
    row: int
    uid: str
    platform: Platform
    report: LayerReport | None = None
    claims: bool = False
    """Whether the node's image names are used as tag votes."""
    room: int | None = None
    condition: str = ""
    poorer: bool = False


class InventorySnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Serializable form of `Inventory`, without what queries derive from it."""

    now: float
    meanings: int
    catalog: CatalogSnapshot
    images: tuple[Image, ...]
    """Images that rows hold or expect and that the catalog has dropped."""
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
    """Images, and the layers that nodes hold or are pulling."""

    def __init__(self) -> None:
        """Start empty."""
        self.now = 0.0
        self.catalog = Catalog()
        self.index = LayerIndex()
        self.rates = PullRates(self.index.capacity)
        self.arrivals = ArrivingImages(self.index, self.rates)
        self.freshness = ReportFreshness()
        self.readiness_cache = ReadinessCache(
            self.catalog, self.index, ReadinessEstimator(self.index, self.rates, self.arrivals)
        )
        """Readiness estimates of the image sets that pods need, per row."""
        self.complaints: Counter[str] = Counter()
        """Number of rejected or corrected reports, by fault."""
        self.conditions: dict[str, str] = {}
        """Node → fault of its newest report."""
        self.meanings = 0
        """Grows whenever tag votes change the image of a name. Results cached by name are invalid from then on."""
        self._rows: dict[str, tuple[int, str]] = {}
        self._platforms: dict[str, Platform] = {}
        self._reports: dict[str, LayerReport] = {}
        """Node → its newest report."""
        self._early: OrderedDict[str, tuple[LayerReport, str]] = OrderedDict()
        """Reports for unknown nodes, with their fault: a node of that name may still join."""
        self._votes: dict[str, tuple[Platform, tuple[HeldImage, ...]]] = {}
        """Node → platform and images whose names are used as tag votes."""
        self._renamed: set[str] = set()
        """Names that refer to another image since `_recheck_pods` last ran."""
        self._rates_changed: list[int] = []
        """Rows without measured rates whose assumed rate has changed since `_recheck_pods` last ran."""
        self._waiting: dict[Digest, set[str]] = {}
        """Images with unknown layers → nodes whose accepted report lists them."""
        self._room: dict[str, int] = {}
        """Node that reported its disk size → bytes that certainly still fit there."""
        self._unstarted = UnstartedPods()
        self._poorer: set[str] = set()
        """Nodes that hold less than when `learn` last checked their pods."""

    # -- nodes and reports -------------------------------------------------------------------------------------------

    def join(self, node: str, uid: str, row: int, platform: Platform | None = None) -> bool:
        """Assign *row* to a node; return whether its layers are known."""
        self._rows[node] = (row, uid)
        self._platforms[node] = platform or Platform()
        self.readiness_cache.place(row, self._platforms[node])
        if node in self._votes:
            self._replace_votes(node, self._votes[node][1])
            self._recheck_pods()
        for pod in self._unstarted.affected(nodes=[node]):
            self._await(pod)
        early, complaint = self._early.pop(node, (None, ""))
        if early is None or _about_another(early, uid):
            return False
        self._reports[node] = early
        if complaint:
            self._complain(node, complaint)
        known = self._apply(node)
        self._recheck_pods()
        return known

    def leave(self, node: str) -> None:
        """Remove a node and its report."""
        self._replace_votes(node, ())
        row, _ = self._rows.pop(node)
        del self._platforms[node]
        self.readiness_cache.leave(row)
        self.arrivals.forget(row)
        self.index.forget(row)
        self.rates.observe(row, 0.0, 0.0, 0, 0)
        self._update_assumed_rates()
        self.freshness.forget(row)
        self.conditions.pop(node, None)
        self._forget(node)
        self._poorer.discard(node)
        self._recheck_pods()

    def report(self, report: LayerReport) -> list[int]:
        """Store a report; return the rows whose data changed. A report older than the stored one is dropped."""
        node = report.node
        report, complaint = cleaned(report)
        if report.observed_at > self.now:
            # A time in the future must not make a report look fresh later.
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
        return [*known_more, *self._recheck_pods()]

    def withdraw(self, node: str) -> list[int]:
        """Remove a node's report, so that its layers are unknown; return the rows whose data changed."""
        self._early.pop(node, None)
        self.conditions.pop(node, None)
        if node not in self._reports:
            return []
        self._forget(node)
        self._replace_votes(node, ())
        self._poorer.add(node)
        row, _ = self._rows[node]
        known = bool(self.index.reported[row])
        self.index.forget(row)
        self.rates.observe(row, 0.0, 0.0, 0, 0)
        self._update_assumed_rates()
        self.freshness.forget(row)
        return [*([row] if known else []), *self._recheck_pods()]

    def _complain(self, node: str, what: str) -> None:
        self.complaints[what] += 1
        self.conditions[node] = what

    def _forget(self, node: str) -> None:
        """Drop a node's report and its entries in `_waiting`."""
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
        """Apply the known images of a node's report; return whether that changed anything."""
        report = self._reports[node]
        row, _ = self._rows[node]
        images = self._known_images(report)
        if not self._fit(node, images):
            return self._reject_report(node)
        if len(images) < len(report.images):
            for held in report.images:
                if self.catalog.by_digest(held.digest) is None:
                    self._waiting.setdefault(held.digest, set()).add(node)
        self._replace_votes(node, report.images)
        news = self.rates.observe(row, report.download_rate, report.unpack_rate, report.disk, report.disk_free)
        if news:
            self.index.touch(row)
            self._update_assumed_rates()
        news = self.freshness.renew(row, report.observed_at, report.renews_within, self.now) or news
        first, coming = not self.index.reported.item(row), self.index.expected(row)
        gone, fresh, anew = self.index.swap(row, images, by_prefix=report.reuse == "prefix")
        if gone:
            self._poorer.add(node)
        # The durations of queued pulls did not account for layers that appeared or disappeared unexpectedly.
        unexpected = first or not (coming.issuperset(gone) and coming.issuperset(fresh))
        news = bool(gone or fresh or anew) or news
        return self.arrivals.reported(row, report.observed_at, anew=unexpected) or news

    def _update_assumed_rates(self) -> None:
        """Give rows without measured rates the new median rate."""
        moved = self.rates.update_assumed()
        if moved is not None:
            # Rows beyond the array have never been queried.
            rows = [row for row, _ in self._rows.values() if row < len(moved) and moved[row]]
            for row in rows:
                self.index.touch(row)
            self._rates_changed += rows

    def _add(self, found: dict[str, list[Image]]) -> list[int]:
        """Add images that became known to the nodes that hold them; return the rows of those nodes."""
        rows: dict[str, int] = {node: self._rows[node][0] for node in sorted(found)}
        accepted = {node: row for node, row in rows.items() if self._fit(node, found[node])}
        unexpected = {
            node
            for node, row in accepted.items()
            if not self.index.expected(row).issuperset(image.digest for image in found[node])
        }
        self.index.gain({row: found[node] for node, row in accepted.items()})
        for node, row in rows.items():
            if node in accepted:
                self.arrivals.reported(row, self._reports[node].observed_at, anew=node in unexpected)
            else:
                self._reject_report(node)
        return list(rows.values())

    def _known_images(self, report: LayerReport) -> list[Image]:
        images = (self.catalog.by_digest(held.digest) for held in report.images)
        return [image for image in images if image is not None]

    def _fit(self, node: str, images: Sequence[Image]) -> bool:
        """Return whether these images fit on a node's disk, beside the known images of its report."""
        report = self._reports[node]
        if not report.disk:
            return True
        room = self._room.get(node, report.disk) - sum(self.catalog.most_bytes(image) for image in images)
        if room < 0:
            # Shared layers were added once per image. Counting them once is slower, so it is done only here.
            room = report.disk - least_bytes(self._known_images(report))
        self._room[node] = room
        return room >= 0

    def _reject_report(self, node: str) -> bool:
        """Reject a node's report that exceeds its disk; return whether the report was in effect until now."""
        self._complain(node, MORE_THAN_DISK)
        self._stop_waiting(node)
        self._replace_votes(node, ())
        self._poorer.add(node)
        row, _ = self._rows[node]
        known = bool(self.index.reported[row])
        self.index.forget(row)
        # The other figures of a report that cannot be true are not used either.
        self.rates.observe(row, 0.0, 0.0, 0, 0)
        self._update_assumed_rates()
        return known

    # -- names -------------------------------------------------------------------------------------------------------

    def _replace_votes(self, node: str, images: tuple[HeldImage, ...]) -> None:
        """Replace this node's tag votes. The caller must then call `_recheck_pods`."""
        platform = self._platforms[node]
        where, before = self._votes.pop(node, (platform, ()))
        if where != platform:
            self._renamed |= self.catalog.replace_votes(where, before, ())
            before = ()
        if before != images:
            self._renamed |= self.catalog.replace_votes(platform, before, images)
        if images:
            self._votes[node] = (platform, images)

    def _recheck_pods(self) -> list[int]:
        """Check unstarted pods again if names changed; return the rows whose data changed."""
        rates_changed, self._rates_changed = self._rates_changed, []
        if not self._renamed:
            return rates_changed
        renamed, self._renamed = self._renamed, set()
        self.meanings += 1
        self.readiness_cache.clear()
        return [*rates_changed, *self._expect_images(self._unstarted.affected(renamed))]

    # -- images ------------------------------------------------------------------------------------------------------

    def learn(self, images: Iterable[Image], good_for: float = 0.0) -> tuple[bool, list[int]]:
        """
        Add images; return whether anything was new, and the rows whose data changed.

        *good_for* is the lifetime of their names in seconds; 0 means unlimited.
        """
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
        self.readiness_cache.clear()
        rows = [*self._add(found), *self._recheck_pods()]
        moved, poorer = self._unstarted.changed_names(self.readiness_cache.meaning), self._poorer
        self._poorer = set()
        return True, [*rows, *self._expect_images(self._unstarted.affected(moved, poorer))]

    # -- unstarted pods -------------------------------------------------------------------------------------------

    def expect(self, pod: PodUid, node: str, names: tuple[str, ...]) -> list[int]:
        """Record that a pod is bound to a node and does not run yet; return the rows whose data changed."""
        before = self.gone(pod)
        self._unstarted.put(pod, node, names)
        return [*before, *self._expect_images([pod])]

    def ran(self, pod: PodUid) -> list[int]:
        """Record that a pod runs; return the rows whose data changed."""
        if not self._unstarted.pop(pod):
            return []
        row = self.arrivals.ran(pod)
        return [] if row is None else [row]

    def gone(self, pod: PodUid) -> list[int]:
        """Remove a deleted pod, or one whose binding failed; return the rows whose data changed."""
        self._unstarted.pop(pod)
        row = self.arrivals.gone(pod)
        return [] if row is None else [row]

    def _expect_images(self, pods: Iterable[PodUid]) -> list[int]:
        """Expect the images of pods whose nodes are known; return the rows whose data changed."""
        rows = []
        for pod in pods:
            node, _ = self._unstarted[pod]
            if node in self._rows and self._await(pod):
                rows.append(self._rows[node][0])
        return rows

    def _await(self, pod: PodUid) -> bool:
        node, names = self._unstarted[pod]
        self._unstarted.checked(names, self.readiness_cache.meaning)
        found = (self.catalog.find(name, self._platforms[node]) for name in dict.fromkeys(names))
        return self.arrivals.expect(pod, self._rows[node][0], [image for image in found if image is not None])

    # -- time --------------------------------------------------------------------------------------------------------

    def pass_time(self, now: float) -> tuple[bool, list[int]]:
        """Set the time; return whether names expired, and the rows whose data changed."""
        self.now = now
        expired = self.catalog.expire(now)
        if expired:
            self.readiness_cache.clear()
        doubted = self.freshness.pass_time(now)
        return expired, [*self.arrivals.pass_time(now), *doubted]

    # -- as data -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> InventorySnapshot:
        """Return the state as data. The copy is shallow: reports and images are shared."""
        by_digest = self.catalog.by_digest
        return InventorySnapshot(
            now=self.now,
            meanings=self.meanings,
            catalog=self.catalog.snapshot(),
            images=tuple(image for image in self.index.images() if by_digest(image.digest) is not image),
            platforms=self.readiness_cache.snapshot(),
            nodes=tuple(self._node(name, row, uid) for name, (row, uid) in self._rows.items()),
            early=tuple(self._early.values()),
            waiting={digest: tuple(sorted(nodes)) for digest, nodes in self._waiting.items()},
            held=self.index.snapshot(),
            rates=self.rates.snapshot(),
            trust=self.freshness.snapshot(),
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
            claims=name in self._votes,
            room=self._room.get(name),
            condition=self.conditions.get(name, ""),
            poorer=name in self._poorer,
        )

    def restore(self, snapshot: InventorySnapshot) -> None:
        """Restore a snapshot into an empty inventory. The rates that plugins assume may already be set."""
        self.now = snapshot.now
        self.catalog.restore(snapshot.catalog)
        self.readiness_cache.restore(snapshot.platforms)
        for node in snapshot.nodes:
            self._restore_node(node)
        self._early = OrderedDict((report.node, (report, complaint)) for report, complaint in snapshot.early)
        self._waiting = {digest: set(nodes) for digest, nodes in snapshot.waiting.items()}
        images = {image.digest: image for image in (*snapshot.catalog.images, *snapshot.images)}
        for held in snapshot.held:
            self.index.swap(held.row, [images[digest] for digest in held.images], by_prefix=held.by_prefix)
        self.rates.restore(snapshot.rates)
        self.freshness.restore(snapshot.trust)
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
                self._replace_votes(node.name, node.report.images)
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
