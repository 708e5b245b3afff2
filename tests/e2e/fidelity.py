"""
The same 500 pods on a real API server and on the façade, both with the real kube-scheduler.

On the real side kwok plays the kubelets, in real time: about two minutes. On the façade time is virtual. Four pools of
nodes are told apart by labels; nodes of one pool are equal, so any of them is a tie. One pool is too small, so that its
pods wait for each other: their makespan shows whether waiting and retrying take as long on both sides. kube-scheduler
retries waiting pods in the order of their back-off, which follows the wall clock. Pods of that pool therefore run equally
long, so that the order in which they start does not change the makespan. RUNS (default 3) repeats both sides.
"""

import os
import random
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lamina.apiserver.facade_run import FacadeRun
from lamina.apiserver.scheduler_profiles import profile_of
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.simulator.cluster import Delays, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.run import simulate
from lamina.simulator.workloads.scenario import PodArrival, Scenario
from lamina.wire.kube.codec import decode_pod
from testbed import Testbed
from testbed.building import ensure
from testbed.kwok_stages import RUN_FOR

NAME = "fidelity"
SUMMARY = "500 pods on a real API server with kwok and on the façade: same bindings up to ties, same makespan."
NEEDS = ()

COUNT: Final = 500
SPAN: Final = 60.0
"""Seconds from the first arrival to the last."""
LIMIT: Final = 600.0
POOLS: Final = {"small": (6, 8), "large": (5, 16), "fast": (4, 16), "crowded": (4, 5)}
"""Nodes of each pool, and cores of each node. Pods take one core; the last pool has fewer cores than pods at a time."""
POOL: Final = "pool"
CROWDED: Final = "crowded"
CROWDED_SECONDS: Final = 12


def main() -> dict[str, Any]:
    """Run both sides and compare them."""
    pods = list(arriving())
    equal, ratios = True, []
    for _ in range(int(os.environ.get("RUNS", "3"))):
        virtual, virtual_seconds = on_facade(pods)
        print(f"  façade      {len(virtual)} bound, makespan {virtual_seconds:.1f} s", flush=True)
        real, real_seconds = on_server(pods)
        print(f"  API server  {len(real)} bound, makespan {real_seconds:.1f} s", flush=True)
        equal = equal and pools_of(virtual) == pools_of(real) and len(real) == COUNT
        ratios.append(round(virtual_seconds / real_seconds, 4))
    return {
        "bindings_equal": equal,
        "makespan_ratio": max(ratios, key=lambda ratio: abs(ratio - 1.0)),
        "makespan_ratios": ratios,
        "pods": COUNT,
    }


def arriving() -> list[tuple[float, float, dict[str, Any]]]:
    """Return arrival, duration and object of each pod."""
    draw = random.Random(5)
    found = []
    for number in range(COUNT):
        pool = draw.choice(list(POOLS))
        seconds = CROWDED_SECONDS if pool == CROWDED else draw.randrange(6, 20)
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "default", "annotations": {RUN_FOR: f"{seconds}s"}},
            "spec": {
                "nodeSelector": {POOL: pool},
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "image", "resources": {"requests": {"cpu": "1"}}}],
            },
        }
        found.append((SPAN * number / COUNT, float(seconds), pod))
    return found


def node_names() -> dict[str, tuple[str, int]]:
    """Return pool and cores by node name."""
    return {f"{pool}-{number}": (pool, cores) for pool, (count, cores) in POOLS.items() for number in range(count)}


def pools_of(bindings: Mapping[str, str]) -> dict[str, str]:
    """Return the pool of each pod: nodes of one pool are equal."""
    return {pod: node.rpartition("-")[0] for pod, node in bindings.items()}


def on_facade(pods: list[tuple[float, float, dict[str, Any]]]) -> tuple[dict[str, str], float]:
    """Return the bindings and the makespan in virtual time."""
    arrivals = tuple(
        PodArrival(
            at,
            msgspec.structs.replace(
                decode_pod(msgspec.json.encode(pod)), uid=pod["metadata"]["name"], scheduler_name="", created_at=at
            ),
            PodLifecycle(seconds=seconds, restart="Never"),
        )
        for at, seconds, pod in pods
    )
    nodes = tuple(
        VirtualNodeSpec(
            name=name,
            allocatable=((CPU, 1000 * cores), (MEMORY, 2**36), (PODS, 110)),
            bandwidth=1e9,
            labels={POOL: pool},
        )
        for name, (pool, cores) in node_names().items()
    )
    scenario = Scenario(name=NAME, nodes=nodes, arrivals=arrivals, delays=Delays(start=0.0))
    profile, command = profile_of(str(ensure("kube-scheduler")))
    with FacadeRun(profile, command) as run:
        result = simulate(scenario, decider=run.make_decider)
    ends = [one.ended for one in result.pods if one.ended is not None]
    return {one.pod.partition("/")[2]: one.node for one in result.pods if one.node}, max(ends)


def on_server(pods: list[tuple[float, float, dict[str, Any]]]) -> tuple[dict[str, str], float]:
    """Return the bindings and the makespan in real time."""
    with Testbed.start(parts=("etcd", "kube-apiserver", "kube-scheduler", "kwok")) as bed:
        bed.add_nodes(
            {"name": name, "cpu": str(cores), "memory": "64Gi", "labels": {POOL: pool}}
            for name, (pool, cores) in node_names().items()
        )
        warm_up(bed)
        began = time.monotonic()
        for at, _, pod in pods:
            time.sleep(max(0.0, began + at - time.monotonic()))
            bed.api("POST", "/api/v1/namespaces/default/pods", pod)
        found = listed(bed)
        while time.monotonic() < began + LIMIT:
            found = listed(bed)
            if sum(one["status"].get("phase") == "Succeeded" for one in found) == len(pods):
                break
            time.sleep(0.1)
        seconds = time.monotonic() - began
        return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in found}, seconds


def warm_up(bed: Testbed) -> None:
    """Let one pod run and go, so that scheduler and kwok have read everything."""
    pod = arriving()[0][2]
    pod["metadata"] = {"name": "warm-up", "namespace": "default", "annotations": {RUN_FOR: "1s"}}
    bed.api("POST", "/api/v1/namespaces/default/pods", pod)
    deadline = time.monotonic() + LIMIT
    while not all(one["status"].get("phase") == "Succeeded" for one in listed(bed)):
        if time.monotonic() > deadline:
            raise AssertionError("the first pod did not finish")
        time.sleep(0.2)
    bed.api("DELETE", "/api/v1/namespaces/default/pods/warm-up")


def listed(bed: Testbed) -> list[dict[str, Any]]:
    """Return all pods."""
    found: list[dict[str, Any]] = bed.api("GET", "/api/v1/namespaces/default/pods?resourceVersion=0")["items"]
    return found
