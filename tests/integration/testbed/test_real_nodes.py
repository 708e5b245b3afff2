"""Nodes with a kubelet and a containerd of their own run pods from the testbed's registry."""

import functools
from pathlib import Path

import pytest

from testbed import leftovers, real_nodes
from tests.integration.testbed.waiting import eventually

pytestmark = pytest.mark.realtime

PODS = "/api/v1/namespaces/default/pods"


def pod(name, node, image):
    containers = [{"name": "c", "image": image}]
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "containers": containers,
        },
    }


def running(bed, name):
    status = bed.api("GET", f"{PODS}/{name}")["status"]
    return status if status.get("phase") == "Running" else None


def traces(folder):
    """What is left of a testbed outside of its processes."""
    mounted = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line]
    links = [link for link in Path("/var/log/containers").glob("*") if str(folder) in str(link.readlink())]
    return mounted + links


@pytest.mark.slow
@pytest.mark.needs(root=True)
@pytest.mark.testbed(*real_nodes.PARTS)
def test_two_real_nodes_run_pods_and_leave_nothing_behind(bed_factory):
    bed = bed_factory()
    image = bed.push_image("web:1", [{"data": b"x" * 100_000}])
    nodes = [bed.add_real_node(name) for name in ("n1", "n2")]

    for node in nodes:
        bed.api("POST", PODS, pod(f"on-{node.name}", node.name, image.reference))
    statuses = [eventually(functools.partial(running, bed, f"on-{node.name}")) for node in nodes]

    # Each node pulled the image by itself, and says which one it was.
    digests = {status["containerStatuses"][0]["imageID"].rpartition("@")[2] for status in statuses}
    assert digests == {image.digest}
    assert all(node.socket.is_socket() for node in nodes)
    taints = [node["spec"].get("taints") for node in bed.api("GET", "/api/v1/nodes")["items"]]
    assert taints == [None, None]
    assert traces(bed.folder)

    bed.stop()

    assert traces(bed.folder) == []
    assert not bed.folder.exists()
    assert list(leftovers.members(bed.site.mark)) == []
