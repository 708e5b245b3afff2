"""
A cluster in which nothing is pretended: kubelets, runtimes, a registry behind a slow road, an agent for each node.

    driver --push--> registry <--slow road-- containerd <-- kubelet            (each node)
                        ^                        ^
                        |                        +-- agent --> NodeLayers      (token of a pod on that node)
                    scheduler, about what nobody has pulled

The road is slow because pulls over the loopback interface take no time worth saving, and time is what the scheduler
weighs. Needs root.
"""

import sys
from collections.abc import Callable
from typing import Any, Final, Self

import yaml

from testbed import RefusedError, Testbed, access_log, containerd, made
from testbed.access_log import Asked
from testbed.made import MadeImage, MadeLayer
from testbed.processes import Program
from testbed.real_nodes import RealNode
from testbed.slow_proxy import SlowProxy
from tests.integration.scheduler.live import DEPLOY, Lamina, configuration, install, kubeconfig, until

AGENTS: Final = "lamina-agents"
AGENT: Final = "lamina-agent"
CUSTOM: Final = "/apis/lamina.dev/v1alpha1"
PODS: Final = "/api/v1/namespaces/default/pods"
MB: Final = 1_000_000
ROAD: Final = 8 * MB
"""Bytes a second."""
RUNS_WITHIN: Final = 60.0
RUNTIME: Final = "containerd"
"""How a runtime begins to introduce itself to a registry."""


class Agent(Program):
    """One ``lamina node-agent`` with the token of a pod that runs on its node."""

    def __init__(self, bed: Testbed, node: RealNode, *words: str) -> None:
        """Prepare; the pod has to be there."""
        self._bed, self._node = bed, node.name
        name = f"agent-{node.name}"
        token = {"token": bed.service_account_token(AGENTS, AGENT, pod=name)}
        access = kubeconfig(bed, bed.folder / f"{name}.kubeconfig", token)
        command = [sys.executable, "-m", "lamina.cli.main", "node-agent", "--runtime", "containerd"]
        command += ["--socket", str(node.socket), "--kubeconfig", str(access), "--node", node.name, *words]
        log = bed.site.logs / f"{name}.log"
        super().__init__(name, command, log, ready=self._has_reported, environment=bed.site.environment())

    def _has_reported(self) -> bool:
        return bool(reported(self._bed).get(self._node))


class RealCluster:
    """Nodes, a registry and a road to it; `with` starts and ends everything."""

    def __init__(self, bed: Testbed, names: tuple[str, ...]) -> None:
        """Prepare so many nodes on a testbed."""
        self.bed, self._names = bed, names
        self.nodes: dict[str, RealNode] = {}
        self.road = SlowProxy(bed.registry, ROAD)
        self._layers: dict[str, MadeLayer] = {}

    def install(self) -> None:
        """Create what the agents and the scheduler of `start_agents` and `scheduler` need."""
        install(self.bed)
        self.bed.kubectl("apply", "-f", str(DEPLOY / "policy"))
        # A server that has just learned of a resource asks for patience at first.
        until(lambda: serves(self.bed, "nodelayers") and serves(self.bed, "imagelayers"), 30.0, "both kinds are served")

    def __enter__(self) -> Self:
        self.install()
        self.road.__enter__()
        try:
            for name in self._names:
                node = self.nodes[name] = self.bed.add_real_node(name)
                containerd.allow(node.folder, self.bed.registry, self.road.host)
        except BaseException:
            self.road.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.road.__exit__(None, None, None)

    def start_agents(self, make: Callable[[Testbed, RealNode], Program] = Agent) -> None:
        """Let a pod of the agents' account run on each node, and an agent with its token beside it."""
        image = self.push("system/agent:1", self.layer("agent", MB))
        for node in self.nodes.values():
            self.run_on(node.name, f"agent-{node.name}", image, AGENTS, serviceAccountName=AGENT)
        for node in self.nodes.values():
            program = make(self.bed, node)
            self.bed.parts[program.name] = program
            program.start()

    def scheduler(self, **changes: Any) -> Lamina:
        """A scheduler that may ask the registry; not started."""
        rules = self.bed.folder / "registries.yaml"
        registry = {"host": self.bed.registry, "plainHttp": True, "private": True}
        rules.write_text(yaml.safe_dump({"registries": [registry]}), encoding="utf-8")
        config = configuration(**changes)
        return Lamina(self.bed, config=config, words=("--seed", "0", "--registries", str(rules)))

    # ---------------------------------------------------------------------------------------------------------- images

    def layer(self, name: str, size: int) -> MadeLayer:
        """A layer of *size* bytes that do not compress; the same name is the same layer."""
        if name not in self._layers:
            self._layers[name] = made.layer({f"data/{name}": made.noise(len(self._layers), size)})
        return self._layers[name]

    def image(self, *layers: MadeLayer) -> MadeImage:
        """An image of these layers that idles when it is run; the program is a small layer at its bottom."""
        program = self.bed.site.program_path(made.PROGRAM).read_bytes()
        if made.PROGRAM not in self._layers:
            self._layers[made.PROGRAM] = made.layer({made.PROGRAM: program})
        return made.image([self._layers[made.PROGRAM], *layers])

    def push(self, name: str, *layers: MadeLayer) -> str:
        """Push an image that idles; the answer is its reference."""
        return made.push(self.bed.registry, name, self.image(*layers))

    def fetched(self, since: int) -> list[str]:
        """Which blobs runtimes have downloaded, since so many requests."""
        return access_log.blobs(self.requests(RUNTIME)[since:])

    def requests(self, client: str = "") -> list[Asked]:
        """What the registry was asked for."""
        return access_log.read(self.bed.parts["registry"].log, client)

    # ------------------------------------------------------------------------------------------------------------ pods

    def make_pod(self, name: str, image: str, requests: dict[str, str]) -> None:
        """Create a pod for the scheduler."""
        self.post(name, image, "default", schedulerName="lamina", requests=requests)

    def run_on(self, node: str, name: str, image: str, namespace: str = "default", **spec: Any) -> None:
        """Run a pod on a node without asking a scheduler, as the pods of a DaemonSet do not wait for ours."""
        self.post(name, image, namespace, nodeName=node, **spec)
        self.wait_running(name, namespace)

    def wait_bound(self, name: str) -> str:
        """Wait until a pod has a node; the answer is which."""
        until(lambda: bool(self._pod(name)["spec"].get("nodeName")), RUNS_WITHIN, f"{name} is bound")
        node = self._pod(name)["spec"]["nodeName"]
        assert isinstance(node, str)
        return node

    def wait_running(self, name: str, namespace: str = "default") -> None:
        """Wait until a pod's container runs."""
        until(lambda: self._pod(name, namespace)["status"].get("phase") == "Running", RUNS_WITHIN, f"{name} is running")

    def remove(self, *names: str) -> None:
        """Delete pods and wait until their kubelets have ended them."""
        for name in names:
            self.bed.api("DELETE", f"{PODS}/{name}")
        until(lambda: not {*names} & {*self._pods()}, RUNS_WITHIN, f"{', '.join(names)} are gone")

    def post(self, name: str, image: str, namespace: str, requests: dict[str, str] | None = None, **spec: Any) -> None:
        """Create a pod of one container."""
        container = {"name": "main", "image": image, "resources": {"requests": requests or {}}}
        fixed = {"hostNetwork": True, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1}
        self.bed.api(
            "POST",
            f"/api/v1/namespaces/{namespace}/pods",
            {"metadata": {"name": name}, "spec": {**fixed, "containers": [container], **spec}},
        )

    def _pod(self, name: str, namespace: str = "default") -> dict[str, Any]:
        return self.bed.api("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")

    def _pods(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.bed.api("GET", PODS)["items"]]


def reported(bed: Testbed) -> dict[str, set[str]]:
    """Which images each node's agent says it holds, by digest; nodes without a report are left out."""
    objects = bed.api("GET", f"{CUSTOM}/nodelayers")["items"]
    return {
        one["metadata"]["name"]: {image["digest"] for image in one["status"].get("images", ())}
        for one in objects
        if "status" in one
    }


def serves(bed: Testbed, kind: str) -> bool:
    """Whether the API server lists objects of a kind."""
    try:
        bed.api("GET", f"{CUSTOM}/{kind}")
    except RefusedError:
        return False
    return True


def wait_reported(bed: Testbed, node: str, digest: str, within: float = 30.0) -> float:
    """Wait until a node's agent has told of an image; the answer is how many seconds that took."""
    return until(lambda: digest in reported(bed).get(node, ()), within, f"{node} reports {digest}")
