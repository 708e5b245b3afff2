"""
Lamina installed by helm, used, upgraded and removed, on real kubelets and containerds.

The image is the one of `make image`, pulled from the testbed's registry. The stock scheduler places Lamina's own pods. The
founding scenario then goes through the installed scheduler: p1 and p2 take a node each, p2 goes, and p3 comes to the node
that still holds most of its layers. At the end nothing is left.
"""

import tempfile
import time
from pathlib import Path
from typing import Any, Final

from testbed import Testbed, building, ports
from testbed import parts as catalog
from tests.e2e import _rights
from tests.e2e._helm import AGENTS, CHART, NAMESPACE, RELEASE, Helm, InstalledCluster, push_lamina
from tests.integration.nodes.real import MB, RealCluster, wait_reported
from tests.integration.scheduler.live import until

NAME = "install"
SUMMARY = (
    "The chart installed by helm on real nodes places pods by layers, is upgraded and removed, and leaves nothing."
)
NEEDS = ("skopeo",)

NODES: Final = ("n1", "n2", "n3")
SIZES: Final = {"L1": 15 * MB, "L2": 10 * MB, "L3": 7 * MB, "L4": 8 * MB}
SHARE: Final = 0.55
"""Of a node's cores, for a pod: two do not fit on one node, and Lamina's own pods fit beside one."""
ROLLED_OUT: Final = "--timeout=110s"
READY_WITHIN: Final = 180.0

# Rights that this story has no reason to use, by verb and resource, and the test that uses each of them.
VOLUMES: Final = "tests/integration/scheduler/test_volume_claims.py"
ELSEWHERE: Final = {
    "get pods": "tests/integration/scheduler/test_faults.py",
    "patch events": "tests/integration/kube_access/test_events.py",
    "get persistentvolumes": VOLUMES,
    "patch persistentvolumes": VOLUMES,
    "get persistentvolumeclaims": VOLUMES,
    "patch persistentvolumeclaims": VOLUMES,
    "delete imagelayers": "tests/integration/scheduler/test_image_layers_gc.py",
    "patch nodelayers": "tests/integration/node_agent/test_publishing.py",
}


class Story:
    """What happens, step by step."""

    def __init__(self, cluster: RealCluster, helm: Helm) -> None:
        """Tell it of a cluster."""
        self.cluster, self.helm, self.bed = cluster, helm, cluster.bed
        cores = float(self.bed.api("GET", f"/api/v1/nodes/{NODES[0]}")["status"]["allocatable"]["cpu"])
        self.half = {"cpu": f"{round(cores * SHARE * 1000)}m"}

    def image(self, name: str, *layers: str) -> tuple[str, str]:
        """Push an image; the answer is its reference and its digest."""
        made = [self.cluster.layer(layer, SIZES[layer]) for layer in layers]
        return self.cluster.push(name, *made), self.cluster.image(*made).digest

    def install(self, values: Path) -> float:
        """Install, and return the seconds until a pod that comes at once is bound."""
        first = self.image("first:1")[0]
        began = time.monotonic()
        self.helm("install", RELEASE, str(CHART), "--create-namespace", f"--values={values}")
        self.cluster.make_pod("first", first, {"cpu": "10m"})
        until(lambda: bool(self.node("first")), READY_WITHIN, "the first pod is bound")
        seconds = time.monotonic() - began
        self.rolled_out()
        for node in NODES:
            wait_reported(
                self.bed, node, self.image("first:1")[1] if node == self.node("first") else self.lamina(), 60.0
            )
        self.cluster.wait_running("first")
        self.cluster.remove("first")
        return round(seconds, 1)

    def rolled_out(self) -> None:
        """Wait until everything of the chart runs."""
        self.bed.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/lamina-scheduler", ROLLED_OUT)
        self.bed.kubectl("-n", AGENTS, "rollout", "status", "daemonset/lamina-agent", ROLLED_OUT)

    def lamina(self) -> str:
        """The digest under which nodes hold Lamina's own image."""
        pods = self.bed.api("GET", f"/api/v1/namespaces/{AGENTS}/pods")["items"]
        return str(pods[0]["status"]["containerStatuses"][0]["imageID"]).rpartition("@")[2]

    def place(self, pod: str, image: tuple[str, str]) -> str:
        """Let a pod come, and wait until it runs and its node has reported its image."""
        self.cluster.make_pod(pod, image[0], self.half)
        node = self.cluster.wait_bound(pod)
        self.cluster.wait_running(pod)
        wait_reported(self.bed, node, image[1])
        print(f"  {pod} ({image[0].rpartition('/')[2]}) runs on {node}")
        return node

    def founding(self) -> dict[str, str]:
        """P1, p2, and p3 where p2 was; return where each was placed."""
        first, second = self.image("img1:1", "L1", "L2", "L3"), self.image("img2:1", "L1", "L2", "L4")
        nodes = {"p1": self.place("p1", first), "p2": self.place("p2", second)}
        self.cluster.remove("p2")
        return {**nodes, "p3": self.place("p3", first)}

    def refused(self) -> None:
        """Let a pod come that fits nowhere, and wait until its condition says so."""
        self.cluster.make_pod("too-big", self.image("first:1")[0], {"cpu": "1000"})
        words = ("wait", "--for=condition=PodScheduled=false", "pod/too-big", "--timeout=60s")
        self.bed.kubectl(*words)
        self.cluster.remove("too-big")

    def node(self, pod: str) -> str:
        """Return the node of a pod, or nothing."""
        return str(self.bed.api("GET", f"/api/v1/namespaces/default/pods/{pod}")["spec"].get("nodeName", ""))

    def running(self) -> dict[str, int]:
        """Return the user's pods that run, with their restarts."""
        pods = self.bed.api("GET", "/api/v1/namespaces/default/pods")["items"]
        return {
            one["metadata"]["uid"]: one["status"]["containerStatuses"][0]["restartCount"]
            for one in pods
            if one["status"]["phase"] == "Running"
        }

    def restarts(self) -> int:
        """Return how often containers of Lamina have been restarted."""
        pods = [
            one
            for space in (NAMESPACE, AGENTS)
            for one in self.bed.api("GET", f"/api/v1/namespaces/{space}/pods")["items"]
        ]
        return sum(status["restartCount"] for pod in pods for status in pod["status"].get("containerStatuses", ()))

    def upgrade(self, values: Path) -> None:
        """Change the configuration, and go back."""
        self.helm("upgrade", RELEASE, str(CHART), f"--values={values}")
        self.rolled_out()
        self.helm("rollback", RELEASE, "1")
        self.rolled_out()

    def uninstall(self) -> list[str]:
        """Remove it as the page says; return what is left."""
        self.helm("uninstall", RELEASE, "--wait")
        self.bed.kubectl("delete", "namespace", NAMESPACE, "--timeout=100s")
        # Objects of a deleted kind stay listed for a moment.
        deadline = time.monotonic() + 60.0
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(1.0)
        return left

    def left(self) -> list[str]:
        """Return every object, of any kind, whose name or label is Lamina's."""
        kinds = self.bed.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        names = self.bed.kubectl("get", ",".join(kinds), "--all-namespaces", "-o", "name", "--ignore-not-found").split()
        return sorted(name for name in names if "lamina" in name and not name.startswith("event"))


def main() -> dict[str, Any]:
    """Play it."""
    began = time.monotonic()
    building.build([catalog.find("helm")])
    with (
        tempfile.TemporaryDirectory() as audit,
        Testbed.start(
            parts=["kube-scheduler", "kube-controller-manager", "registry"],
            flags={"kube-apiserver": _rights.flags(Path(audit))},
        ) as bed,
        InstalledCluster(bed, NODES) as cluster,
    ):
        # Lamina's own image comes without the slow road.
        cluster.without_the_road()
        helm = Helm(bed)
        story = Story(cluster, helm)
        port = ports.free()
        repository = push_lamina(bed)
        values = helm.values("values", repository, "e2e", port)
        told: dict[str, Any] = {"seconds_to_first_placement": story.install(values)}
        helm("test", RELEASE, "--timeout=100s")
        cluster.over_the_road()
        nodes = story.founding()
        told |= {"two_nodes": nodes["p1"] != nodes["p2"], "third_on_second_node": nodes["p3"] == nodes["p2"]}
        story.refused()
        told["restarts"] = story.restarts()
        before = story.running()
        story.upgrade(helm.values("changed", repository, "e2e", port, commonLabels={"team": "platform"}))
        unused = unused_rights(bed, Path(audit))
        told["rights_unused"] = len(unused)
        told["rights_unused_names"] = unused
        told["left_after_uninstall"] = story.uninstall()
        told["pods_undisturbed"] = story.running() == before
    told["seconds"] = round(time.monotonic() - began, 1)
    check(told)
    return told


def unused_rights(bed: Testbed, audit: Path) -> list[str]:
    """Return the granted rights that neither this story nor a named test uses."""
    used = _rights.used(audit)
    return sorted(
        f"{user.rpartition(':')[2]}: {verb} {resource}{f'.{group}' if group else ''}"
        for user, rights in _rights.granted(bed).items()
        for verb, group, resource in rights - used.get(user, set())
        # A list is the watch of a server that does not stream lists, such as Kubernetes 1.30; make e2e NAME=version-skew runs one.
        if not (verb == "list" and ("watch", group, resource) in used.get(user, set()))
        and f"{verb} {resource}" not in ELSEWHERE
    )


def check(told: dict[str, Any]) -> None:
    """Raise unless everything came as it should."""
    holds = {
        "p1 and p2 are on two nodes": told["two_nodes"],
        "p3 is where p2 was": told["third_on_second_node"],
        "no container of Lamina was restarted": told["restarts"] == 0,
        "every right is used": told["rights_unused"] == 0,
        "upgrade, rollback and removal disturbed no pod": told["pods_undisturbed"],
        "nothing is left": not told["left_after_uninstall"],
    }
    if not all(holds.values()):
        raise AssertionError(f"{[what for what, held in holds.items() if not held]}\n{told}")
