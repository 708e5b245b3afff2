"""
Nodes that run containers: each has its own containerd and kubelet, several on one machine.

Needs root, because containers do. Pods run with `hostNetwork: true`: there is no pod network, and no proxy for
services. The settings below let several kubelets run beside each other, with cgroup v1 or v2, and on machines that
forbid lowering an out-of-memory score.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import containerd, ports
from testbed.containerd import Setup
from testbed.errors import PartError
from testbed.images import PROGRAM
from testbed.launching import once
from testbed.processes import Program
from testbed.requests import Requests
from testbed.site import Command, Site

PARTS: Final = ("kubelet", "containerd", "runc", "cni", "registry", PROGRAM)
"""The parts that real nodes need."""
PAUSE: Final = "pause:1"
NODES: Final = "system:nodes"
STATIC_PODS: Final = "static-pods"
READY_WITHIN: Final = 60.0
PAUSE_BETWEEN: Final = 0.1


@dataclass(frozen=True, slots=True)
class RealNode:
    """A node with a kubelet: its programs and paths."""

    name: str
    folder: Path
    socket: Path
    """containerd's socket, for CRI and for its own API."""
    containerd: Program
    kubelet: Program

    @property
    def static_pods(self) -> Path:
        """The folder whose manifests the kubelet runs without the API server."""
        return self.folder / STATIC_PODS


def prepare(site: Site, name: str) -> RealNode:
    """Write the files of a node; return it with both programs ready to start."""
    folder = site.folder / "nodes" / name
    setup = Setup(
        folder,
        {site.registry: site.registry},
        sandbox=f"{site.registry}/{PAUSE}",
        runc=site.program_path("runc"),
        network_plugins=site.program_path("cni", "loopback").parent,
    )
    config = containerd.write(setup, 3)
    program = site.program_path("containerd")
    # containerd finds its shim on the PATH.
    path = f"{program.parent}:{site.environment()['PATH']}"
    runtime = site.program(f"containerd-{name}", [program, "--config", config], setup.socket.exists, PATH=path)
    return RealNode(name, folder, setup.socket, runtime, kubelet(site, name, folder, setup.socket))


def kubelet(site: Site, name: str, folder: Path, socket: Path) -> Program:
    """Return a kubelet with the identity of its node."""
    health = ports.free()
    config = folder / "kubelet.yaml"
    (folder / STATIC_PODS).mkdir()
    config.write_text(yaml.safe_dump(kubelet_config(site, folder, socket, health)), encoding="utf-8")
    command: Command = [
        site.program_path("kubelet"),
        f"--config={config}",
        f"--kubeconfig={site.kubeconfig(f'system:node:{name}', [NODES])}",
        f"--hostname-override={name}",
        f"--root-dir={folder}/kubelet",
        f"--cert-dir={folder}/certificates",
    ]
    probe = once(Requests(f"http://{ports.LOOPBACK}:{health}"), "/healthz")
    return site.program(f"kubelet-{name}", command, probe, health)


def kubelet_config(site: Site, folder: Path, socket: Path, health: int) -> dict[str, Any]:
    """Return a kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ports.LOOPBACK,
        "port": ports.free(),
        "readOnlyPort": 0,
        "healthzBindAddress": ports.LOOPBACK,
        "healthzPort": health,
        "authentication": {"x509": {"clientCAFile": str(site.authority.ca_file)}, "anonymous": {"enabled": False}},
        "containerRuntimeEndpoint": f"unix://{socket}",
        "podLogsDir": str(folder / "logs"),
        "volumePluginDir": str(folder / "plugins"),
        "staticPodPath": str(folder / STATIC_PODS),
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "oomScoreAdj": 0,
        "resolvConf": "",
        # A full disk of the machine must not remove images or pods of a test.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
    }


def wait_ready(requests: Requests, node: RealNode, within: float = READY_WITHIN) -> None:
    """Wait until the node is Ready in the API, and remove the not-ready taint, as a controller would."""
    deadline = time.monotonic() + within
    while not is_ready(requests, node.name):
        if time.monotonic() > deadline or not node.kubelet.running:
            raise PartError(f"node {node.name} is not Ready; {node.kubelet.last_words()}")
        time.sleep(PAUSE_BETWEEN)
    requests.send("PATCH", f"/api/v1/nodes/{node.name}", {"spec": {"taints": None}})


def is_ready(requests: Requests, name: str) -> bool:
    """Return whether the node is Ready in the API."""
    if not requests.answers(f"/api/v1/nodes/{name}"):
        return False
    conditions = requests.send("GET", f"/api/v1/nodes/{name}")["status"].get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
