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

# Sets of images whose row of bytes is kept: 40 MB at 5,000 nodes.
KEPT: Final = 1024


class Inventory:
    """What is known about images and about the layers on nodes."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self.catalog = Catalog()
        self.index = LayerIndex()
        self._reports: dict[str, LayerReport] = {}
        self._early: dict[str, LayerReport] = {}
        """Reports about another machine of the name than the one that has it: perhaps the next."""
        self._rows: dict[str, tuple[int, str]] = {}
        self._waiting: dict[Digest, set[str]] = {}
        self._wanted: OrderedDict[tuple[str, ...], WantedLayers] = OrderedDict()

    def join(self, node: str, uid: str, row: int) -> bool:
        """A node has this row from now on; say whether layers are known of it."""
        self._rows[node] = (row, uid)
        early = self._early.pop(node, None)
        if early is not None and early.node_uid == uid:
            self._reports[node] = early
        return self._apply(node)

    def leave(self, node: str) -> None:
        """A node is gone, and its report with it."""
        row, _ = self._rows.pop(node)
        self.index.forget(row)
        self._reports.pop(node, None)

    def report(self, report: LayerReport) -> list[int]:
        """Take a report in; return the rows about which more is known now. A late report is dropped."""
        if report.node in self._rows and _about_another(report, self._rows[report.node][1]):
            self._early[report.node] = report
            return []
        before = self._reports.get(report.node)
        if before is not None and before.node_uid == report.node_uid and report.sequence < before.sequence:
            return []
        self._reports[report.node] = report
        return self._changed([report.node])

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
        row, uid = self._rows[node]
        if _about_another(report, uid):
            # The report is about an earlier node of this name: it says nothing about this one.
            return False
        layers: list[Layer] = []
        for held in report.images:
            image = self.catalog.by_digest(held.digest)
            if image is None:
                self._waiting.setdefault(held.digest, set()).add(node)
            else:
                layers.extend(image.layers)
        return self.index.replace(row, layers)


def _about_another(report: LayerReport, uid: str) -> bool:
    return bool(report.node_uid) and bool(uid) and report.node_uid != uid
