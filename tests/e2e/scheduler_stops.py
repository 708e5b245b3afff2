"""A scheduler is asked to stop in the middle of a burst: it ends what it has begun, and the next one does the rest."""

from typing import Any

from testbed import Testbed
from tests.integration.scheduler import stopping

NAME = "scheduler-stops"
SUMMARY = "SIGTERM in the middle of 400 pods, with a dead server, and with too much to send: how it ends, and how soon"


def main() -> dict[str, Any]:
    """Run the stories, each in a cluster of its own."""
    figures: dict[str, Any] = {}
    with Testbed.start() as bed:
        figures["burst"] = stopping.stopped(bed, pods=400, qps=60)
    with Testbed.start() as bed:
        figures["dead_server"] = stopping.stopped_without_a_server(bed, pods=200)
    with Testbed.start() as bed:
        figures["too_much"] = stopping.stopped_with_a_queue(bed)
    for name, found in figures.items():
        print(f"{name}: stopped after {found['stopped_s']} s")
    return figures
