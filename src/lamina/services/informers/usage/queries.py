"""
The questions that Prometheus is asked, as PromQL.

An *expression* gives what is used of a resource right now: one number for each series, in cores or bytes. It is asked for
at every step of the window, and mean and deviation are taken of those numbers, so that the deviation is that of the use
itself and not of a counter that grows.

    cpu       cores that are not idle. A processor that waits for a disk (iowait) is free for others; time a hypervisor
              takes (steal) is used, because nobody here can have it. Two scrape jobs that see one node count once. How
              fast idle seconds grow is the slope of a line through them (deriv): rate() makes up what it does not see at
              the edges, and a node whose counters have just begun would look busy. Where a counter goes back or leaps,
              because the machine was started anew or another one has its address, nothing is known of the whole node: a
              processor that is left out would count as idle.
    memory    what is not available to new programs without swapping

Either can be replaced by a recording rule. What is left of the labels is what tells nodes apart (`matching`).
"""

import re
from typing import Final, Literal

import msgspec

LABELS: Final = ("node", "nodename", "kubernetes_node", "instance")
"""Labels by which a series may say whose it is, the most trustworthy first."""
BY: Final = ", ".join(LABELS)
WINDOW: Final = 900.0
STEP: Final = 30.0
RATE: Final = 120.0
HORIZON: Final = 600.0
SEASON: Final = 86_400.0

IDLE: Final = 'mode=~"idle|iowait"'
ALL_IDLE: Final = 'mode="idle"'
"""The counter that only a restart sets back; iowait goes back a little by itself, by the kernel's own account."""
SLIP: Final = 0.1
"""How far from 0 and 1 the slope of idle seconds may be: scrapes are not quite on time."""
APART: Final = 1000
"""More than a processor can be busy, so that one that is missing shows."""

_MATCHER: Final = re.compile(r'\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*', re.ASCII)


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """How to guess what will be used in the near future."""

    method: Literal["linear", "seasonal"] = "seasonal"
    """A straight line through the window, or what was used at the same time a season ago."""
    horizon: float = HORIZON
    """Seconds to look ahead."""
    season: float = SEASON


class Queries(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and over which time."""

    window: float = WINDOW
    """Seconds that mean and deviation are taken over."""
    step: float = STEP
    """Seconds between two of the numbers they are taken of."""
    rate: float = RATE
    """Seconds over which the growth of a counter counts as its speed; two scrapes at least have to lie within."""
    matchers: str = ""
    """Which series, where one server has those of several clusters: ``cluster="a",job="node"``."""
    cpu: str = ""
    """Cores in use, if not by node-exporter's own metrics."""
    memory: str = ""
    """Bytes in use, likewise."""
    forecast: Forecast | None = None

    @property
    def cpu_used(self) -> str:
        """The expression for cores in use."""
        if self.cpu:
            return f"max by ({BY}) ({self.cpu})"
        span = f"[{promql(self.rate)}]"
        idle = f"sum without (mode) (deriv(node_cpu_seconds_total{self.among(IDLE)}{span}))"
        # Every processor whose slope is possible counts a thousand and what it is busy. For every one there is, and for
        # every reset, a thousand is taken off: where one is missing, less than nothing is left. That is one more pass over
        # the idle counters; to compare how many slopes there are with how many are possible would be two more over all.
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
        """The expression for what machines call themselves, for series that have nothing but an address."""
        return f"max by ({BY}) (node_uname_info{self.among()})"

    def among(self, *own: str) -> str:
        """Write which series of a metric are meant."""
        matchers = ",".join(one for one in (*own, self.matchers) if one)
        return f"{{{matchers}}}" if matchers else ""

    def a_season_ago(self, expression: str) -> str:
        """Ask what was used as far ahead as the forecast goes, a season ago; empty when nobody wants to know."""
        wanted = self.forecast
        if wanted is None or wanted.method != "seasonal":
            return ""
        span = f"[{promql(wanted.horizon)}:{promql(self.step)}] offset {promql(wanted.season - wanted.horizon)}"
        return f"avg_over_time(({expression}){span})"


def promql(seconds: float) -> str:
    """Write a duration: whole seconds, or else milliseconds."""
    return f"{seconds:.0f}s" if seconds == round(seconds) else f"{round(seconds * 1000)}ms"


def checked_matchers(text: str) -> str:
    """Take label matchers. Raises ValueError in words for whoever wrote them."""
    position = 0
    while True:
        found = _MATCHER.match(text, position)
        if found is None:
            raise ValueError('are no label matchers; write for example cluster="a",job=~"node.*"')
        position = found.end()
        if position == len(text):
            return text
        if text[position] != ",":
            raise ValueError('are no label matchers; put a comma between two, as in cluster="a",job="node"')
        position += 1
