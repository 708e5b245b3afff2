"""
The extender of the chart on real kubelets: the stock kube-scheduler as a container, with each agent alone and in pairs.

helm changes the release from one choice of agents to the next. Each time a pod comes for `my-scheduler`, and the extender's
own metrics say which verbs kube-scheduler asked.
"""

import http.client
import re
import time
from typing import Any, Final

from testbed import Testbed, building, made, ports
from testbed import parts as catalog
from tests.e2e._helm import CHART, NAMESPACE, RELEASE, Helm, InstalledCluster, push_lamina
from tests.integration.scheduler.live import until

NAME = "install-extender"
SUMMARY = (
    "The chart's extender beside a containerised kube-scheduler: every agent alone, and pairs in one and two processes."
)
NEEDS = ("skopeo",)

NODES: Final = ("n1", "n2")
ONE: Final = "one-process"
EACH: Final = "process-per-agent"
CHOICES: Final = (
    (("safe",), ONE),
    (("pigeon",), ONE),
    (("congestion",), ONE),
    (("foo",), ONE),
    (("layers",), ONE),
    (("safe", "congestion"), ONE),
    (("safe", "layers"), EACH),
)
ANSWERED: Final = re.compile(r'^lamina_extender_answers_total{result="answered",verb="([^"]+)"} ([\d.]+)', re.MULTILINE)
PROGRAM: Final = "usr/local/bin/kube-scheduler"
# A new pod waits until the lease of the old one is over.
READY_WITHIN: Final = 180.0


class Story:
    """One installation after the other."""

    def __init__(self, cluster: InstalledCluster, helm: Helm, images: tuple[str, str]) -> None:
        """Tell it of a cluster; *images* are Lamina's repository and kube-scheduler's image."""
        self.cluster, self.helm, self.bed = cluster, helm, cluster.bed
        self.lamina, self.kube_scheduler = images
        self.small = cluster.push("small:1")

    def played(self, agents: tuple[str, ...], mode: str) -> dict[str, Any]:
        """Install these agents, let a pod come, and return which verbs were asked."""
        name = f"{'-'.join(agents)}-{mode}"
        # The processes share the machine's network, so each choice has ports of its own.
        first, second = ports.free(), ports.free()
        extender = {
            "enabled": True,
            "agents": list(agents),
            "mode": mode,
            "port": first,
            "pages": second,
            "replicas": 1,
            "hostNetwork": True,
            "kubeScheduler": {"image": self.kube_scheduler, "port": ports.free()},
        }
        values = self.helm.values(
            name, self.lamina, "e2e", ports.free(), scheduler={"enabled": False}, extender=extender
        )
        self.helm("upgrade", "--install", RELEASE, str(CHART), "--create-namespace", f"--values={values}")
        self.bed.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/my-scheduler", "--timeout=110s")
        until(lambda: len(self.pods()) == 1, READY_WITHIN, "the pod of the choice before is gone")
        pod = f"pod-{name}"
        self.cluster.post(pod, self.small, "default", schedulerName="my-scheduler", requests={"cpu": "10m"})
        until(lambda: bool(self.node(pod)), READY_WITHIN, f"{pod} is bound")
        self.cluster.wait_running(pod)
        asked: set[str] = set()
        for number in range(len(agents) if mode == EACH else 1):
            asked |= answered(second + number)
        self.cluster.remove(pod)
        print(f"  {' + '.join(agents)}, {mode}: {self.restarts()} restarts, asked {', '.join(sorted(asked))}")
        return {"asked": asked, "restarts": self.restarts()}

    def node(self, pod: str) -> str:
        """Return the node of a pod, or nothing."""
        return str(self.bed.api("GET", f"/api/v1/namespaces/default/pods/{pod}")["spec"].get("nodeName", ""))

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods of the scheduler with its extenders."""
        found: list[dict[str, Any]] = self.bed.api("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return found

    def restarts(self) -> int:
        """Return how often containers of these pods have been restarted."""
        statuses = [
            one
            for pod in self.pods()
            for kind in ("c", "initC")
            for one in pod["status"].get(f"{kind}ontainerStatuses", ())
        ]
        return sum(one["restartCount"] for one in statuses)


def answered(port: int) -> set[str]:
    """Return the verbs that an extender has answered, by its metrics."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return {verb for verb, count in ANSWERED.findall(text) if float(count) > 0}


def main() -> dict[str, Any]:
    """Play every choice."""
    began = time.monotonic()
    building.build([catalog.find("helm"), catalog.find("kube-scheduler")])
    with (
        Testbed.start(parts=["kube-scheduler", "kube-controller-manager", "registry"]) as bed,
        InstalledCluster(bed, NODES) as cluster,
    ):
        cluster.without_the_road()
        program = bed.site.program_path("kube-scheduler").read_bytes()
        image = made.push(bed.registry, "kube-scheduler:e2e", made.image([made.layer({PROGRAM: program}, "zstd")]))
        story = Story(cluster, Helm(bed), (push_lamina(bed), image))
        found = {f"{' + '.join(agents)} ({mode})": story.played(agents, mode) for agents, mode in CHOICES}
    told = {
        "agents": {name: bool(one["asked"]) for name, one in found.items()},
        "verbs": {name: sorted(one["asked"]) for name, one in found.items()},
        "restarts": sum(one["restarts"] for one in found.values()),
        "seconds": round(time.monotonic() - began, 1),
    }
    if not all(told["agents"].values()):
        raise AssertionError(f"{told}")
    return told
