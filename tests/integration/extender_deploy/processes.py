"""
What a pod of deploy/extender runs, as processes beside a testbed: the stock scheduler, and extenders.

Both run as the accounts of deploy/extender, with its roles, and from its configuration; changed is only what a process
outside of a pod cannot have: where certificates lie, which ports are free, how the API server is reached.
"""

import http.client
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import Testbed, ports
from testbed.processes import Program
from tests.integration.scheduler.live import DEPLOY, NAMESPACE, kubeconfig

SCHEDULER_ACCOUNT: Final = "lamina-kube-scheduler"
EXTENDER_ACCOUNT: Final = "lamina-extender"
PAGE_WITHIN: Final = 60.0


def install(bed: Testbed) -> None:
    """Create what both need: namespaces, custom resources, accounts and roles."""
    for what in ("crds", "namespaces.yaml", "extender/rbac.yaml"):
        bed.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(DEPLOY / what))
    bed.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/nodelayers.lamina.dev")
    bed.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/imagelayers.lamina.dev")


def documents(path: Path) -> list[dict[str, Any]]:
    """All objects of a manifest."""
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def configuration(manifest: str, key: str = "scheduler.yaml") -> str:
    """What a ConfigMap of a manifest in deploy/extender holds under *key*."""
    maps = [one for one in documents(DEPLOY / "extender" / manifest) if one["kind"] == "ConfigMap"]
    texts: list[str] = [one["data"][key] for one in maps if key in one["data"]]
    return texts[0]


def account_access(bed: Testbed, account: str) -> Path:
    """A kubeconfig of one of the accounts."""
    token = {"token": bed.service_account_token(NAMESPACE, account)}
    return kubeconfig(bed, bed.folder / f"{account}.kubeconfig", token)


class StockScheduler(Program):
    """One kube-scheduler from a configuration as it is printed; *text* gets only the way to the API server."""

    def __init__(self, bed: Testbed, text: str, name: str = "my-scheduler", flags: Sequence[str] = ()) -> None:
        """Prepare."""
        access = account_access(bed, SCHEDULER_ACCOUNT)
        path = bed.folder / f"{name}.yaml"
        path.write_text(f"{text}clientConnection:\n  kubeconfig: {access}\n", encoding="utf-8")
        port = ports.free()
        command = [
            bed.site.program_path("kube-scheduler"),
            f"--config={path}",
            f"--bind-address={ports.LOOPBACK}",
            f"--secure-port={port}",
            f"--authentication-kubeconfig={access}",
            f"--authorization-kubeconfig={access}",
            f"--cert-dir={bed.folder}",
            "-v=5",
            *flags,
        ]
        log = bed.site.logs / f"{name}.log"
        log.unlink(missing_ok=True)
        super().__init__(name, command, log, ready=lambda: True, environment=bed.site.environment(), port=port)

    def __enter__(self) -> "StockScheduler":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


class Extender(Program):
    """One ``lamina extender`` that listens on loopback, with its pages there over plain HTTP."""

    def __init__(
        self,
        bed: Testbed,
        words: Sequence[str],
        name: str = "extender",
        *,
        port: int = 0,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare; *words* come after ``lamina extender``. At *port* it has its pages: there it is looked at."""
        self.port = port
        access = account_access(bed, EXTENDER_ACCOUNT)
        command = [sys.executable, "-m", "lamina.cli.main", "extender", "--kubeconfig", access, *words]
        log = bed.site.logs / f"{name}.log"
        log.unlink(missing_ok=True)
        environment = {**bed.site.environment(), **(variables or {})}
        super().__init__(name, command, log, ready=self.is_ready, environment=environment, port=port or None)

    def __enter__(self) -> "Extender":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def is_ready(self) -> bool:
        """Whether it has seen everything."""
        try:
            return self.page("/readyz")[0] == 200
        except OSError:
            return False

    def page(self, path: str) -> tuple[int, str]:
        """Status and text of one of its pages."""
        connection = http.client.HTTPConnection(ports.LOOPBACK, self.port, timeout=PAGE_WITHIN)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def metric(self, start: str) -> float:
        """The sum of all series whose name and labels begin with *start*."""
        lines = [line for line in self.page("/metrics")[1].splitlines() if line.startswith(start)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def said(self) -> list[dict[str, Any]]:
        """Its log so far, if it is JSON."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]
