"""
Extenders in Go, with kube-scheduler's own types, under kube-scheduler and under Lamina: the same pods, one after the other.

One extender refuses nodes and prefers others. A second one manages a resource that no node has, and binds its pods. Both
schedulers read the same configuration. Each plays four rounds, every round with its own process:

    strict     refused nodes stay empty, preferred nodes fill up in their order; the second extender binds its pods
    down       the first extender is killed: pods wait, and are placed once it is back
    ignorable  the same, but it may be ignored: a pod that it would refuse is bound
    tls        both sides show a certificate
"""

import json
import time
from collections.abc import Callable
from typing import Any

from testbed import Testbed
from tests.integration.scheduler import extended
from tests.integration.scheduler.extended import LAMINA, STOCK, Found, scheduling
from tests.integration.scheduler.go_extender import GoExtender
from tests.integration.scheduler.live import install
from tests.parity.comparison import NO_CLAIMS

NAME = "foreign-extender"
SUMMARY = "Extenders in Go refuse, prefer and bind, under Lamina as under kube-scheduler; one is killed; once over TLS."
NEEDS = ()


def main() -> dict[str, Any]:
    """Let both schedulers play, and compare."""
    began = time.monotonic()
    with Testbed.start(parts=("etcd", "kube-apiserver")) as bed:
        install(bed)
        with (
            GoExtender(bed) as power,
            GoExtender(bed, "slots", prefix=extended.SLOTS_PREFIX) as slots,
            GoExtender(bed, "power-tls", tls=True) as secured,
        ):
            extended.prepare(bed, power, slots)
            found = {which: played(bed, which, power, slots, secured) for which in (STOCK, LAMINA)}
            over_tls = len(secured.calls("filter"))
    places, calls = {which: one[0] for which, one in found.items()}, {which: one[1] for which, one in found.items()}
    for pod, place in places[STOCK].items():
        same = "same" if places[LAMINA][pod] == place else f"Lamina: {places[LAMINA][pod]}"
        print(f"  {pod:16} {place}  ({same})", flush=True)
    ours = places[LAMINA]
    figures: dict[str, Any] = {
        "pods": len(ours),
        "refused_kept": refused_kept(ours),
        "preferred_share": extended.preferred(ours),
        "bound_by_extender": sum(place.endswith("by the extender") for place in ours.values()),
        "waited_when_down": ours["patient, down"] == "SchedulerError",
        "ignored_when_down": sum(ours[f"{pod}, down"] == "n0" for pod in ("rejected", "second")),
        "filtered_over_tls": over_tls,
        "same_as_kube_scheduler": ours == places[STOCK],
        "same_calls": calls[LAMINA] == calls[STOCK],
        "calls": len(calls[LAMINA]),
    }
    for which in (STOCK, LAMINA):
        other = calls[LAMINA if which == STOCK else STOCK]
        for line in sorted(line for line in calls[which] if line not in other):
            print(f"  only {which}: {line}", flush=True)
    expected = {
        "refused_kept": True,
        "preferred_share": 1.0,
        "bound_by_extender": extended.PER_NODE + 1,
        "waited_when_down": True,
        "ignored_when_down": 2,
        "same_as_kube_scheduler": True,
        "same_calls": True,
    }
    assert expected == {name: figures[name] for name in expected}, figures
    assert over_tls, "calls over TLS"
    return {**figures, "seconds": round(time.monotonic() - began, 1)}


def played(
    bed: Testbed, which: str, power: GoExtender, slots: GoExtender, secured: GoExtender
) -> tuple[Found, set[str]]:
    """Return what one scheduler does with the pods in all rounds, and what it asked about them in the first one."""
    found: Found = {}
    managing = {"managedResources": [{"name": extended.SLOTS, "ignoredByScheduler": True}], "bindVerb": "bind"}
    both = power.entry(), slots.entry(nodeCacheCapable=True, **managing)
    before = len(power.calls()), len(slots.calls())
    with scheduling(bed, which, "strict", *both):
        found |= extended.filled(bed, power)
        extended.clear(bed)
        found |= extended.managed(bed, slots)
        asked = questions(power.calls()[before[0] :]) | questions(slots.calls()[before[1] :])
    rounds: dict[str, tuple[dict[str, Any], Callable[[], Found]]] = {
        "down": (power.entry(), lambda: extended.down(bed, power)),
        "ignorable": (power.entry(ignorable=True), lambda: extended.ignored(bed, power)),
        "tls": (secured.entry(), lambda: extended.over_tls(bed)),
    }
    for name, (entry, play) in rounds.items():
        with scheduling(bed, which, name, entry):
            found |= play()
    print(f"{which}: {len(found)} outcomes", flush=True)
    # The words are DynamicResources', which Lamina does not have.
    return {name: place.replace(NO_CLAIMS, "") for name, place in found.items()}, asked


def questions(calls: list[dict[str, Any]]) -> set[str]:
    """Return the calls in words, without their order, and each once: a pod that waits is asked about again."""
    return {
        json.dumps({**one, "nodes": sorted(one["nodes"] or ()), "passed": sorted(one.get("passed", ()))})
        for one in calls
    }


def refused_kept(found: Found) -> bool:
    """Return whether the pods were kept off the nodes that are refused, and told why."""
    reasons = "1 node(s) were refused by power.example, 1 node(s) were refused by power.example for good"
    placed = [place for pod, place in found.items() if pod not in ("late, free", "rejected, down", "second, down")]
    return reasons in found["late, refused"] and not {"n0", "n1"} & {place.partition(",")[0] for place in placed}
