"""kube-scheduler and Lamina on the same nodes from 80 % to 95 % fill: how often they choose what only one can have."""

from typing import Any

from testbed import Testbed
from tests.integration.scheduler.contest import contested

NAME = "two-schedulers"
SUMMARY = "kube-scheduler and Lamina fill the same 200 nodes from 80 to 95 %: share of placements that do not fit"


def main() -> dict[str, Any]:
    """Run the story at an ordinary pace and with everything at once."""
    with Testbed.start(parts=("etcd", "kube-apiserver")) as bed:
        steady = contested(bed, nodes=200, seed=11, over=30.0)
    with Testbed.start(parts=("etcd", "kube-apiserver")) as bed:
        burst = contested(bed, nodes=200, seed=12, over=0.0)
    for pace, found in (("steady", steady), ("all at once", burst)):
        share = 100 * found["rejected_share"]
        print(f"{pace}: {found['rejected']} of {found['placements']} placements did not fit ({share:.2f} %)")
    assert steady["rejected_share"] <= 0.01
    return {"steady": steady, "burst": burst}
