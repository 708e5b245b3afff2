"""A Prometheus server that answers from a table, and a source that follows a script."""

from collections.abc import Callable, Mapping, Sequence

from lamina.clients.prometheus.query_results import InstantResult, InstantSample, RangeResult, RangeSeries
from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage, ResourceUsage

NOON = 1772366400.0

Row = tuple[dict[str, str], float]
Course = tuple[dict[str, str], Sequence[float | None]]


class ScriptedPrometheus:
    """Answers a query with what the first fitting word of a table says; nothing fits: nothing."""

    def __init__(
        self,
        table: Mapping[str, Sequence[Row]],
        curves: Mapping[str, Sequence[Course]] | None = None,
        *,
        at: float = NOON,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.table, self.curves, self.at, self.warnings = table, curves or {}, at, warnings
        self.asked: list[str] = []
        self.ranges: list[tuple[float, float, float]] = []
        self.failure: Exception | None = None

    async def query(self, expression: str, *, at: float | None = None) -> InstantResult:
        self._ask(expression)
        if expression == "time()":
            return InstantResult((InstantSample({}, self.at, self.at),), self.warnings)
        rows = next((rows for word, rows in self.table.items() if word in expression), ())
        return InstantResult(tuple(InstantSample(labels, self.at, value) for labels, value in rows), self.warnings)

    async def query_range(self, expression: str, start: float, end: float, step: float) -> RangeResult:
        """The last number of a course is of the last step."""
        self._ask(expression)
        self.ranges.append((start, end, step))
        rows = next((rows for word, rows in self.curves.items() if word in expression), ())
        curves = []
        for labels, values in rows:
            times = [end - step * n for n in reversed(range(len(values)))]
            points = [(time, value) for time, value in zip(times, values, strict=True) if value is not None]
            curves.append(RangeSeries(labels, tuple(points)))
        return RangeResult(tuple(curves), self.warnings)

    async def close(self) -> None:
        """Nothing is open."""

    def _ask(self, expression: str) -> None:
        self.asked.append(expression)
        if self.failure is not None:
            raise self.failure


class ScriptedSource:
    """Tells one thing after the other, and then always the last; exceptions are raised."""

    def __init__(self, *script: Sequence[NodeUsage] | Exception) -> None:
        self.script = list(script)
        self.remark = ""
        self.looks = 0
        self.before: Callable[[], object] = lambda: None

    async def look(self, nodes: Mapping[str, Node], /) -> Sequence[NodeUsage]:
        self.looks += 1
        self.before()
        told = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(told, Exception):
            raise told
        return told

    async def close(self) -> None:
        """Nothing is open."""


def a_usage(node: str = "n1", cpu: float = 1000.0, until: float = NOON) -> NodeUsage:
    return NodeUsage(node, ResourceUsage(cpu, 10.0), ResourceUsage(1e9, 1e6), until - 900, until)
