"""
The founding scenario with nothing pretended.

A real API server with our roles and policy, three kubelets each with a containerd of its own, a registry behind a slow
road, three agents, and `lamina scheduler`. Pods run; what was downloaded stands in the registry's own log.

    p1 (img1: L1 L2 L3) and p2 (img2: L1 L2 L4) fill a node each; p2 goes, p3 (img1) comes.
    Its image is nowhere that has room; its lower layers are where p2 was.
"""

import time
from typing import Any, Final

from testbed import Testbed
from tests.integration.nodes.lags import Lag
from tests.integration.nodes.real import MB, RealCluster
from tests.integration.scheduler.live import Lamina

NAME = "founding-nodes"
SUMMARY = (
    "The founding scenario on real kubelets, runtimes and a registry, with agents: only missing layers are pulled."
)
NEEDS = ()

NODES: Final = ("n1", "n2", "n3")
# The sizes of examples/founding by the same proportions, a twentieth of them; what is new in the last tag is small.
SIZES: Final = {"L1": 15 * MB, "L2": 10 * MB, "L3": 7 * MB, "L4": 8 * MB, "L5": 2 * MB, "A": 8 * MB, "B": 8 * MB}
SMALL: Final = {"cpu": "100m"}
KNOWN_WITHIN: Final = 20.0
"""Seconds. An agent that has just written a report lets up to twelve pass before the next; the rest is for a busy machine."""


class Story:
    """What happens, step by step."""

    def __init__(self, cluster: RealCluster, scheduler: Lamina) -> None:
        """Tell it of a cluster."""
        self.cluster, self.scheduler, self.bed = cluster, scheduler, cluster.bed
        self.lags: list[Lag] = []
        # A pod that asks for every core leaves no room for another.
        capacity = self.bed.api("GET", f"/api/v1/nodes/{NODES[0]}")["status"]["allocatable"]
        self.whole = {"cpu": capacity["cpu"]}

    def image(self, name: str, *layers: str) -> tuple[str, str]:
        """Push an image; the answer is its reference and its digest."""
        made = [self.cluster.layer(layer, SIZES[layer]) for layer in layers]
        return self.cluster.push(name, *made), self.cluster.image(*made).digest

    def place(self, pod: str, image: tuple[str, str], requests: dict[str, str]) -> str:
        """Let a pod come, and wait until it runs and the scheduler knows what its node has pulled for it."""
        self.cluster.make_pod(pod, image[0], requests)
        node = self.cluster.wait_bound(pod)
        self.lags.append(Lag(self.cluster, self.scheduler, node, *image))
        self.cluster.wait_running(pod)
        self.lags[-1].wait_known()
        print(f"  {pod} ({image[0].rpartition('/')[2]}) runs on {node}")
        return node

    def founding(self) -> dict[str, Any]:
        """P1, p2, and p3 where p2 was."""
        first, second = self.image("img1:1", "L1", "L2", "L3"), self.image("img2:1", "L1", "L2", "L4")
        nodes = {"p1": self.place("p1", first, self.whole), "p2": self.place("p2", second, self.whole)}
        self.cluster.remove("p2")
        before = len(self.cluster.requests("containerd"))
        nodes["p3"] = self.place("p3", first, self.whole)
        fetched = self.cluster.fetched(before)
        self.cluster.remove("p1", "p3")
        held = self.cluster.image(*(self.cluster.layer(layer, SIZES[layer]) for layer in ("L1", "L2", "L4")))
        wanted = self.cluster.image(*(self.cluster.layer(layer, SIZES[layer]) for layer in ("L1", "L2", "L3")))
        present = {layer.digest for layer in held.layers}
        # The configuration is a blob too, and no two images share it.
        missing = sum(layer.digest not in present for layer in wanted.layers) + 1
        return {
            "two_nodes": nodes["p1"] != nodes["p2"],
            "third_on_second_node": nodes["p3"] == nodes["p2"],
            "blobs_missing_third": missing,
            "blobs_fetched_third": len(fetched),
            "layers_wanted_third": len(wanted.layers),
            "second_node": nodes["p2"],
        }

    def resolved(self, second_node: str) -> dict[str, Any]:
        """A tag that no node has ever pulled, on layers that only one node has all of."""
        image = self.image("img2:2", "L1", "L2", "L4", "L5")
        before = len(self.cluster.requests("lamina"))
        node = self.place("p4", image, self.whole)
        asked = [one.path for one in self.cluster.requests("lamina")[before:] if "/img2/manifests/" in one.path]
        self.cluster.remove("p4")
        return {"resolved_on_right_node": node == second_node, "asked_the_registry": bool(asked)}

    def packed(self) -> dict[str, Any]:
        """Images a a a b b, all at once, on two nodes."""
        self.bed.api("PATCH", f"/api/v1/nodes/{NODES[2]}", {"spec": {"unschedulable": True}})
        images = {name: self.image(f"{name.lower()}:1", name) for name in ("A", "B")}
        before = len(self.cluster.requests("containerd"))
        pods = ["a1", "a2", "a3", "b1", "b2"]
        for pod in pods:
            self.cluster.make_pod(pod, images[pod[0].upper()][0], SMALL)
        nodes = {pod: self.cluster.wait_bound(pod) for pod in pods}
        for pod in pods:
            self.cluster.wait_running(pod)
        print("  " + ", ".join(f"{pod} on {node}" for pod, node in nodes.items()))
        tops = {self.cluster.layer(name, SIZES[name]).digest for name in images}
        return {"pulls_for_five": sum(digest in tops for digest in self.cluster.fetched(before))}


def main() -> dict[str, Any]:
    """Play it."""
    began = time.monotonic()
    with Testbed.start(parts=["registry"]) as bed, RealCluster(bed, NODES) as cluster:
        cluster.start_agents()
        with cluster.scheduler() as scheduler:
            ready = time.monotonic()
            story = Story(cluster, scheduler)
            told = story.founding()
            told |= story.resolved(told["second_node"])
            told |= story.packed()
            reports, statuses = zip(*(lag.seconds() for lag in story.lags), strict=True)
            complaints = scheduler.complaints()
    told |= {
        "report_seconds": round(max(reports), 2),
        "report_seconds_each": [round(one, 2) for one in reports],
        "status_images_seconds": round(max(statuses), 1),
        "status_images_seconds_each": [round(one, 1) for one in statuses],
        "setup_seconds": round(ready - began, 1),
        "seconds": round(time.monotonic() - began, 1),
    }
    print(f"  the scheduler knew after {', '.join(f'{one:.2f}' for one in reports)} s,")
    print(f"  the nodes' own status told after {', '.join(f'{one:.1f}' for one in statuses)} s")
    check(told, complaints)
    return told


def check(told: dict[str, Any], complaints: list[str]) -> None:
    """Raise unless everything came as it should."""
    holds = {
        "p1 and p2 are on two nodes": told["two_nodes"],
        "p3 is where p2 was": told["third_on_second_node"],
        "only what was missing was fetched": told["blobs_fetched_third"] == told["blobs_missing_third"],
        "something was there already": told["blobs_missing_third"] < told["layers_wanted_third"] + 1,
        "the new tag is where its layers are": told["resolved_on_right_node"],
        "and the registry was asked about it": told["asked_the_registry"],
        "five pods of two images cost two pulls": told["pulls_for_five"] == 2,
        "the scheduler knew in time": told["report_seconds"] < KNOWN_WITHIN,
        "nobody complained": not complaints,
    }
    if not all(holds.values()):
        raise AssertionError(f"{[what for what, held in holds.items() if not held]}\n{told}\n{complaints}")
