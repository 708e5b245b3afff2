"""
Catalogue, reports and index together: the one thing the loop feeds and plugins ask.

A report names images, the catalogue says what they consist of, the index says which rows hold which layers. Reports
may come before their node and before their images are known; they are kept and take effect when they can.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from lamina.layers.catalog import Catalog
from lamina.layers.index import LayerIndex
from lamina.layers.wanted import WantedLayers
from lamina.model.digest import Digest
from lamina.model.image import Image, Layer
from lamina.model.reports import LayerReport

# Sets of images whose row of bytes is kept: 8 bytes for each row the index has room for, 67 MB at 5,000 nodes.
KEPT: Final = 1024
# Reports kept for nodes that are not there; more than this many nodes do not join at once.
MOST_EARLY: Final = 4096


class Inventory:
    """What is known about images and about the layers on nodes."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self.catalog = Catalog()
        self.index = LayerIndex()
        self._rows: dict[str, tuple[int, str]] = {}
        self._reports: dict[str, LayerReport] = {}
        """The newest report of each node there is."""
        self._early: OrderedDict[str, LayerReport] = OrderedDict()
        """Reports about nodes that are not there: perhaps the next of that name."""
        self._waiting: dict[Digest, set[str]] = {}
        self._wanted: OrderedDict[tuple[str, ...], WantedLayers] = OrderedDict()

    def join(self, node: str, uid: str, row: int) -> bool:
        """A node has this row from now on; say whether layers are known of it."""
        self._rows[node] = (row, uid)
        early = self._early.pop(node, None)
        if early is None or _about_another(early, uid):
            return False
        self._reports[node] = early
        return self._apply(node)

    def leave(self, node: str) -> None:
        """A node is gone, and its report with it."""
        row, _ = self._rows.pop(node)
        self.index.forget(row)
        self._forget(node)

    def report(self, report: LayerReport) -> list[int]:
        """Take a report in; return the rows about which more is known now. A late report is dropped."""
        node = report.node
        if node not in self._rows or _about_another(report, self._rows[node][1]):
            before = self._early.get(node)
            if before is None or not _older(report, before):
                self._early[node] = report
                self._early.move_to_end(node)
                if len(self._early) > MOST_EARLY:
                    self._early.popitem(last=False)
            return []
        known = self._reports.get(node)
        if known is not None and _older(report, known):
            return []
        self._forget(node)
        self._reports[node] = report
        return self._changed([node])

    def _forget(self, node: str) -> None:
        """Drop a node's report, and that it waits for what images in it consist of."""
        report = self._reports.pop(node, None)
        for held in report.images if report is not None else ():
            waiting = self._waiting.get(held.digest)
            if waiting is not None:
                waiting.discard(node)
                if not waiting:
                    del self._waiting[held.digest]

    def learn(self, images: Iterable[Image]) -> tuple[bool, list[int]]:
        """Take images in; say whether anything was new, and the rows about which more is known now."""
        news = False
        nodes: set[str] = set()
        for image in images:
            if self.catalog.learn(image):
                news = True
                self._wanted.clear()
                nodes |= self._waiting.pop(image.digest, set())
        return news, self._changed(sorted(nodes))

    def wanted(self, names: tuple[str, ...]) -> WantedLayers | None:
        """
        Return the distinct layers of these images; None when one of the images is not known.

        Absence of data is never data: with one image unknown nobody can say which node is better, so nobody does.
        """
        known = self._wanted.get(names)
        if known is not None:
            self._wanted.move_to_end(names)
            return known
        layers: dict[Digest, int] = {}
        for name in names:
            image = self.catalog.find(name)
            if image is None:
                return None
            for layer in image.layers:
                layers.setdefault(layer.digest, layer.size)
        fresh = self._wanted[names] = WantedLayers(layers)
        if len(self._wanted) > KEPT:
            self._wanted.popitem(last=False)
        return fresh

    def _changed(self, nodes: Iterable[str]) -> list[int]:
        return [self._rows[node][0] for node in nodes if node in self._rows and self._apply(node)]

    def _apply(self, node: str) -> bool:
        report = self._reports.get(node)
        if report is None:
            return False
        row, _ = self._rows[node]
        layers: list[Layer] = []
        for held in report.images:
            image = self.catalog.by_digest(held.digest)
            if image is None:
                self._waiting.setdefault(held.digest, set()).add(node)
            else:
                layers.extend(image.layers)
        return self.index.replace(row, layers)


def _older(report: LayerReport, known: LayerReport) -> bool:
    return report.node_uid == known.node_uid and report.sequence < known.sequence


def _about_another(report: LayerReport, uid: str) -> bool:
    return bool(report.node_uid) and bool(uid) and report.node_uid != uid
