"""Sort keys of single rows of the order table, computed for all rows at once when several are needed at one moment."""

from typing import Final

import numpy as np

from lamina.qos.order_table import OrderTable

FEW: Final = 3
"""So many keys are computed one by one."""


class RowKeys:
    """Keys that sort like `OrderTable.order`."""

    def __init__(self, table: OrderTable) -> None:
        """Read *table*."""
        self._table = table
        self._moment: tuple[float, int] | None = None
        self._asked = 0
        self._keys: list[tuple[float, ...]] | None = None

    def of(self, row: int, t: float, facts: int) -> tuple[float, ...]:
        """Return the key of a row at *t*; *facts* increases whenever a row has changed."""
        if self._moment != (t, facts):
            self._moment = (t, facts)
            self._asked, self._keys = 0, None
        if self._keys is None:
            self._asked += 1
            if self._asked <= FEW:
                return self._computed(np.array([row]), t)[0]
            self._keys = self._computed(np.arange(self._table.height), t)
        return self._keys[row]

    def _computed(self, rows: np.ndarray[tuple[int], np.dtype[np.intp]], t: float) -> list[tuple[float, ...]]:
        safe, rank, metrics = self._table.key_parts(rows, t)
        return list(zip(safe.tolist(), rank.tolist(), metrics.tolist(), strict=True))
