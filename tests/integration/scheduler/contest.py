"""
kube-scheduler and Lamina place pods on the same nodes at the same time, and neither knows what the other is about to do.

The API server refuses none of it: whether a pod fits is the kubelet's last word. There is none here, so an admission of
our own takes pods in the order of their bindings and fails whoever does not fit, as a kubelet does (OutOfcpu). Whoever
was failed is made anew under another name, as a ReplicaSet would.
"""

import contextlib
import random
import time
from collections import Counter
from typing import Any, Final

from testbed import Testbed
from tests.integration.scheduler.live import Lamina, install, until
from tests.integration.scheduler.truth import Arrivals, Witness, asked, create, overcommitted, pod, waiting

THEIRS: Final = "default-scheduler"
OURS: Final = "lamina"
CPU: Final = 4000
"""Thousandths of a processor a node has."""
SIZES: Final = (100, 200, 300)
FILL: Final = 0.80
UP_TO: Final = 0.95


class Admission:
    """The kubelets of all nodes."""

    def __init__(self, bed: Testbed) -> None:
        self._bed = bed
        self._requests = bed.site.requests()
        self._used: Counter[str] = Counter()
        self.total = 0
        self.admitted: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.by_fill: dict[str, Counter[str]] = {
            "below 85 %": Counter(),
            "85 to 90 %": Counter(),
            "above 90 %": Counter(),
        }
        self.counting = False

    def bound(self, item: dict[str, Any]) -> None:
        """Take a pod in or fail it; called in the order of bindings."""
        node, wants, who = item["spec"]["nodeName"], asked(item)["cpu"], item["spec"]["schedulerName"]
        if not self.counting:
            self._used[node] += wants
            return
        fits = self._used[node] + wants <= CPU
        level = self._used.total() / self.total
        bucket = "below 85 %" if level < 0.85 else "85 to 90 %" if level < 0.90 else "above 90 %"
        self.by_fill[bucket]["admitted" if fits else "rejected"] += 1
        if fits:
            self._used[node] += wants
            self.admitted[who] += 1
            return
        self.rejected[who] += 1
        self._fail(item)

    def _fail(self, item: dict[str, Any]) -> None:
        name = item["metadata"]["name"]
        words = "Node didn't have enough resource: cpu"
        status = {"phase": "Failed", "reason": "OutOfcpu", "message": f"Pod was rejected: {words}"}
        self._requests.send("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", {"status": status})
        again = pod(f"{name}r", cpu=f"{asked(item)['cpu']}m", scheduler=item["spec"]["schedulerName"])
        create(self._requests, again)


def contested(bed: Testbed, *, nodes: int, seed: int, over: float) -> dict[str, Any]:
    """Fill the nodes to 80 %, then let both go on to 95 %; *over* so many seconds, or 0 for all at once."""
    dice = random.Random(seed)
    install(bed)
    bed.add_nodes([{"name": f"n{number:03}", "cpu": f"{CPU}m"} for number in range(nodes)])
    admission = Admission(bed)
    admission.total = nodes * CPU
    filling = [
        pod(f"fill-{number:03}", cpu=f"{dice.randrange(3000, 3401, 100)}m", nodeName=f"n{number:03}")
        for number in range(nodes)
    ]
    wanted: list[dict[str, Any]] = []
    level = sum(asked(one)["cpu"] for one in filling)
    while level < UP_TO * admission.total:
        size, who = dice.choice(SIZES), (OURS, THEIRS)[len(wanted) % 2]
        wanted.append(pod(f"p{len(wanted):04}", cpu=f"{size}m", scheduler=who))
        level += size
    with Witness(bed, admission.bound) as witness, Lamina(bed) as scheduler:
        bed.start_part("kube-scheduler")
        Arrivals(bed, filling, over=0.0).wait()
        until(lambda: witness.bound() == nodes, 30.0, "nodes are filled")
        admission.counting = True
        arrivals = Arrivals(bed, wanted, over=over)
        arrivals.wait(over + 120.0)
        took = until(lambda: admission.admitted.total() >= len(wanted), 120.0, "every pod is placed or placed anew")
        time.sleep(2.0)
        differences, complaints = scheduler.differences(), scheduler.complaints()
        attempts = scheduler.metric('scheduler_schedule_attempts_total{profile="lamina",result="unschedulable"}')
        failed = scheduler.metric("lamina_bindings_failed_total")
        bed.parts["kube-scheduler"].kill()
    placed = admission.admitted.total() + admission.rejected.total()
    share = admission.rejected.total() / placed
    figures = {
        "nodes": nodes,
        "seed": seed,
        "over_s": over,
        "placements": placed,
        "rejected": admission.rejected.total(),
        "rejected_ours": admission.rejected[OURS],
        "rejected_theirs": admission.rejected[THEIRS],
        "rejected_share": round(share, 4),
        "by_fill": {name: dict(counts) for name, counts in admission.by_fill.items()},
        "lamina_unschedulable_attempts": int(attempts),
        "lamina_failed_bindings": int(failed),
        "settled_s": round(took, 1),
        "moved": len(witness.moved()),
        "overcommitted_after_admission": overcommitted(bed),
        "waiting": len(waiting(bed)),
        "differences": len(differences),
    }
    assert [] == complaints
    assert [] == differences, differences[:5]
    assert [] == witness.moved()
    assert [] == figures["overcommitted_after_admission"], figures
    assert 0 == figures["waiting"]
    with contextlib.suppress(OSError):
        admission._requests.close()
    return figures
