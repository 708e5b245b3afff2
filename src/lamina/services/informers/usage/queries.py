"""
PromQL queries for the usage of nodes.

An *expression* returns the current use of a resource: one number for each series, in cores or bytes. It is evaluated at
every step of the window. Mean and deviation are computed from these numbers, so the deviation is that of the use and
not of a growing counter.

    cpu       cores that are not idle. A processor that waits for a disk (iowait) is free for others; time that a
              hypervisor takes (steal) is in use. Two scrape jobs of one node count once. deriv() gives the rate of idle
              seconds: rate() extrapolates at the edges, so a node with new counters would look busy. If a counter goes
              back or jumps (a reboot, or an address reused by another machine), the whole node has no value: leaving
              out one processor would make it look idle.
    memory    bytes that are not available to new programs without swapping

Either can be replaced by a recording rule. The labels that remain identify the node (`series_match`).
"""

import re
from typing import Final, Literal

import msgspec

LABELS: Final = ("node", "nodename", "kubernetes_node", "instance")
"""Labels that may name a series' node, most trustworthy first."""
BY: Final = ", ".join(LABELS)
WINDOW: Final = 900.0
STEP: Final = 30.0
RATE: Final = 120.0
HORIZON: Final = 600.0
SEASON: Final = 86_400.0

IDLE: Final = 'mode=~"idle|iowait"'
ALL_IDLE: Final = 'mode="idle"'
"""
The counter that only a restart resets; iowait can also decrease a little by itself (see the kernel's documentation).
"""
SLIP: Final = 0.1
"""How far the slope of idle seconds may be outside 0 to 1: scrapes are not exactly on time."""
APART: Final = 1000
"""More than the cores a node can have in use, so that one missing processor makes the sum negative."""

_MATCHER: Final = re.compile(r'\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*', re.ASCII)


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """How to predict usage in the near future."""

    method: Literal["linear", "seasonal"] = "seasonal"
    """A straight line through the window, or the usage at the same time one season ago."""
    horizon: float = HORIZON
    """Seconds to look ahead."""
    season: float = SEASON


class Queries(msgspec.Struct, frozen=True, kw_only=True):
    """The queries of one measurement, and their time range."""

    window: float = WINDOW
    """Seconds over which mean and deviation are computed."""
    step: float = STEP
    """Seconds between two values in the window."""
    rate: float = RATE
    """Seconds over which the rate of a counter is computed; at least two scrapes must lie within."""
    matchers: str = ""
    """Label matchers that select series, if one server has several clusters: ``cluster="a",job="node"``."""
    cpu: str = ""
    """Expression for cores in use; empty: computed from node-exporter's metrics."""
    memory: str = ""
    """Expression for bytes in use; empty: computed from node-exporter's metrics."""
    forecast: Forecast | None = None

    @property
    def cpu_used(self) -> str:
        """The expression for cores in use."""
        if self.cpu:
            return f"max by ({BY}) ({self.cpu})"
        span = f"[{promql(self.rate)}]"
        idle = f"sum without (mode) (deriv(node_cpu_seconds_total{self.among(IDLE)}{span}))"
        # Every processor with a possible slope adds APART plus its busy share. Every existing processor and every reset
        # subtracts APART, so the sum is negative if a slope is missing. This is one more pass over the idle counters;
        # comparing counts would be two more passes over all counters.
        busy = f"clamp({APART + 1} - ({idle} >= -{SLIP} <= {1 + SLIP}), {APART}, {APART + 1})"
        there = f"1 + resets(node_cpu_seconds_total{self.among(ALL_IDLE)}{span})"
        summed = (f"sum by ({BY}) (max by ({BY}, cpu) ({one}))" for one in (busy, there))
        return f"({f' - {APART} * '.join(summed)}) >= 0"

    @property
    def memory_used(self) -> str:
        """The expression for bytes in use."""
        total, available = (f"node_memory_{name}_bytes{self.among()}" for name in ("MemTotal", "MemAvailable"))
        return f"max by ({BY}) ({self.memory or f'{total} - {available}'})"

    @property
    def own_names(self) -> str:
        """The expression for the machines' own names, for series that have only an address."""
        return f"max by ({BY}) (node_uname_info{self.among()})"

    def among(self, *own: str) -> str:
        """Return the label matchers of a metric in braces."""
        matchers = ",".join(one for one in (*own, self.matchers) if one)
        return f"{{{matchers}}}" if matchers else ""

    def a_season_ago(self, expression: str) -> str:
        """Return the query for usage one season before the forecast's target time; empty if not seasonal."""
        wanted = self.forecast
        if wanted is None or wanted.method != "seasonal":
            return ""
        span = f"[{promql(wanted.horizon)}:{promql(self.step)}] offset {promql(wanted.season - wanted.horizon)}"
        return f"avg_over_time(({expression}){span})"


def promql(seconds: float) -> str:
    """Format a duration in whole seconds, or else in milliseconds."""
    return f"{seconds:.0f}s" if seconds == round(seconds) else f"{round(seconds * 1000)}ms"


def checked_matchers(text: str) -> str:
    """Return *text* if it is a valid list of label matchers. Raises ValueError with a message for the operator."""
    position = 0
    while True:
        found = _MATCHER.match(text, position)
        if found is None:
            raise ValueError('not valid label matchers; write for example cluster="a",job=~"node.*"')
        position = found.end()
        if position == len(text):
            return text
        if text[position] != ",":
            raise ValueError('not valid label matchers; put a comma between two, as in cluster="a",job="node"')
        position += 1
