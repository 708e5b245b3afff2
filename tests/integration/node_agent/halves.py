"""
An agent beside a testbed, in its two halves: real processes, a real pipe, a real API server, and the rights of deploy/.

The reader's runtime is a script (`scripted_reader`), so that it can be told what happens; everything else is as it ships.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import Testbed
from testbed.errors import RefusedError
from testbed.processes import Program
from tests.integration.custom_resources.people import (
    AGENT,
    AGENTS,
    DEPLOY,
    IMAGE_LAYERS,
    NODE_LAYERS,
    forget,
    wait_until,
)

ROOT: Final = Path(__file__).resolve().parents[3]
PODS: Final = f"/api/v1/namespaces/{AGENTS}/pods"


def install(bed: Testbed) -> Testbed:
    """Create what an installation creates for agents."""
    for part in ("crds", "namespaces.yaml", "rbac/node-agent.yaml", "policy"):
        bed.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(DEPLOY / part))
    for kind in ("nodelayers", "imagelayers"):
        bed.kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{kind}.lamina.dev")
    wait_until(lambda: all("items" in bed.api("GET", path) for path in (NODE_LAYERS, IMAGE_LAYERS)))
    return bed


class Half(Program):
    """One process of an agent."""

    def __init__(self, name: str, words: list[object], folder: Path, limits: dict[int, int] | None = None) -> None:
        """Prepare; *limits* are of the process's resources."""
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *map(str, words)]
        if limits:
            command = [sys.executable, "-c", LIMITED, json.dumps(limits), *command]
        super().__init__(name, command, folder / f"{name}.log", ready=lambda: True, environment=environment)

    def end(self, within: float = 10.0) -> tuple[int, float]:
        """Ask it to stop; its exit code and the seconds it took."""
        process, began = self._known(), time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        return process.wait(within), time.monotonic() - began

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


LIMITED: Final = """
import json, os, resource, sys
for limit, value in json.loads(sys.argv[1]).items():
    resource.setrlimit(int(limit), (value, value))
os.execv(sys.argv[2], sys.argv[2:])
"""
NO_FILES: Final = {resource.RLIMIT_FSIZE: 0}
"""No file can be written to, however empty the disk; pipes are no files."""


class Agent:
    """Both halves of the agent of one node."""

    def __init__(self, bed: Testbed, folder: Path, node: str) -> None:
        self.bed, self.folder, self.node = bed, folder, node
        self.pipe, self.script, self.token = folder / "pipe", folder / "script.json", folder / "token"
        self.access = folder / "kubeconfig"
        self.hold(images=0)
        self.join()
        self.write_access(bed.url)
        self.reader = self.a_reader()
        self.publisher = self.a_publisher()

    # -- the node ----------------------------------------------------------------------------------------------------

    def join(self) -> None:
        """Let there be the node, and on it a pod whose token the publisher has."""
        self.bed.add_node(self.node)
        spec = {"nodeName": self.node, "serviceAccountName": AGENT, "containers": [{"name": "c", "image": "agent"}]}
        self.bed.api("POST", PODS, {"metadata": {"name": self.node}, "spec": spec})
        self.new_token()

    def leave(self) -> None:
        """Let them be gone."""
        forget(self.bed, f"{PODS}/{self.node}?gracePeriodSeconds=0")
        forget(self.bed, f"/api/v1/nodes/{self.node}")

    def new_token(self) -> None:
        """Replace the token as a kubelet does: at once."""
        new = self.token.with_name("token.new")
        new.write_text(self.bed.service_account_token(AGENTS, AGENT, pod=self.node), encoding="utf-8")
        new.rename(self.token)

    def write_access(self, server: str) -> None:
        """Say where the API server is."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(self.bed.ca_file)}}],
            "users": [{"name": "u", "user": {"tokenFile": str(self.token)}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        self.access.write_text(yaml.safe_dump(document), encoding="utf-8")

    # -- the halves --------------------------------------------------------------------------------------------------

    def a_reader(self, **more: Any) -> Half:
        return Half(
            "reader",
            ["-m", "tests.integration.node_agent.scripted_reader", self.pipe, self.script],
            self.folder,
            **more,
        )

    def a_publisher(self, *words: str, **more: Any) -> Half:
        command = ["-m", "lamina.cli.main", "node-agent", "--role", "publisher", "--pipe", self.pipe, "-v", "2"]
        return Half("publisher", [*command, "--kubeconfig", self.access, *words], self.folder, **more)

    def hold(self, **scene: Any) -> None:
        """What the runtime holds from now on; see `scripted_reader`."""
        new = self.script.with_name("script.new")
        new.write_text(json.dumps(scene), encoding="utf-8")
        new.rename(self.script)

    def start(self) -> None:
        """Start both."""
        self.publisher.start()
        self.reader.start()

    # -- what the API server has ---------------------------------------------------------------------------------------

    def stored(self) -> dict[str, Any]:
        """The NodeLayers; empty while there is none."""
        try:
            return self.bed.api("GET", f"{NODE_LAYERS}/{self.node}")
        except RefusedError:
            return {}

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.stored().get("status", {})
        return found

    def count(self) -> int:
        """Images it lists; -1 while it lists none, not even none."""
        return len(self.status().get("images", [None])) if self.status() else -1

    def condition(self, name: str) -> tuple[str, str, str]:
        for one in self.status().get("conditions", []):
            if one["type"] == name:
                return one["status"], one["reason"], one["message"]
        return "", "", ""


@contextmanager
def an_agent(bed: Testbed, folder: Path, node: str) -> Iterator[Agent]:
    """An agent that has not started yet; everything is taken away at the end."""
    agent = Agent(bed, folder, node)
    try:
        yield agent
    finally:
        agent.reader.kill()
        agent.publisher.kill()
        agent.leave()
        forget(bed, f"{NODE_LAYERS}/{node}")
        # A server that was restarted has to warm up before it lists anything.
        wait_until(lambda: "items" in bed.api("GET", IMAGE_LAYERS))
        for one in bed.api("GET", IMAGE_LAYERS)["items"]:
            forget(bed, f"{IMAGE_LAYERS}/{one['metadata']['name']}")
