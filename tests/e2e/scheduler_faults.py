"""Everything between scheduler and API server that can be lost is lost: the server itself, requests, answers, watches."""

from typing import Any

from testbed import Testbed
from tests.integration.scheduler import faults

NAME = "scheduler-faults"
SUMMARY = (
    "the API server dies for 10 s, answers to bindings get lost, connections are cut: bound once, nothing overcommitted"
)


def main() -> dict[str, Any]:
    """Run the stories, each in a cluster of its own."""
    figures: dict[str, Any] = {}
    with Testbed.start() as bed:
        figures["outage"] = faults.outage(bed, pods=300, away=10.0)
        print(f"all bound {figures['outage']['settled_s']} s after the server was back")
    for name, request, before in (
        ("binding_answers_lost", "/binding ", False),
        ("bindings_lost", "/binding ", True),
        ("all_answers_lost", " HTTP", False),
    ):
        with Testbed.start() as bed:
            figures[name] = faults.answers_lost(bed, pods=200, share=0.5, request=request, before=before)
            print(f"{name}: {figures[name]['lost']} lost, {figures[name]['bound']} pods bound")
    with Testbed.start() as bed:
        figures["watches_cut"] = faults.cut_again_and_again(bed, pods=1000, every=0.3, during=10.0)
        print(
            f"all bound {figures['watches_cut']['settled_s']} s after the last of {figures['watches_cut']['cuts']} cuts"
        )
    return figures
