"""Parts that are built only on request work with a real control plane."""

from pathlib import Path

import pytest

from testbed import in_cluster, kwok_stages
from tests.integration.testbed.waiting import eventually

# Where they are not built yet, each takes minutes.
pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.soak]

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"


def pod(name, scheduler, **annotations):
    containers = [{"name": "c", "image": "example.com/none:1"}]
    metadata = {"name": name, "annotations": annotations}
    return {"metadata": metadata, "spec": {"schedulerName": scheduler, "containers": containers}}


@pytest.mark.testbed("kwok", "kube-scheduler")
def test_kwok_runs_the_pods_of_nodes_without_a_kubelet(bed_factory):
    bed = bed_factory(parts=["kube-scheduler", "kwok"])
    bed.add_node("n1")
    for name, annotations in (("endless", {}), ("short", {kwok_stages.RUN_FOR: "1s"}), ("deleted", {})):
        bed.api("POST", PODS, pod(name, "default-scheduler", **annotations))

    def phases():
        return {one["metadata"]["name"]: one["status"]["phase"] for one in bed.api("GET", PODS)["items"]}

    assert eventually(lambda: phases() == {"endless": "Running", "short": "Succeeded", "deleted": "Running"})
    bed.api("DELETE", f"{PODS}/deleted")
    assert eventually(lambda: phases() == {"endless": "Running", "short": "Succeeded"})
    conditions = {one["type"]: one["status"] for one in bed.api("GET", f"{PODS}/endless")["status"]["conditions"]}
    assert conditions == dict.fromkeys(("PodScheduled", "Initialized", "ContainersReady", "Ready"), "True")


@pytest.mark.testbed("kwok")
def test_kwok_makes_new_nodes_ready(bed_factory):
    bed = bed_factory(parts=["kwok"])
    bed.api("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})

    def ready():
        conditions = bed.api("GET", "/api/v1/nodes/n1")["status"].get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    assert eventually(ready)


@pytest.mark.needs("unshare")
@pytest.mark.testbed("random-scheduler")
def test_the_random_scheduler_binds_its_pods_as_a_program_in_a_pod(bed_factory):
    bed = bed_factory(parts=["random-scheduler"])
    bed.add_nodes([{"name": "n1"}, {"name": "n2"}])
    for name, scheduler in (("a", "random-scheduler"), ("b", "random-scheduler"), ("c", "another")):
        bed.api("POST", PODS, pod(name, scheduler))

    def bound():
        pods = bed.api("GET", PODS)["items"]
        return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in pods if one["spec"].get("nodeName")}

    def told():
        events = bed.api("GET", EVENTS)["items"]
        return {one["involvedObject"]["name"] for one in events if one["source"].get("component") == "random-scheduler"}

    assert eventually(lambda: told() == {"a", "b"})
    assert set(bound()) == {"a", "b"}
    assert set(bound().values()) <= {"n1", "n2"}
    # The files of its service account are in its own mount namespace.
    assert not Path(in_cluster.ACCOUNT).exists()
