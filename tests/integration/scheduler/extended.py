"""
What a scheduler with extenders in Go does with the same pods in the same cluster, told in a form that can be compared.

    n0  refused             n2  preferred most      n4  preferred least
    n1  refused for good    n3  preferred           n5  neither

Each node has room for two pods. Everything goes through the API: Lamina and kube-scheduler get the same configuration,
the same pods in the same order, and nothing else.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from testbed import Testbed
from tests.integration.scheduler.go_extender import GoExtender
from tests.integration.scheduler.live import Lamina, until
from tests.integration.scheduler.truth import pod

LAMINA: Final = "lamina"
STOCK: Final = "kube-scheduler"
NAME: Final = "extended"
"""The schedulerName of the pods."""
SCORES: Final = {"n2": 9, "n3": 6, "n4": 3}
FREE: Final = ("n2", "n3", "n4", "n5")
"""The nodes that are not refused, in the order of preference."""
NODES: Final = ("n0", "n1", *FREE)
PER_NODE: Final = 2
SLOTS: Final = "example.com/slots"
"""A resource that no node has, and only an extender knows."""
SLOTS_PREFIX: Final = "slots.example"
PODS: Final = "/api/v1/namespaces/default/pods"
WITHIN: Final = 60.0
QUIET: Final = 2.0
"""Seconds in which a pod that must wait stays where it is."""

Found = dict[str, str]
"""By pod: its node, or what its condition says."""


def prepare(bed: Testbed, power: GoExtender, slots: GoExtender) -> None:
    """Add the nodes with the labels that the extenders read."""
    labels: dict[str, dict[str, str]] = {name: {} for name in NODES}
    labels["n0"] |= power.label("refuse", "now")
    labels["n1"] |= power.label("refuse", "for-good")
    for name, score in SCORES.items():
        labels[name] |= power.label("score", str(score))
    for name in NODES:
        labels[name] |= slots.label("score", "10") if name == "n4" else {}
        labels[name] |= {} if name in ("n3", "n4") else slots.label("refuse", "now")
    bed.add_nodes({"name": name, "cpu": str(PER_NODE), "labels": labels[name]} for name in NODES)


def configured(extenders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a configuration for either scheduler."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 5000, "burst": 5000},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
        "profiles": [{"schedulerName": NAME}],
        "extenders": [dict(one) for one in extenders],
    }


@contextlib.contextmanager
def scheduling(bed: Testbed, which: str, name: str, *extenders: Mapping[str, Any]) -> Iterator[None]:
    """Run LAMINA or STOCK with the extenders, and delete all pods at the end."""
    config = configured(extenders)
    try:
        if which == LAMINA:
            with Lamina(bed, f"{which}-{name}", config=config) as lamina:
                yield
                assert [] == lamina.complaints()
        else:
            bed.start_part(STOCK, name=f"{which}-{name}", config=config)
            try:
                yield
            finally:
                bed.parts.pop(f"{which}-{name}").kill()
    finally:
        clear(bed)


def clear(bed: Testbed) -> None:
    """Delete all pods."""
    bed.api("DELETE", f"{PODS}?gracePeriodSeconds=0")
    until(lambda: not bed.api("GET", PODS)["items"], WITHIN, "all pods are gone")


# -- pods --------------------------------------------------------------------------------------------------------------


def create(bed: Testbed, name: str, *, resources: Mapping[str, str] | None = None, **spec: Any) -> None:
    """Create a pod of one core."""
    wanted = pod(name, cpu="1", scheduler=NAME, **spec)
    for amounts in ("requests", "limits"):
        wanted["spec"]["containers"][0]["resources"].setdefault(amounts, {}).update(resources or {})
    bed.api("POST", PODS, wanted)


def condition(bed: Testbed, name: str) -> dict[str, str]:
    """Return the PodScheduled condition of a pod; empty while there is none."""
    conditions = bed.api("GET", f"{PODS}/{name}")["status"].get("conditions", ())
    return next((one for one in conditions if one["type"] == "PodScheduled"), {})


def node_of(bed: Testbed, name: str) -> str:
    """Return the node of a pod; empty while it waits."""
    return str(bed.api("GET", f"{PODS}/{name}")["spec"].get("nodeName", ""))


def bound(bed: Testbed, name: str) -> str:
    """Wait until a pod is bound; return its node."""
    until(lambda: bool(node_of(bed, name)), WITHIN, f"{name} is bound")
    return node_of(bed, name)


def refused(bed: Testbed, name: str) -> str:
    """Wait until a pod is told that it fits nowhere; return the message."""
    until(lambda: condition(bed, name).get("reason") == "Unschedulable", WITHIN, f"{name} is told why it waits")
    time.sleep(QUIET)
    assert "" == node_of(bed, name), f"{name} fits nowhere"
    return condition(bed, name)["message"]


# -- rounds ------------------------------------------------------------------------------------------------------------


def filled(bed: Testbed, power: GoExtender) -> Found:
    """Let pods come one after the other until only refused nodes have room; then let one of these be free."""
    found: Found = {}
    for number in range(len(FREE) * PER_NODE):
        create(bed, f"fill-{number}")
        found[f"fill-{number}"] = bound(bed, f"fill-{number}")
    create(bed, "late")
    found["late, refused"] = refused(bed, "late")
    label(bed, "n0", power.label("refuse", "no"))
    found["late, free"] = bound(bed, "late")
    label(bed, "n0", power.label("refuse", "now"))
    return found


def managed(bed: Testbed, slots: GoExtender) -> Found:
    """Let pods come with a resource that only an extender knows, and that the extender binds."""
    found: Found = {}
    for number in range(PER_NODE + 1):
        name = f"slot-{number}"
        create(bed, name, resources={SLOTS: "1"})
        node = bound(bed, name)
        annotations = bed.api("GET", f"{PODS}/{name}")["metadata"].get("annotations", {})
        found[name] = f"{node}, by the extender" if f"{slots.prefix}/bound" in annotations else node
    create(bed, "plain")
    found["plain"] = bound(bed, "plain")
    assert [] == slots.calls(pod="plain")
    return found


def down(bed: Testbed, power: GoExtender) -> Found:
    """Stop an extender that is not ignorable, and start it again."""
    power.kill()
    create(bed, "patient")
    until(lambda: bool(condition(bed, "patient")), WITHIN, "the pod's condition mentions the error")
    time.sleep(QUIET)
    found = {"patient, down": condition(bed, "patient")["reason"] + node_of(bed, "patient")}
    power.start()
    return found | {"patient, up": bound(bed, "patient")}


def ignored(bed: Testbed, power: GoExtender) -> Found:
    """Let pods ask for a refused node: with the extender, which is ignorable, and without it."""
    place = {"nodeSelector": {"kubernetes.io/hostname": "n0"}}
    create(bed, "rejected", **place)
    found = {"rejected, up": refused(bed, "rejected")}
    power.kill()
    create(bed, "second", **place)
    found["second, down"] = bound(bed, "second")
    # The binding is the change after which the first pod is tried again.
    found["rejected, down"] = bound(bed, "rejected")
    power.start()
    return found


def over_tls(bed: Testbed) -> Found:
    """Let a pod come."""
    create(bed, "secure")
    return {"secure": bound(bed, "secure")}


def preferred(found: Found) -> float:
    """Return the share of pods on the node that the extender preferred among those with room."""
    placed = [found[f"fill-{number}"] for number in range(len(FREE) * PER_NODE)]
    wanted = [name for name in FREE for _ in range(PER_NODE)]
    return sum(one == other for one, other in zip(placed, wanted, strict=True)) / len(wanted)


def label(bed: Testbed, node: str, labels: Mapping[str, str]) -> None:
    """Change labels of a node."""
    bed.api("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": dict(labels)}})
