"""
What a scheduler gets to know of the use of nodes, and when.

    every so often --> each node that answers is measured over the window before --Delays.report--> one event for all

The times are multiples of the interval, whatever happens, as those of a monitoring system are. A node that has failed does
not answer; one that joined within the window is measured from then on.

Reports must not keep a run going in which nothing else is left to happen. They end when the whole window lies behind the
last change, so that another would say the same, and go on when there is a change again.
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
"""Priority among what is due at one instant: after the scheduler, too, so that what it has just heard is not to come."""


class UsageSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How the use of nodes is measured."""

    every: float = 60.0
    """Seconds between two reports."""
    window: float = 900.0
    """Seconds that are looked back on each time; 15 minutes is what Trimaran takes first."""


class NodeUsageSampler:
    """Measures all nodes of one cluster."""

    def __init__(
        self,
        environment: Environment,
        spec: UsageSpec,
        delays: Delays,
        tell: Callable[[Event], None],
        draw: DrawLag,
    ) -> None:
        """Tell *tell*, as often as *spec* says."""
        self._environment = environment
        self._spec = spec
        self._delays = delays
        self._tell = tell
        self._draw = draw
        self._nodes: dict[str, VirtualNode] = {}
        self._meters: dict[str, NodeLoadMeter] = {}
        self._timer: Timer | None = None
        self._changed = environment.now
        slowest = delays.report if isinstance(delays.report, float | int) else max(delays.report)
        self._promise = spec.every + slowest

    def join(self, node: VirtualNode) -> None:
        """Measure a node from now on."""
        now = self._environment.now
        node.meter = self._meters[node.name] = NodeLoadMeter(node.name, node.allocatable, now, node.usage, self._stir)
        self._nodes[node.name] = node
        self._stir(now)

    def leave(self, name: str) -> None:
        """Measure a node no more; what was too much counts all the same."""
        del self._nodes[name]

    def crowded_seconds(self, end: float) -> float:
        """Add up for how long nodes were overloaded, until the *end* of the run, those that left included."""
        return math.fsum(meter.crowded_seconds(end) for meter in self._meters.values())

    def _stir(self, now: float) -> None:
        self._changed = now
        if self._timer is None:
            self._plan()

    def _plan(self) -> None:
        every = self._spec.every
        turn = int(self._environment.now / every) + 1
        # Both sides of the division are rounded, and the clock must not stand still.
        while turn * every <= self._environment.now:
            turn += 1
        self._timer = self._environment.at(turn * every, self._report, turn, priority=LAST)
        self._environment.excuse(self._timer)

    def _report(self, turn: int) -> None:
        environment, spec = self._environment, self._spec
        now = environment.now
        self._timer = None
        # Asked first, because sending this report is something that happens.
        over = environment.idle and now - self._changed >= spec.window
        usages = tuple(
            self._meters[name].measure(now - spec.window, now, self._promise)
            for name, node in self._nodes.items()
            if not node.failed and self._meters[name].joined < now
        )
        if usages:
            lag = self._draw(self._delays.report, "usage", str(turn))
            environment.excuse(environment.after(lag, self._send, usages))
        if not over:
            self._plan()

    def _send(self, usages: tuple[NodeUsage, ...]) -> None:
        """Tell of the nodes that are still there."""
        still = tuple(usage for usage in usages if usage.node in self._nodes)
        if still:
            self._tell(UsageReported(still))
