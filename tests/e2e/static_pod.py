"""
Lamina in place of the stock scheduler, by a real kubelet's manifest folder, and back.

The stock scheduler runs as a static pod and places the first pod. Its manifest is moved away, and that of deploy/static-pod
comes, with the configuration of docs/static-pod.md: Lamina places the second pod. Then the other way round.
"""

import re
import time
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import Testbed, building, made, ports
from testbed import parts as catalog
from testbed.control_plane import SCHEDULER
from testbed.real_nodes import RealNode
from tests.e2e._helm import InstalledCluster, push_lamina
from tests.integration.scheduler.live import DEPLOY, ROOT, until

NAME = "static-pod"
SUMMARY = "Lamina replaces kube-scheduler as a static pod of a real kubelet, and the stock scheduler comes back."
NEEDS = ("skopeo",)

NODE: Final = "n1"
PAGE: Final = ROOT / "docs" / "static-pod.md"
PROGRAM: Final = "usr/local/bin/kube-scheduler"
SYSTEM: Final = "/api/v1/namespaces/kube-system/pods"
READY_WITHIN: Final = 120.0
OURS: Final = "lamina.dev/"


class Story:
    """One kubelet and its folder."""

    def __init__(self, cluster: InstalledCluster, node: RealNode) -> None:
        """Tell it of a node."""
        self.cluster, self.node, self.bed = cluster, node, cluster.bed
        self.manifest = node.static_pods / "kube-scheduler.yaml"
        self.access = self.bed.kubeconfig(SCHEDULER)
        self.small = cluster.push("small:1")

    def stock(self, image: str) -> dict[str, Any]:
        """Return the stock scheduler's manifest, as kubeadm writes it."""
        words = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        command = ["/usr/local/bin/kube-scheduler", *(f"--{word}=/etc/kubernetes/scheduler.conf" for word in words)]
        command += ["--leader-elect=true", "--bind-address=127.0.0.1", f"--secure-port={ports.free()}"]
        container = {
            "name": "kube-scheduler",
            "image": image,
            "command": command,
            "volumeMounts": [{"name": "kubeconfig", "mountPath": "/etc/kubernetes/scheduler.conf", "readOnly": True}],
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
            "spec": {
                "hostNetwork": True,
                "containers": [container],
                "volumes": [self.volume("kubeconfig", self.access)],
            },
        }

    def ours(self, image: str) -> dict[str, Any]:
        """Return the shipped manifest with what has to differ here: image, port, host paths, and no seccomp."""
        text = (DEPLOY / "static-pod" / "kube-scheduler.yaml").read_text(encoding="utf-8")
        pod: dict[str, Any] = yaml.safe_load(text.replace("10260", str(ports.free())))
        folder = self.bed.folder / "lamina-configuration"
        folder.mkdir()
        (configuration,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        (folder / "scheduler.yaml").write_text(configuration, encoding="utf-8")
        del pod["spec"]["securityContext"]
        pod["spec"]["containers"][0]["image"] = image
        pod["spec"]["volumes"] = [self.volume("kubeconfig", self.access), self.volume("configuration", folder)]
        return pod

    @staticmethod
    def volume(name: str, path: Path) -> dict[str, Any]:
        """Return a volume with a path of the node."""
        return {"name": name, "hostPath": {"path": str(path)}}

    def replace(self, pod: dict[str, Any]) -> None:
        """Move the manifest away, wait until its pod is gone, and put another one there."""
        self.manifest.unlink(missing_ok=True)
        until(lambda: not self.bed.api("GET", SYSTEM)["items"], READY_WITHIN, "the scheduler before is gone")
        # The kubelet reads the folder; a file that is half written would be read, too.
        new = self.bed.folder / "new.yaml"
        new.write_text(yaml.safe_dump(pod), encoding="utf-8")
        new.rename(self.manifest)
        until(self.runs, READY_WITHIN, "the next scheduler runs")

    def runs(self) -> bool:
        """Whether the API shows the static pod running."""
        return [one["status"]["phase"] for one in self.bed.api("GET", SYSTEM)["items"]] == ["Running"]

    def placed_by_lamina(self, pod: str) -> bool:
        """Let a pod come that names no scheduler; return whether its binding has Lamina's note."""
        self.cluster.post(pod, self.small, "default", requests={"cpu": "10m"})
        path = f"/api/v1/namespaces/default/pods/{pod}"
        until(lambda: bool(self.bed.api("GET", path)["spec"].get("nodeName")), READY_WITHIN, f"{pod} is bound")
        self.cluster.wait_running(pod)
        noted = any(key.startswith(OURS) for key in self.bed.api("GET", path)["metadata"].get("annotations", {}))
        print(f"  {pod} was placed by {'Lamina' if noted else 'kube-scheduler'}")
        return noted


def main() -> dict[str, Any]:
    """Play it."""
    began = time.monotonic()
    building.build([catalog.find("kube-scheduler")])
    with Testbed.start(parts=["registry"]) as bed, InstalledCluster(bed, (NODE,)) as cluster:
        cluster.without_the_road()
        for what in ("crds", "static-pod/rbac.yaml"):
            bed.kubectl("apply", "--server-side", "-f", str(DEPLOY / what))
        program = bed.site.program_path("kube-scheduler").read_bytes()
        image = made.push(bed.registry, "kube-scheduler:e2e", made.image([made.layer({PROGRAM: program}, "zstd")]))
        story = Story(cluster, cluster.nodes[NODE])
        stock, ours = story.stock(image), story.ours(f"{push_lamina(bed)}:e2e")
        story.replace(stock)
        first = story.placed_by_lamina("first")
        story.replace(ours)
        second = story.placed_by_lamina("second")
        restarts = bed.api("GET", SYSTEM)["items"][0]["status"]["containerStatuses"][0]["restartCount"]
        story.replace(stock)
        third = story.placed_by_lamina("third")
    told = {
        "stock_before": not first,
        "placed": second,
        "restarts": restarts,
        "back_to_stock": not third,
        "seconds": round(time.monotonic() - began, 1),
    }
    if not (told["stock_before"] and told["placed"] and told["back_to_stock"]) or restarts:
        raise AssertionError(f"{told}")
    return told
