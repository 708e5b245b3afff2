"""
Catalogue, reports, arrivals and index together: the one thing the loop feeds and plugins ask.

A report names images, the catalogue says what they consist of, the index says which rows hold which layers. Reports
may come before their node and before their images are known; they are kept and take effect when they can. A report that
cannot be true is not believed: its node counts as one that reported nothing, and why is kept as a condition.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.layers.arrivals import Arrivals
from lamina.layers.catalog import FOR_EVER, Catalog
from lamina.layers.index import LayerIndex
from lamina.layers.intake import ANOTHER_MACHINE, MORE_THAN_DISK, cleaned, exceeds_disk
from lamina.layers.rates import Rates
from lamina.layers.readiness import Stopwatch
from lamina.layers.trust import Trust
from lamina.layers.wants import Wants
from lamina.model.digest import Digest
from lamina.model.image import Image, Platform
from lamina.model.pod import PodUid
from lamina.model.reports import LayerReport

# Reports kept for nodes that are not there; more than this many nodes do not join at once.
MOST_EARLY: Final = 4096


class Inventory:
    """What is known about images and about the layers on nodes."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self.now = 0.0
        self.catalog = Catalog()
        self.index = LayerIndex()
        self.rates = Rates(self.index.capacity)
        self.arrivals = Arrivals(self.index, self.rates)
        self.trust = Trust()
        self.wants = Wants(self.catalog, self.index, Stopwatch(self.index, self.rates, self.arrivals))
        """What pods want, and how soon they would have it where."""
        self.complaints: Counter[str] = Counter()
        """How often a report made no sense, by what was wrong with it."""
        self.conditions: dict[str, str] = {}
        """What is wrong with the newest report of a node."""
        self._rows: dict[str, tuple[int, str]] = {}
        self._platforms: dict[str, Platform] = {}
        self._reports: dict[str, LayerReport] = {}
        """The newest report of each node there is."""
        self._early: OrderedDict[str, tuple[LayerReport, str]] = OrderedDict()
        """Reports about nodes that are not there, and what is wrong with them: perhaps the next of that name."""
        self._waiting: dict[Digest, set[str]] = {}
        self._unstarted: dict[PodUid, tuple[str, tuple[str, ...]]] = {}
        """Pods that have a node and do not run yet, and the images they need."""

    # -- nodes and reports -------------------------------------------------------------------------------------------

    def join(self, node: str, uid: str, row: int, platform: Platform | None = None) -> bool:
        """A node has this row from now on; say whether layers are known of it."""
        self._rows[node] = (row, uid)
        self._platforms[node] = platform or Platform()
        self.wants.place(row, self._platforms[node])
        for pod, (where, names) in self._unstarted.items():
            if where == node:
                self._await(pod, node, names)
        early, complaint = self._early.pop(node, (None, ""))
        if early is None or _about_another(early, uid):
            return False
        self._reports[node] = early
        if complaint:
            self._complain(node, complaint)
        return self._apply(node)

    def leave(self, node: str) -> None:
        """A node is gone, and its report with it."""
        row, _ = self._rows.pop(node)
        del self._platforms[node]
        self.arrivals.forget(row)
        self.index.forget(row)
        self.rates.observe(row, 0.0, 0.0, 0, 0)
        self.trust.forget(row)
        self.conditions.pop(node, None)
        self._forget(node)

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
            return []
        known = self._reports.get(node)
        if known is not None and _older(report, known):
            return []
        self._forget(node)
        self._reports[node] = report
        self.conditions.pop(node, None)
        if complaint:
            self._complain(node, complaint)
        return self._changed([node])

    def _complain(self, node: str, what: str) -> None:
        self.complaints[what] += 1
        self.conditions[node] = what

    def _forget(self, node: str) -> None:
        """Drop a node's report, and that it waits for what images in it consist of."""
        report = self._reports.pop(node, None)
        for held in report.images if report is not None else ():
            waiting = self._waiting.get(held.digest)
            if waiting is not None:
                waiting.discard(node)
                if not waiting:
                    del self._waiting[held.digest]

    def _changed(self, nodes: Iterable[str]) -> list[int]:
        return [self._rows[node][0] for node in nodes if node in self._rows and self._apply(node)]

    def _apply(self, node: str) -> bool:
        report = self._reports.get(node)
        if report is None:
            return False
        row, _ = self._rows[node]
        images: list[Image] = []
        for held in report.images:
            image = self.catalog.by_digest(held.digest)
            if image is None:
                self._waiting.setdefault(held.digest, set()).add(node)
            else:
                images.append(image)
        if exceeds_disk(report, images):
            # Once, however often the report is looked at again because an image in it became known.
            if self.conditions.get(node) != MORE_THAN_DISK:
                self._complain(node, MORE_THAN_DISK)
            known = bool(self.index.reported[row])
            self.index.forget(row)
            return known
        news = self.rates.observe(row, report.download_rate, report.unpack_rate, report.disk, report.disk_free)
        if news:
            self.index.touch(row)
        news = self.trust.renew(row, report.observed_at, report.renews_within, self.now) or news
        first, before, coming = not self.index.reported[row], self.index.held(row), self.index.expected(row)
        news = self.index.hold(row, images, by_prefix=report.reuse == "prefix") or news
        # Pulls that wait were planned without what has come or gone unexpectedly.
        surprising = first or not (self.index.held(row) ^ before) <= coming
        return self.arrivals.reported(row, report.observed_at, anew=surprising) or news

    # -- images ------------------------------------------------------------------------------------------------------

    def learn(self, images: Iterable[Image], good_for: float = 0.0) -> tuple[bool, list[int]]:
        """Take images in; say whether anything was new, and the rows about which more is known now."""
        until = self.now + good_for if good_for > 0 else FOR_EVER
        news = False
        nodes: set[str] = set()
        for image in images:
            if self.catalog.learn(image, until):
                news = True
                nodes |= self._waiting.pop(image.digest, set())
        if not news:
            return False, []
        self.wants.clear()
        rows = self._changed(sorted(nodes))
        for pod, (node, names) in self._unstarted.items():
            if node in self._rows and self._await(pod, node, names):
                rows.append(self._rows[node][0])
        return True, rows

    # -- pods on their way -------------------------------------------------------------------------------------------

    def expect(self, pod: PodUid, node: str, names: tuple[str, ...]) -> list[int]:
        """A pod was bound to a node and does not run yet; return the rows about which more is known now."""
        before = self.gone(pod)
        self._unstarted[pod] = (node, names)
        if node in self._rows and self._await(pod, node, names):
            before.append(self._rows[node][0])
        return before

    def ran(self, pod: PodUid) -> list[int]:
        """A pod runs."""
        if self._unstarted.pop(pod, None) is None:
            return []
        row = self.arrivals.ran(pod)
        return [] if row is None else [row]

    def gone(self, pod: PodUid) -> list[int]:
        """A pod is gone, or was not bound after all."""
        self._unstarted.pop(pod, None)
        row = self.arrivals.gone(pod)
        return [] if row is None else [row]

    def _await(self, pod: PodUid, node: str, names: tuple[str, ...]) -> bool:
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


def _older(report: LayerReport, known: LayerReport) -> bool:
    return report.node_uid == known.node_uid and report.sequence < known.sequence


def _about_another(report: LayerReport, uid: str) -> bool:
    return bool(report.node_uid) and bool(uid) and report.node_uid != uid
