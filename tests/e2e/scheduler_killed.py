"""The scheduler is killed fifty times while five hundred pods arrive: each is bound once, and no node gets too many."""

from typing import Any

from testbed import Testbed
from tests.integration.scheduler.killing import killed

NAME = "scheduler-killed"
SUMMARY = "kill -9 at 50 moments while 500 pods arrive in a tight cluster: bound once each, nothing overcommitted"


def main() -> dict[str, Any]:
    """Run the story."""
    with Testbed.start() as bed:
        figures = killed(bed, pods=500, kills=50, over=100.0, seed=22)
    print(f"{figures['bound']} pods bound after {figures['kills']} kills, the last {figures['settled_s']} s before")
    return figures
