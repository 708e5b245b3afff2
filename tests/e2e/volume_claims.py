"""
StatefulSets whose claims wait for their first consumer, on a real control plane with kwok as kubelets.

The controllers of the real controller manager make the pods and bind the claims; `lamina scheduler` places the pods with
the rights of its own account; a provisioner of the tests makes volumes that only one node can mount. Eight nodes:

    n0, n1    room for two replicas, and for four volumes        far      outside the topologies of the class
    n2, n3    room for two replicas, and for six volumes         limited  may have one volume
    small     room for no replica                                broken   its provisioner fails until it is repaired

Every pod would rather be on the last four. The story has five parts:

    ordered   eight replicas, one after the other, then a ninth that waits until `broken` is repaired
    parallel  twelve replicas at once, two volumes for each node, and each node refuses its first claim
    returned  pods that are deleted come back to their volumes, also if the node is cordoned meanwhile
    too late  a provisioner that does not answer until `bindTimeoutSeconds` have passed
    restarted the scheduler is killed while it waits for a provisioner
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from testbed import Testbed
from tests.integration.scheduler.disk_provisioner import (
    DiskProvisioner,
    add_csi_node,
    add_driver,
    claim,
    places,
)
from tests.integration.scheduler.live import Lamina, configuration, install, until
from tests.integration.scheduler.truth import Witness, pod

NAME = "volume-claims"
SUMMARY = (
    "StatefulSets with WaitForFirstConsumer claims: a provisioner that refuses, limits, a time-out, and the way back."
)
NEEDS = ()

PODS: Final = "/api/v1/namespaces/default/pods"
SETS: Final = "/apis/apps/v1/namespaces/default/statefulsets"
GOOD: Final = ("n0", "n1", "n2", "n3")
LIKED: Final = ("small", "far", "limited", "broken")
NODES: Final = (*GOOD, *LIKED)
DATA, JOURNAL = 1024, 512
"""Sizes of the claims of an ordered replica in MiB."""
ROOM: Final = dict.fromkeys(GOOD, 2 * (DATA + JOURNAL)) | {"small": 256, "far": 9999, "limited": 9999, "broken": 9999}
DISKS, SHARES = "disks.example", "shares.example"
"""The drivers of the ordered and of the parallel replicas; only the first one reports room."""
LIMITS: Final = {"n0": 4, "n1": 4, "limited": 1}
MANY: Final = 6
SHARES_EACH: Final = 2
ORDERED, PARALLEL = 8, 12
TIMEOUT: Final = 12
"""bindTimeoutSeconds."""
WITHIN: Final = 180.0
TOO_LATE: Final = "binding volumes: context deadline exceeded"


def main() -> dict[str, Any]:
    """Run the parts."""
    began = time.monotonic()
    with Testbed.start(parts=("etcd", "kube-apiserver", "kube-controller-manager")) as bed:
        prepare(bed)
        with (
            DiskProvisioner(bed, DISKS, "disks", ROOM) as disks,
            DiskProvisioner(bed, SHARES, "shares") as shares,
            Witness(bed) as witness,
            Lamina(bed, config=settings()) as lamina,
        ):
            found = ordered(bed, disks)
            found |= parallel(bed, shares)
            found |= returned(bed)
            found |= too_late(bed, shares)
            found |= restarted(bed, shares, lamina)
            until(lambda: not lamina.differences(), WITHIN, "cache and API server agree")
            found |= totals(bed, disks, shares)
            assert [] == lamina.complaints()
            moved = [one.name for one in witness.moved()]
    found |= {"bound_twice": len(moved), "seconds": round(time.monotonic() - began, 1)}
    expected = {
        "replicas_bound": found["replicas"],
        "claims_on_node": found["claims"],
        "retried_after_refusal": found["claims_refused"],
        "returned_to_volume": found["deleted"],
        "asked_where_no_room": 0,
        "volumes_without_claim": 0,
        "over_limit": 0,
        "bound_twice": 0,
    }
    assert expected == {name: found[name] for name in expected}, found
    return found


def settings() -> dict[str, Any]:
    """Return the configuration of deploy/ with a shorter time-out."""
    config = configuration()
    (profile,) = config["profiles"]
    profile["pluginConfig"].append({"name": "VolumeBinding", "args": {"bindTimeoutSeconds": TIMEOUT}})
    return config


def prepare(bed: Testbed) -> None:
    """Install, and add the nodes and the drivers."""
    install(bed)
    bed.start_part("kwok")
    for name in NODES:
        labels = {"zone": "far" if name == "far" else "near", "liked": "yes" if name in LIKED else "no"}
        bed.add_node(name, cpu="16", labels=labels)
        add_csi_node(bed, name, {DISKS: LIMITS.get(name, MANY), SHARES: SHARES_EACH})
    add_driver(bed, DISKS, "disks", reports_room=True, zone="near")
    add_driver(bed, SHARES, "shares", reports_room=False)


# -- pods --------------------------------------------------------------------------------------------------------------


def liking() -> dict[str, Any]:
    """Return an affinity for the nodes on which most replicas cannot be."""
    liked = {"matchExpressions": [{"key": "liked", "operator": "In", "values": ["yes"]}]}
    preferred = [{"weight": 100, "preference": liked}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def make_set(bed: Testbed, name: str, replicas: int, policy: str, *templates: dict[str, Any]) -> None:
    """Create a StatefulSet."""
    labels = {"set": name}
    spec = pod(name, affinity=liking())["spec"]
    body = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": policy,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
            "volumeClaimTemplates": list(templates),
        },
    }
    bed.api("POST", SETS, body)


def scale(bed: Testbed, name: str, replicas: int) -> None:
    """Change the number of replicas."""
    bed.api("PATCH", f"{SETS}/{name}", {"spec": {"replicas": replicas}})


def nodes_of(bed: Testbed, name: str) -> dict[str, str]:
    """Return the node of each pod of a set that runs."""
    items = bed.api("GET", f"{PODS}?labelSelector=set%3D{name}")["items"]
    return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in items if one["status"]["phase"] == "Running"}


def run_all(bed: Testbed, name: str, replicas: int) -> dict[str, str]:
    """Wait until all replicas run; return their nodes."""
    until(lambda: len(nodes_of(bed, name)) == replicas, WITHIN, f"{replicas} replicas of {name} run")
    return nodes_of(bed, name)


def message(bed: Testbed, name: str) -> str:
    """Return why a pod waits; empty if it does not exist or is not told."""
    items = bed.api("GET", f"{PODS}?fieldSelector=metadata.name%3D{name}")["items"]
    conditions = items[0]["status"].get("conditions", ()) if items else ()
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def says(bed: Testbed, name: str, *parts: str) -> Callable[[], bool]:
    """Return a function that returns whether a pod's message has all *parts*."""
    return lambda: all(part in message(bed, name) for part in parts)


# -- parts -------------------------------------------------------------------------------------------------------------


def ordered(bed: Testbed, disks: DiskProvisioner) -> dict[str, Any]:
    """Let replicas come one after the other until there is no room for the next one."""
    disks.breaks("broken")
    disks.refuse_once(["n1"])
    make_set(bed, "ordered", ORDERED, "OrderedReady", claim("data", "disks", DATA), claim("journal", "disks", JOURNAL))
    nodes = run_all(bed, "ordered", ORDERED)
    assert dict.fromkeys(GOOD, 2) == Counter(nodes.values()), nodes
    scale(bed, "ordered", ORDERED + 1)
    waits = (
        "0/8 nodes are available: ",
        "1 node(s) didn't find available persistent volumes to bind",
        "3 node(s) exceed max volume count",
        "4 node(s) did not have enough free storage",
    )
    until(says(bed, f"ordered-{ORDERED}", *waits), WITHIN, "the ninth replica is told why it waits")
    print(f"ordered: {message(bed, f'ordered-{ORDERED}')}", flush=True)
    disks.repair("broken", DATA + JOURNAL)
    nodes = run_all(bed, "ordered", ORDERED + 1)
    assert "broken" == nodes[f"ordered-{ORDERED}"], nodes
    print(f"ordered: {len(nodes)} replicas on {dict(Counter(nodes.values()))}", flush=True)
    return {"waited_for_room": 1}


def parallel(bed: Testbed, shares: DiskProvisioner) -> dict[str, Any]:
    """Let replicas come at once, while each node refuses its first claim."""
    shares.refuse_once(NODES)
    make_set(bed, "parallel", PARALLEL, "Parallel", claim("share", "shares", 1))
    nodes = run_all(bed, "parallel", PARALLEL)
    print(f"parallel: {len(nodes)} replicas on {dict(Counter(nodes.values()))}", flush=True)
    return {"most_volumes_of_limit": f"{max(Counter(nodes.values()).values())} of {SHARES_EACH}"}


def returned(bed: Testbed) -> dict[str, Any]:
    """Delete pods, and cordon the node of one of them."""
    sizes = {"ordered": ORDERED + 1, "parallel": PARALLEL}
    before = {name: nodes_of(bed, name) for name in sizes}
    gone = [f"ordered-{number}" for number in (0, 3, 7)] + [f"parallel-{number}" for number in (1, 5)]
    uids = {name: bed.api("GET", f"{PODS}/{name}")["metadata"]["uid"] for name in gone}
    cordoned = before["ordered"]["ordered-0"]
    cordon(bed, cordoned, yes=True)
    for name in gone:
        bed.api("DELETE", f"{PODS}/{name}")
    waits = ("1 node(s) were unschedulable", "node(s) didn't match PersistentVolume's node affinity")
    until(says(bed, "ordered-0", *waits), WITHIN, "the pod whose node is cordoned is told why it waits")
    print(f"returned: {message(bed, 'ordered-0')}", flush=True)
    cordon(bed, cordoned, yes=False)

    def all_back() -> bool:
        items = {one["metadata"]["name"]: one["metadata"]["uid"] for one in bed.api("GET", PODS)["items"]}
        return all(items.get(name, uid) != uid for name, uid in uids.items())

    until(all_back, WITHIN, "the pods exist again")
    after = {name: run_all(bed, name, size) for name, size in sizes.items()}
    back = [name for name in gone if after[name.partition("-")[0]][name] == before[name.partition("-")[0]][name]]
    return {"deleted": len(gone), "returned_to_volume": len(back)}


def too_late(bed: Testbed, shares: DiskProvisioner) -> dict[str, Any]:
    """Let a provisioner not answer until the scheduler gives up, and then answer."""
    shares.hold()
    node = chosen(bed, shares, "late")
    began = time.monotonic()
    until(says(bed, "late", TOO_LATE), WITHIN, "the pod is told that its volume was not made in time")
    took = time.monotonic() - began
    assert took > TIMEOUT / 2, took
    assert "Running" != bed.api("GET", f"{PODS}/late")["status"]["phase"]
    shares.release()
    until(lambda: runs_on(bed, "late") == node, WITHIN, "the pod runs where its volume was made")
    print(f"too late: after {took:.1f} s of {TIMEOUT}, then on {node}", flush=True)
    return {"timeout_s": TIMEOUT, "timed_out_after_s": round(took, 1), "bound_after_timeout": 1}


def restarted(bed: Testbed, shares: DiskProvisioner, lamina: Lamina) -> dict[str, Any]:
    """Kill the scheduler while it waits for a provisioner."""
    shares.hold()
    node = chosen(bed, shares, "orphan")
    lamina.kill()
    lamina.start()
    shares.release()
    until(lambda: runs_on(bed, "orphan") == node, WITHIN, "the pod runs where its volume was made")
    return {"bound_after_restart": 1}


def chosen(bed: Testbed, shares: DiskProvisioner, name: str) -> str:
    """Create a pod with a claim of its own; return the node that the scheduler selects."""
    bed.api("POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim(name, "shares", 1))
    bed.api("POST", PODS, pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}]))
    until(lambda: bool(shares.asked(name)), WITHIN, f"a node is selected for the claim of {name}")
    return shares.asked(name)


def runs_on(bed: Testbed, name: str) -> str:
    """Return the node of a pod that runs; empty if it does not."""
    found = bed.api("GET", f"{PODS}/{name}")
    return found["spec"].get("nodeName", "") if found["status"]["phase"] == "Running" else ""


def cordon(bed: Testbed, node: str, *, yes: bool) -> None:
    """Forbid or allow new pods on a node."""
    bed.api("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": yes}})


# -- totals ------------------------------------------------------------------------------------------------------------


def totals(bed: Testbed, disks: DiskProvisioner, shares: DiskProvisioner) -> dict[str, Any]:
    """Add up what the API server has in the end."""
    where = places(bed)
    items = bed.api("GET", PODS)["items"]
    claims = 0
    on_node = 0
    volumes: Counter[tuple[str, str]] = Counter()
    for one in items:
        node = one["spec"].get("nodeName", "")
        names = [
            v["persistentVolumeClaim"]["claimName"] for v in one["spec"]["volumes"] if "persistentVolumeClaim" in v
        ]
        claims += len(names)
        on_node += sum(where.get(name) == node != "" for name in names)
        for name in names:
            volumes[node, SHARES if f"default/{name}" in shares.made else DISKS] += 1
    limits = {(node, driver): LIMITS.get(node, MANY) if driver == DISKS else SHARES_EACH for node, driver in volumes}
    made, refused = disks.made | shares.made, disks.refused + shares.refused
    again = [one for one in refused if made.get(one.claim)]
    found = len(bed.api("GET", "/api/v1/persistentvolumes")["items"])
    return {
        "replicas": ORDERED + 1 + PARALLEL,
        "replicas_bound": sum(
            bool(one["spec"].get("nodeName")) for one in items if "set" in one["metadata"].get("labels", {})
        ),
        "claims": claims,
        "claims_on_node": on_node,
        "claims_refused": len(refused),
        "retried_after_refusal": len(again),
        "elsewhere_after_refusal": sum(made[one.claim] != one.node for one in again),
        "asked_where_no_room": len(disks.misplaced + shares.misplaced),
        "volumes_without_claim": found - len(where),
        "over_limit": sum(count > limits[key] for key, count in volumes.items()),
    }
