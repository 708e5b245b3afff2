"""Arguments of Backfill."""

from typing import Annotated, Final, Literal

import msgspec

from lamina.scheduling.contract.plugin_registry import PluginArgs

NAME: Final = "Backfill"
DEPTH: Final = 100
MOST_DEPTH: Final = 10_000

JobOrder = Literal["queue", "shortestFirst", "smallestFirst", "largestFirst"]
"""
Order in which jobs behind the reserved one are tried.

    queue            as they wait
    shortestFirst    by walltime
    smallestFirst    by number of pods, then by walltime
    largestFirst     the same, the most pods first
"""


class BackfillArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of Backfill."""

    reservations: Literal["first", "all"] = "first"
    """EASY gives a reservation to the first job that waits for room; conservative backfill to all of them."""
    depth: Annotated[int, msgspec.Meta(ge=0, le=MOST_DEPTH)] = DEPTH
    """
    How many jobs a decision looks at. EASY: behind the first one; 0 is first come, first served.

    Conservative: how many jobs have a reservation. Those behind them do not start.
    """
    order: JobOrder = "queue"

    def __post_init__(self) -> None:
        """Reject a conservative schedule without jobs."""
        if self.reservations == "all" and self.depth == 0:
            raise ValueError("reservations: all needs a depth of 1 or more; write reservations: first for depth 0")
