"""
The founding scenario on a real control plane.

The same pods on the same nodes as in examples/founding, but the nodes are objects of a real kube-apiserver, what they
hold stands in NodeLayers and ImageLayers, and `lamina scheduler` binds the pods with the rights its own account has.
"""

import functools
import os
import re
import time
from typing import Any, Final

from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.run import simulate
from lamina.simulator.workloads import load_scenario
from testbed import Testbed
from tests.e2e._live import (
    Reporter,
    make_pod,
    manifest_of,
    node_of,
    publish_image,
    remove_pod,
    run_pod,
    until,
)
from tests.integration.scheduler.live import DEPLOY, ROOT, Lamina, configuration, install

NAME = "founding-api"
SUMMARY = "The founding scenario on a real kube-apiserver: the same placements as in simulation."
NEEDS = ()

SEED: Final = 0
MB: Final = 10**6
LAYERS: Final = {
    name: (name.encode(), size * MB) for name, size in (("L1", 300), ("L2", 200), ("L3", 150), ("L4", 100))
}
FIRST: Final = "registry.example/img1:1"
SECOND: Final = "registry.example/img2:1"
ROOM: Final = {"cpu": "4", "memory": "8Gi"}


def main() -> dict[str, Any]:
    """Play it on the version in LAMINA_KUBERNETES, or on the newest."""
    version = os.environ.get("LAMINA_KUBERNETES", "")
    return play(version) if version else play()


def play(version: str = "1.36.3") -> dict[str, Any]:
    """Play it on one version of Kubernetes."""
    began = time.monotonic()
    expected = simulated()
    with Testbed.start(version) as bed:
        install(bed)
        bed.kubectl("apply", "-f", str(DEPLOY / "policy"))
        bed.add_nodes({"name": name, "cpu": "4", "memory": "16Gi"} for name in ("n1", "n2", "n3"))
        with Lamina(bed, config=configuration(), words=("--seed", str(SEED))) as lamina:
            placed = live(bed)
            pending = waits(bed)
            told = described(bed, "p3")
        said = lamina.log.read_text(encoding="utf-8")
    told_as_usual = "Successfully assigned default/p3 to " + placed["p3"] in told and " lamina " in told
    for pod, node in placed.items():
        print(f"  {version}  {pod} on {node}, in simulation on {expected[pod]}")
    print(f"  {version}  p4 waits: {pending}")
    holds = {
        "as_simulated": placed == expected,
        "third_on_second_node": placed["p3"] == placed["p2"],
        "described": told_as_usual,
        "pending": pending.startswith("0/3 nodes are available: 3 Insufficient cpu."),
    }
    if not all(holds.values()):
        raise AssertionError(f"{version}: {holds}\n{told}\n{said}")
    return {"kubernetes": version, **holds, "seconds": round(time.monotonic() - began, 1)}


def simulated() -> dict[str, str]:
    """Return where the pods go in simulation."""
    scenario = load_scenario(ROOT / "examples" / "founding" / "scenario.yaml", SEED)
    result = simulate(scenario, named(scenario.profile, registry()), seed=SEED)
    return {pod.pod.removeprefix("default/"): pod.node for pod in result.pods}


def live(bed: Testbed) -> dict[str, str]:
    """Let the pods come and go as in the scenario, and return where they went."""
    agent = Reporter(bed)
    first = publish_image(bed, manifest_of([LAYERS["L1"], LAYERS["L2"], LAYERS["L3"]]))
    second = publish_image(bed, manifest_of([LAYERS["L1"], LAYERS["L2"], LAYERS["L4"]]))
    for node in ("n1", "n2", "n3"):
        agent.report(node, {})
    placed: dict[str, str] = {}
    for pod, image, digest in (("p1", FIRST, first), ("p2", SECOND, second)):
        make_pod(bed, pod, image, ROOM)
        placed[pod] = until(f"{pod} is bound", functools.partial(node_of, bed, pod))
        # Its node has pulled the image.
        agent.report(placed[pod], {digest: (image,)})
        run_pod(bed, pod)
    remove_pod(bed, "p2")
    # What was reported has to reach the scheduler before the next pod does.
    time.sleep(1.0)
    make_pod(bed, "p3", FIRST, ROOM)
    placed["p3"] = until("p3 is bound", lambda: node_of(bed, "p3"))
    return placed


def waits(bed: Testbed) -> str:
    """Let a pod come that fits nowhere, and return what its owner is told."""
    make_pod(bed, "p5", FIRST, ROOM)
    until("p5 is bound", lambda: node_of(bed, "p5"))
    make_pod(bed, "p4", FIRST, ROOM)
    said = until("p4 is told why it waits", lambda: condition(bed, "p4"))
    text = until("p4 has an event", lambda: event_in(described(bed, "p4")))
    if said not in text:
        raise AssertionError(f"the condition says {said!r}, the event {text!r}")
    return said


def condition(bed: Testbed, pod: str) -> str | None:
    """Return the message of a pod's PodScheduled condition, if it is false."""
    status = bed.api("GET", f"/api/v1/namespaces/default/pods/{pod}")["status"]
    found = [one for one in status.get("conditions", ()) if one["type"] == "PodScheduled" and one["status"] == "False"]
    return found[0]["message"] if found and found[0]["reason"] == "Unschedulable" else None


def described(bed: Testbed, pod: str) -> str:
    """Return what `kubectl describe pod` prints once there are events in it."""

    def told() -> str | None:
        text = bed.kubectl("describe", "pod", pod)
        return text if "FailedScheduling" in text or "Scheduled " in text.partition("Events:")[2] else None

    return until(f"{pod} has events", told)


def event_in(text: str) -> str | None:
    """Return the line of the event that says why a pod waits."""
    found = re.search(r"Warning +FailedScheduling .*", text)
    return found.group(0) if found else None
