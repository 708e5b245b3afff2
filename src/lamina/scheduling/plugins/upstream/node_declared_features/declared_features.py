"""
Node fact of NodeDeclaredFeatures: which rows declare a feature that pods can require.

Few pods require features, and a node declares a dozen that no pod can require. So only the former are kept, each as an
array of all rows.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from lamina.model.node import Node
from lamina.model.node_features import REQUIRABLE
from lamina.model.pod import Pod
from lamina.rows.growable import grown
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.node_facts import Placements

NO_ROWS: Final = np.zeros(0, dtype=np.bool_)


class DeclaredFeatures:
    """Rows that declare a feature, by feature."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        """Start without nodes."""
        self._rows: dict[str, Bools] = dict.fromkeys(REQUIRABLE, NO_ROWS)

    @property
    def name(self) -> str:
        """Identifies the fact."""
        return "declared-features"

    def counts(self, pod: Pod) -> bool:
        """Return False: nodes declare features, pods do not."""
        return False

    def put(self, row: int, node: Node | None) -> bool:
        """Set the features of a row; return whether they changed."""
        declared = () if node is None else node.declared_features
        changed = False
        for feature, rows in self._rows.items():
            there = feature in declared
            if there == (row < len(rows) and rows.item(row)):
                continue
            if row >= len(rows):
                rows = self._rows[feature] = grown(rows, row + 1)
            rows[row] = there
            changed = True
        return changed

    def add(self, row: int, pod: Pod) -> bool:
        """Return False: pods do not change the features of a node."""
        return False

    def remove(self, row: int, pod: Pod) -> bool:
        """Return False, as in `add`."""
        return False

    def as_if(self, gone: Placements, there: Placements) -> "DeclaredFeatures":
        """Return this fact: it does not depend on pods."""
        return self

    def declare(self, features: Iterable[str], height: int) -> Bools:
        """Return which of the first *height* rows declare all of these features."""
        flags: Bools = np.ones(height, dtype=np.bool_)
        for feature in features:
            rows = self._rows.get(feature, NO_ROWS)[:height]
            flags[: len(rows)] &= rows
            flags[len(rows) :] = False
        return flags
