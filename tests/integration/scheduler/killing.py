"""
A scheduler that is killed again and again while pods arrive, and started again at once.

Half of the kills come at any time, so also while it starts; the others right after it has bound something, when more
bindings are on their way. The cluster has hardly more room than the pods need, so that room counted twice, or not at
all, shows as a node with too many pods or as a pod that waits.
"""

import random
import time
from typing import Any, Final

from testbed import Testbed
from tests.integration.scheduler.live import Lamina, install, until
from tests.integration.scheduler.truth import Arrivals, Witness, overcommitted, pod

EACH: Final = 8
"""Pods a node has room for."""
SPARE: Final = 20
"""Pods for which there is room beyond those that come."""
SETTLED_WITHIN: Final = 30.0
"""Seconds from the last kill until every pod has a node."""
FIRST_BINDING_WITHIN: Final = 8.0


def killed(bed: Testbed, *, pods: int, kills: int, over: float, seed: int) -> dict[str, Any]:
    """Tell the story; return its figures."""
    dice = random.Random(seed)
    nodes = -(-(pods + SPARE) // EACH)
    install(bed)
    bed.add_nodes([{"name": f"n{number:03}", "cpu": f"{EACH * 100}m"} for number in range(nodes)])
    with Witness(bed) as witness, Lamina(bed) as scheduler:
        arrivals = Arrivals(bed, [pod(f"p{number:04}") for number in range(pods)], over=over)
        starting = at_work = 0
        for number in range(kills):
            before = witness.bound()
            if number % 2:
                wait_for_binding(witness, before)
                time.sleep(dice.uniform(0.0, 0.06))
            else:
                time.sleep(dice.choice((dice.uniform(0.05, 1.0), dice.uniform(0.3, 3.0))))
            starting += not scheduler.is_ready()
            at_work += witness.bound() > before
            scheduler.kill()
            scheduler.start(wait=False)
        arrivals.wait()
        took = until(lambda: witness.bound() == pods, SETTLED_WITHIN, f"{pods} pods bound after the last kill")
        differences = scheduler.differences()
        complaints = scheduler.complaints()
        rss = scheduler.rss()
        code, stopped = scheduler.end(15.0)
    figures = {
        "pods": pods,
        "nodes": nodes,
        "kills": kills,
        "seed": seed,
        "killed_before_ready": starting,
        "killed_after_binding": at_work,
        "bound": witness.bound(),
        "moved": len(witness.moved()),
        "overcommitted": overcommitted(bed),
        "differences": len(differences),
        "settled_s": round(took, 1),
        "complaints": len(complaints),
        "rss_mib": rss >> 20,
        "exit_code": code,
        "stopped_s": round(stopped, 2),
    }
    assert [] == complaints
    assert [] == differences, differences[:5]
    assert [] == figures["overcommitted"], figures
    assert [] == witness.moved()
    assert (pods, 0) == (witness.bound(), code)
    return figures


def wait_for_binding(witness: Witness, before: int) -> None:
    """Wait until the scheduler has bound something, if there is something to bind."""
    patience = time.monotonic() + FIRST_BINDING_WITHIN
    while witness.bound() == before and time.monotonic() < patience:
        time.sleep(0.005)
