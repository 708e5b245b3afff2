"""
Known differences between Lamina and kube-scheduler 1.36.3: which cases may differ, in which plugin, and why.

docs/parity.md lists the same differences. `make parity` counts them by reason; any other difference fails the tests.
"""

from typing import Final

from tests.parity.case_files import ParityCase

POD_LEVEL: Final = "kube-scheduler's NodeResourcesFit scores a pod without its pod-level requests"


def known_difference(case: ParityCase, plugin: str) -> str:
    """Return why the scores of *plugin* may differ in this case; empty if they must be equal."""
    spec = case.pod["spec"]
    if plugin == "NodeResourcesFit":
        return POD_LEVEL if spec.get("resources", {}).get("requests") else ""
    return ""
