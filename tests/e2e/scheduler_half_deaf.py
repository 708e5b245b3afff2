"""Bindings are done and nobody hears of them, for seconds and for longer than they are tried: room is not given twice."""

from typing import Any

from testbed import Testbed
from tests.integration.scheduler.faults import half_deaf

NAME = "scheduler-half-deaf"
SUMMARY = "watches hang and answers get lost in a full cluster: room that may have been taken is not given away again"


def main() -> dict[str, Any]:
    """Run the story with half of the answers lost, and with all of them."""
    figures: dict[str, Any] = {}
    for name, deaf_for, share in (("half_of_the_answers", 10.0, 0.5), ("all_answers", 40.0, 1.0)):
        with Testbed.start() as bed:
            figures[name] = half_deaf(bed, room=120, pods=240, deaf_for=deaf_for, share=share)
        print(f"{name}: {figures[name]['bound']} pods bound where there was room for {figures[name]['room']}")
    return figures
