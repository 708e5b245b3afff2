"""
The DaemonSet of deploy/ on a real kubelet: its two containers, their pipe, token, users and confinement as shipped.

What has to differ here: the image and how Python is started in it, the folder of the runtime's socket, and the network,
since nodes of the testbed have no pod network and no proxy for services.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import Testbed, made, real_nodes
from testbed.errors import RefusedError
from tests.e2e._live import until
from tests.integration.node_agent.agent_image import COMMAND, ENVIRONMENT, agent_image
from tests.integration.scheduler.live import DEPLOY, install

pytestmark = pytest.mark.realtime

NAMESPACE = "lamina-agents"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODE_LAYERS = "/apis/lamina.dev/v1alpha1/nodelayers"


def shipped() -> dict[str, Any]:
    """The pod that the DaemonSet would make."""
    (daemon_set,) = yaml.safe_load_all((DEPLOY / "node-agent" / "daemonset.yaml").read_text(encoding="utf-8"))
    return copy.deepcopy(daemon_set["spec"]["template"])


def agent_pod(bed: Testbed, node: str, image: str, runtime: Path) -> dict[str, Any]:
    """That pod, fitted to a node of the testbed."""
    pod = shipped()
    spec = pod["spec"]
    host, _, port = bed.url.removeprefix("https://").rpartition(":")
    found = {**ENVIRONMENT, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    for container in spec["containers"]:
        container |= {"image": image, "command": COMMAND}
        container["env"] = [{"name": name, "value": value} for name, value in found.items()]
        container["args"] = [word.replace("containerd.sock", "c.sock") for word in container["args"]]
    for volume in spec["volumes"]:
        if volume["name"] == "runtime":
            volume["hostPath"]["path"] = str(runtime)
    # The kubelet's own runtime was built without a library for seccomp; the reader's filter is its own and needs none.
    del spec["securityContext"]["seccompProfile"]
    spec |= {"nodeName": node, "hostNetwork": True}
    return {"metadata": {"name": "agent", "labels": pod["metadata"]["labels"]}, "spec": spec}


@pytest.mark.slow
@pytest.mark.needs(root=True)
@pytest.mark.testbed(*real_nodes.PARTS, "kubectl")
def test_the_shipped_pod_reports_its_node_and_may_do_no_more(bed_factory):
    bed: Testbed = bed_factory()
    install(bed)
    bed.kubectl("apply", "-f", str(DEPLOY / "policy"))
    authority = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": bed.ca_file.read_text(encoding="utf-8")}}
    bed.api("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", authority)
    node = bed.add_real_node("n1")
    uid = bed.api("GET", "/api/v1/nodes/n1")["metadata"]["uid"]
    reference = made.push(bed.registry, "lamina:1", agent_image())

    bed.api("POST", PODS, agent_pod(bed, "n1", reference, node.socket.parent))
    try:
        status = until("the node is reported", lambda: reported(bed), 90)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{said(bed, node.folder)}") from error

    names = {name for image in status["images"] for name in image.get("names", ())}
    assert reference in names
    assert (uid, "containerd", "Set") == (status["nodeUID"], status["runtime"]["name"], status["reuse"])
    assert status["diskBytes"] > status["freeBytes"] > 0
    held = until("its image is described", lambda: described(bed, status["images"]), 90)
    assert held
    restarts = [one["restartCount"] for one in bed.api("GET", f"{PODS}/agent")["status"]["containerStatuses"]]
    assert [0, 0] == restarts


def reported(bed: Testbed) -> dict[str, Any] | None:
    """The report of the node, once its agent's own image is in it."""
    try:
        items = bed.api("GET", NODE_LAYERS)["items"]
    except RefusedError:
        # A kind that is new is not served at once.
        return None
    status = items[0].get("status", {}) if items else {}
    return (
        status
        if any("lamina" in name for image in status.get("images", ()) for name in image.get("names", ()))
        else None
    )


def described(bed: Testbed, images: list[dict[str, Any]]) -> list[str] | None:
    """The images of a report, once what each consists of is written down."""
    there = {
        one["metadata"]["name"] for one in bed.api("GET", NODE_LAYERS.replace("nodelayers", "imagelayers"))["items"]
    }
    wanted = [image["digest"].replace(":", "-") for image in images]
    return wanted if there.issuperset(wanted) else None


def said(bed: Testbed, folder: Path) -> str:
    """What the pod's containers wrote, and what its kubelet says of them."""
    status = bed.api("GET", f"{PODS}/agent")["status"]
    logs = [
        path.read_text(encoding="utf-8", errors="replace")[-3000:] for path in sorted((folder / "logs").rglob("*.log"))
    ]
    return "\n".join([json.dumps(status.get("containerStatuses"), indent=1), *logs])
