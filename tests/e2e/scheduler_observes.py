"""Beside kube-scheduler, Lamina binds nothing and says what it would have saved."""

from typing import Any

from testbed import Testbed
from tests.integration.scheduler.shadow import observed

NAME = "scheduler-observes"
SUMMARY = (
    "lamina scheduler --observe beside kube-scheduler, with a viewer's rights: binds nothing, tells what it would save"
)


def main() -> dict[str, Any]:
    """Run the story."""
    with Testbed.start() as bed:
        figures = observed(bed, nodes=20, images=10, pods=60, seed=8)
    print(figures["summary"])
    return figures
