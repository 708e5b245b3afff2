"""Tokens are replaced and revoked, a plugin fails, the server's authority changes: pods go on being bound."""

from typing import Any

from testbed import Testbed
from tests.integration.scheduler import rotation

NAME = "scheduler-credentials"
SUMMARY = "tokens replaced every 10 s, an exec plugin that fails, a new certificate authority, while pods arrive"


def main() -> dict[str, Any]:
    """Run the stories, each in a cluster of its own."""
    figures: dict[str, Any] = {}
    with Testbed.start() as bed:
        figures["tokens"] = rotation.tokens_rotated(bed, rotations=6, every=10.0, per_second=5.0)
        print(f"{figures['tokens']['refusals']} refusals in {figures['tokens']['rotations']} rotations")
    with Testbed.start() as bed:
        figures["plugin"] = rotation.plugin_failing(bed, good_for=5.0, broken_for=12.0, per_second=5.0)
        print(f"caught up {figures['plugin']['caught_up_s']} s after the plugin was mended")
    with Testbed.start() as bed:
        figures["authority"] = rotation.authority_changed(bed, pods=30)
        print(f"new authority picked up after {figures['authority']['picked_up_s']} s")
    return figures
