"""
Extender processes beside a testbed, and stock kube-schedulers that ask them.

An extender runs as the service account of deploy/extender/, with the rights of deploy/extender/, so that what it needs and
may not do shows. A scheduler gets what `lamina extender --print-config` prints, with nobody elected and the address of the
test; what a test changes besides, it says.
"""

import http.client
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import yaml

from testbed import Testbed, ports
from testbed.processes import Program
from tests.integration.scheduler.live import DEPLOY, kubeconfig
from tests.integration.scheduler.live import install as install_lamina

NAMESPACE: Final = "lamina-system"
ACCOUNT: Final = "lamina-extender"
COMMAND: Final = ("-m", "lamina.cli.main", "extender")
ANSWER_WITHIN: Final = 60.0
PODS: Final = "/api/v1/namespaces/default/pods"


def install(bed: Testbed) -> None:
    """Create what an installation creates: namespaces, custom resources, accounts and roles."""
    install_lamina(bed)
    bed.kubectl("apply", "-f", str(DEPLOY / "extender" / "rbac.yaml"))


def printed(agents: str, *words: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The scheduler's configuration as `--print-config` prints it, with nobody elected."""
    command = [sys.executable, *COMMAND, "--agents", agents, *words, "--print-config"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})}
    )
    if done.returncode:
        raise AssertionError(f"--print-config: {done.stderr}")
    config: dict[str, Any] = yaml.safe_load(done.stdout)
    return {**config, "leaderElection": {"leaderElect": False}}


def changed(config: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """The same configuration with something else said about each extender in it."""
    return {**config, "extenders": [{**one, **changes} for one in config["extenders"]]}


class Extender(Program):
    """One ``lamina extender``."""

    def __init__(
        self,
        bed: Testbed,
        agents: str,
        name: str = "extender",
        *,
        words: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        scheduler: str = "my-scheduler",
        tls: ssl.SSLContext | None = None,
        python: str | Path = sys.executable,
        account: tuple[str, str] = (NAMESPACE, ACCOUNT),
    ) -> None:
        """
        Prepare; *scheduler* is the one whose pods it looks after, *tls* how to ask it where it serves HTTPS.

        *python* has Lamina and what else is installed; *account* is a service account, with its namespace first.
        """
        self.bed = bed
        self.agents = agents
        self.scheduler = scheduler
        self.port = ports.free()
        self._words = ("--listen", f"127.0.0.1:{self.port}", "--scheduler-name", scheduler, *words)
        self._environment = {**bed.site.environment(), **(environment or {})}
        self._tls = tls
        token = {"token": bed.service_account_token(*account)}
        access = kubeconfig(bed, bed.folder / f"{name}.kubeconfig", token)
        command: list[str | Path] = [
            python,
            *COMMAND,
            "--agents",
            agents,
            *self._words,
            "--kubeconfig",
            access,
            "--no-registries",
        ]
        log = bed.site.logs / f"{name}.log"
        # Another test may have had one of the same name.
        log.unlink(missing_ok=True)
        super().__init__(
            name,
            [*command, "--log-format", "json", "-v", "2"],
            log,
            ready=self.is_ready,
            environment=self._environment,
            port=self.port,
        )

    def __enter__(self) -> "Extender":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def config(self, **changes: Any) -> dict[str, Any]:
        """What a scheduler needs to ask it; *changes* are said about each of its entries."""
        return changed(printed(self.agents, *self._words, environment=self._environment), **changes)

    # ------------------------------------------------------------------------------------------------------- asking it

    def send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of an answer."""
        connection: http.client.HTTPConnection
        if self._tls is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_WITHIN)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=ANSWER_WITHIN, context=self._tls)
        try:
            connection.request(method, path, body=body, headers={"Content-Type": "application/json"} if body else {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def ask(self, verb: str, body: Mapping[str, Any]) -> Any:
        """Ask as kube-scheduler does, and return what the answer says; anything but 200 raises."""
        status, answer = self.send("POST", f"/scheduler/{verb}", json.dumps(body).encode())
        if status != 200:
            raise AssertionError(f"{verb}: {status} {answer[:500]!r}")
        return json.loads(answer)

    def levels(self, verb: str, pod: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
        """The level of each node; where answers are sparse, above the lowest."""
        answer = self.ask(f"priorities/{verb}", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})
        return dict.fromkeys(names, 0) | {one["Host"]: one["Score"] for one in answer}

    def refused(self, verb: str, pod: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
        """The nodes that are refused, and why."""
        answer = self.ask(f"predicates/{verb}", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})
        return cast("dict[str, str]", {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]})

    def is_ready(self) -> bool:
        """Whether it has seen everything."""
        try:
            return self.send("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def metric(self, start: str) -> float:
        """The sum of all series whose name and labels begin with *start*."""
        text = self.send("GET", "/metrics")[1].decode()
        lines = [line for line in text.splitlines() if line.startswith(start)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def bound(self, *, answered: bool) -> int:
        """Pods that were bound with its answer, or without, by its own account."""
        return int(self.metric(f'lamina_extender_pods_bound_total{{answered="{str(answered).lower()}"}}'))

    def said(self) -> list[dict[str, Any]]:
        """Its log so far; a last line that is not whole is left out."""
        entries = []
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:
                entries.append({"ts": 0.0, "level": "raw", "msg": line})
        return entries

    def complaints(self) -> list[str]:
        """Whatever it said that looks like a mistake of its own: traces, and lines that are no log."""
        return [str(one)[:1500] for one in self.said() if one["level"] in {"raw", "error"} or "trace" in one]


class Scheduler:
    """A stock kube-scheduler of a testbed, for as long as a `with` block lasts."""

    def __init__(self, bed: Testbed, name: str, config: Mapping[str, Any]) -> None:
        """Prepare; *name* tells it from others beside it, and names its log."""
        self._bed, self._name, self._config = bed, name, config

    def __enter__(self) -> Program:
        log: Path = self._bed.site.logs / f"{self._name}.log"
        log.unlink(missing_ok=True)
        return self._bed.start_part("kube-scheduler", name=self._name, config=self._config)

    def __exit__(self, *_: object) -> None:
        self._bed.parts.pop(self._name).kill()


def empty(bed: Testbed) -> None:
    """Take away pods and nodes, and what was reported about layers."""
    bed.api("DELETE", f"{PODS}?gracePeriodSeconds=0")
    bed.api("DELETE", "/api/v1/nodes")
    for kind in ("nodelayers", "imagelayers"):
        bed.api("DELETE", f"/apis/lamina.dev/v1alpha1/{kind}")
