"""
Workloads of the benchmark scheduler-pair, after those of scheduler_perf: what the pods ask for, and what happens beside.

    basic             requests only
    pod_affinity      every pod must be in a zone with a pod of its own colour (SchedulingPodAffinity)
    topology_spread   pods of a colour may differ by five between zones (TopologySpreading)
    preemption        every node is full; each pod must evict one of as many pods of low priority (PreemptionBasic)
    churn             a node, a service and a pod that fits nowhere come and go twice a second (SchedulingWithMixedChurn)
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from _contest import Setting, Workload, a_pod, delete_pods, in_parallel
from testbed import Testbed

ZONE: Final = "topology.kubernetes.io/zone"
BLUE: Final = {"color": "blue"}
SELECTOR: Final = {"matchLabels": BLUE}
CHURN_EVERY: Final = 0.5
"""Seconds between two changes of the churn."""
PRIORITIES: Final = {"bench-low": 10, "bench-high": 1_000}
LOW, HIGH = PRIORITIES
VICTIMS: Final = "victims"
WHOLE_NODE: Final = {"requests": {"cpu": "3", "memory": "500Mi"}}
"""No two of these fit on a node of four cores."""
NO_NODE: Final = {"requests": {"cpu": "200", "memory": "500Mi"}}

Body = dict[str, Any]


def add_priorities(bed: Testbed) -> None:
    """Create the priority classes that the workloads use."""
    for name, value in PRIORITIES.items():
        bed.api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})


# ------------------------------------------------------------------------------------------------------- what pods ask


def _with_affinity(pod: Body) -> None:
    pod["metadata"]["labels"] = dict(BLUE)
    term = {"labelSelector": SELECTOR, "topologyKey": ZONE}
    pod["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _with_spread(pod: Body) -> None:
    pod["metadata"]["labels"] = dict(BLUE)
    rule = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    pod["spec"]["topologySpreadConstraints"] = [rule]


def _large_and_important(pod: Body) -> None:
    pod["spec"]["priorityClassName"] = HIGH
    pod["spec"]["containers"][0]["resources"] = dict(WHOLE_NODE)


# --------------------------------------------------------------------------------------------------------- what happens


@contextlib.contextmanager
def _full_nodes(bed: Testbed, setting: Setting) -> Iterator[None]:
    """Put a large pod on every node; as many of them as there are new pods have a low priority."""
    kept = setting.nodes - setting.pods
    filled = [
        (f"filling-{setting.number}", range(kept), HIGH),
        (f"{VICTIMS}-{setting.number}", range(kept, setting.nodes), LOW),
    ]
    for namespace, numbers, priority in filled:
        _fill(bed, namespace, numbers, priority)
    yield
    for namespace, _, _ in filled:
        delete_pods(bed, namespace)


def _fill(bed: Testbed, namespace: str, nodes: Sequence[int], priority: str) -> None:
    bed.api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    posts: list[tuple[str, str, object, str]] = []
    for number in nodes:
        pod = a_pod(number, "default-scheduler", "filler", 0)
        pod["spec"] |= {"nodeName": f"node-{number:05}", "priorityClassName": priority}
        pod["spec"]["containers"][0]["resources"] = dict(WHOLE_NODE)
        posts.append(("POST", f"/api/v1/namespaces/{namespace}/pods", pod, ""))
    in_parallel(bed, posts)


@contextlib.contextmanager
def _churn(bed: Testbed, setting: Setting) -> Iterator[None]:
    """Create and delete a node, a service and a pod that fits nowhere, until the trial ends."""
    over = threading.Event()
    namespace = f"churn-{setting.number}"
    bed.api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    thread = threading.Thread(target=_change_things, args=(bed, namespace, setting.scheduler, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        delete_pods(bed, namespace)


def _change_things(bed: Testbed, namespace: str, scheduler: str, over: threading.Event) -> None:
    # Connections of its own: those of the testbed belong to the main thread.
    with contextlib.closing(bed.site.requests()) as requests:
        rounds = 0
        while not over.wait(CHURN_EVERY):
            rounds += 1
            name, within = f"{namespace}-{rounds}", f"/api/v1/namespaces/{namespace}"
            pod = a_pod(rounds, scheduler, "churn", 0)
            pod["spec"]["containers"][0]["resources"] = dict(NO_NODE)
            capacity = {"cpu": "1", "memory": "1Gi", "pods": "110"}
            ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": capacity, "capacity": capacity}
            requests.send("POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": ready})
            requests.send("POST", f"{within}/pods", pod)
            service = {"metadata": {"name": f"s{rounds}"}, "spec": {"selector": {"app": "x"}, "clusterIP": "None"}}
            requests.send("POST", f"{within}/services", service)
            requests.send("DELETE", f"/api/v1/nodes/{name}", None)
            requests.send("DELETE", f"{within}/pods", {"gracePeriodSeconds": 0})
            requests.send("DELETE", f"{within}/services/s{rounds}", None)


POD_AFFINITY: Final = Workload("pod_affinity", _with_affinity)
TOPOLOGY_SPREAD: Final = Workload("topology_spread", _with_spread)
PREEMPTION: Final = Workload("preemption", _large_and_important, _full_nodes, VICTIMS)
CHURN: Final = Workload("churn", beside=_churn)
