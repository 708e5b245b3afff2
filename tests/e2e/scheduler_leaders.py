"""Two schedulers, one lease: the leader is stopped for 20 seconds and goes on, then its successor is asked to end."""

from typing import Any

from testbed import Testbed
from tests.integration.scheduler.leading import Terms, led

NAME = "scheduler-leaders"
SUMMARY = (
    "the leader is paused for 20 s while pods arrive, and later asked to stop: who binds, and how long nobody does"
)


def main() -> dict[str, Any]:
    """Run the story."""
    with Testbed.start() as bed:
        figures = led(bed, Terms(), paused_for=20.0, per_second=5.0)
    paused, clean = figures["handover_after_pause_s"], figures["handover_clean_s"]
    print(f"nobody bound for {paused} s after the pause began, for {clean} s after a stop")
    return figures
