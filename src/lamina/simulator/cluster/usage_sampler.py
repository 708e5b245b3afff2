"""
Usage reports of all nodes, as the scheduler receives them from a monitoring system.

    every `UsageSpec.every` s --> usage of each node over the last `window` s --Delays.report--> one event for all nodes

Reports are made at multiples of the interval. A failed node is left out. A node that joined within the window is
measured from its joining.

Reports must not keep a run alive. They end when the window contains no change any more, because the next report would
be equal. They start again with the next change.
"""

import math
from collections.abc import Callable
from typing import Final

import msgspec

from lamina.model.events import Event, UsageReported
from lamina.model.node_usage import NodeUsage
from lamina.simulator.cluster.lag import DrawLag
from lamina.simulator.cluster.load_meter import NodeLoadMeter
from lamina.simulator.cluster.virtual_node import Delays, VirtualNode
from lamina.simulator.engine import Environment, Timer

LAST: Final = 20
"""Priority of reports: after the scheduler at the same time, so that `Environment.idle` sees no pending decision."""


class UsageSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of usage reports."""

    every: float = 60.0
    """Seconds between two reports."""
    window: float = 900.0
    """Seconds that each report covers; 15 minutes is Trimaran's default."""


class NodeUsageSampler:
    """Measures the usage of all nodes of one cluster."""

    def __init__(
        self,
        environment: Environment,
        spec: UsageSpec,
        delays: Delays,
        publish: Callable[[Event], None],
        draw: DrawLag,
    ) -> None:
        """Send reports to *publish* at the interval of *spec*."""
        self._environment = environment
        self._spec = spec
        self._delays = delays
        self._publish = publish
        self._draw = draw
        self._nodes: dict[str, VirtualNode] = {}
        self._meters: dict[str, NodeLoadMeter] = {}
        self._timer: Timer | None = None
        self._changed = environment.now
        slowest = delays.report if isinstance(delays.report, float | int) else max(delays.report)
        self._promise = spec.every + slowest

    def join(self, node: VirtualNode) -> None:
        """Start to measure a node."""
        now = self._environment.now
        node.meter = self._meters[node.name] = NodeLoadMeter(
            node.name, node.allocatable, now, node.usage, self._on_change
        )
        self._nodes[node.name] = node
        self._on_change(now)

    def leave(self, name: str) -> None:
        """Stop to measure a node; its overload so far still counts."""
        del self._nodes[name]

    def overloaded_seconds(self, end: float) -> float:
        """Return the sum of overloaded seconds of all nodes until *end*, including nodes that left."""
        return math.fsum(meter.overloaded_seconds(end) for meter in self._meters.values())

    def _on_change(self, now: float) -> None:
        self._changed = now
        if self._timer is None:
            self._plan()

    def _plan(self) -> None:
        every = self._spec.every
        turn = int(self._environment.now / every) + 1
        # The division is rounded, and the next report must be after now.
        while turn * every <= self._environment.now:
            turn += 1
        self._timer = self._environment.at(turn * every, self._report, turn, priority=LAST)
        self._environment.ignore_when_idle(self._timer)

    def _report(self, turn: int) -> None:
        environment, spec = self._environment, self._spec
        now = environment.now
        self._timer = None
        # Evaluated before this report is scheduled, which would count as pending work.
        over = environment.idle and now - self._changed >= spec.window
        usages = tuple(
            self._meters[name].measure(now - spec.window, now, self._promise)
            for name, node in self._nodes.items()
            if not node.failed and self._meters[name].joined < now
        )
        if usages:
            lag = self._draw(self._delays.report, "usage", str(turn))
            environment.ignore_when_idle(environment.after(lag, self._send, usages))
        if not over:
            self._plan()

    def _send(self, usages: tuple[NodeUsage, ...]) -> None:
        """Send the usage of the nodes that have not left meanwhile."""
        still = tuple(usage for usage in usages if usage.node in self._nodes)
        if still:
            self._publish(UsageReported(still))
