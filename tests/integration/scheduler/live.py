"""
A scheduler process beside a testbed, for tests and stories that treat it badly.

It runs as the service account of deploy/, with the roles of deploy/, so that what it needs and may not do shows. It has
a log of its own, which it goes on writing over a restart, and pages that can be asked.
"""

import http.client
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import Testbed, ports
from testbed.processes import Program

ROOT: Final = Path(__file__).resolve().parents[3]
DEPLOY: Final = ROOT / "deploy"
NAMESPACE: Final = "lamina-system"
ACCOUNT: Final = "lamina-scheduler"
PAGE_WITHIN: Final = 60.0


def install(bed: Testbed) -> None:
    """Create what an installation creates: namespaces, custom resources, accounts and roles, without the optional ones."""
    for what in ("namespaces.yaml", "crds", "rbac"):
        bed.kubectl("apply", "-f", str(DEPLOY / what))
    bed.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


def configuration(**changes: Any) -> dict[str, Any]:
    """The configuration of deploy/ as data, nobody elected unless wanted; *changes* replace its parts."""
    manifest = yaml.safe_load((DEPLOY / "scheduler" / "configuration.yaml").read_text(encoding="utf-8"))
    found: dict[str, Any] = yaml.safe_load(manifest["data"]["scheduler.yaml"])
    # The default is kube-scheduler's 50 requests a second; what is tested here are faults, not that brake.
    quick = {"clientConnection": {"qps": 5000, "burst": 5000}, "leaderElection": {"leaderElect": False}}
    return {**found, **quick, **changes}


def kubeconfig(
    bed: Testbed, path: Path, user: Mapping[str, Any], *, server: str = "", ca_file: Path | None = None
) -> Path:
    """Write a kubeconfig with *user* as it stands."""
    cluster = {"server": server or bed.url, "certificate-authority": str(ca_file or bed.ca_file)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": cluster}],
        "users": [{"name": "lamina", "user": dict(user)}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "lamina"}}],
        "current-context": "testbed",
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


class Lamina(Program):
    """One ``lamina scheduler``."""

    def __init__(
        self,
        bed: Testbed,
        name: str = "lamina",
        *,
        config: Mapping[str, Any] | None = None,
        access: Path | None = None,
        words: Sequence[str] = (),
    ) -> None:
        """Prepare; *access* is a kubeconfig, by default one with a token of the account in deploy/."""
        self.bed = bed
        self.port = ports.free()
        if access is None:
            token = {"token": bed.service_account_token(NAMESPACE, ACCOUNT)}
            access = kubeconfig(bed, bed.folder / f"{name}.kubeconfig", token)
        path = bed.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(dict(config or configuration())), encoding="utf-8")
        command = [sys.executable, "-m", "lamina.cli.main", "scheduler", "--config", path, "--kubeconfig", access]
        # Names in tests are made up; nobody has to be asked what they mean.
        asks = () if "--registries" in words else ("--no-registries",)
        command += ["--listen", f"127.0.0.1:{self.port}", "--log-format", "json", "-v", "2", *asks, *words]
        log = bed.site.logs / f"{name}.log"
        # Another test may have had one of the same name.
        log.unlink(missing_ok=True)
        super().__init__(name, command, log, ready=self.is_ready, environment=bed.site.environment())

    def __enter__(self) -> "Lamina":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def end(self, within: float) -> tuple[int, float]:
        """Ask it to stop; return its exit code and the seconds it took. Raises if it takes longer than *within*."""
        process = self._known()
        began = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        code = process.wait(within)
        return code, time.monotonic() - began

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    # ------------------------------------------------------------------------------------------------------- asking it

    def page(self, path: str) -> tuple[int, str]:
        """Status and text of one of its pages."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PAGE_WITHIN)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def is_ready(self) -> bool:
        """Whether it has seen everything."""
        try:
            return self.page("/readyz")[0] == 200
        except OSError:
            return False

    def differences(self) -> list[dict[str, str]]:
        """On what its cache and the API server do not agree."""
        status, text = self.page("/debug/cache")
        if status != 200:
            raise AssertionError(f"/debug/cache: {status} {text}")
        found: list[dict[str, str]] = json.loads(text)["differences"]
        return found

    def metric(self, start: str) -> float:
        """The sum of all series whose name and labels begin with *start*."""
        lines = [line for line in self.page("/metrics")[1].splitlines() if line.startswith(start)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def said(self) -> list[dict[str, Any]]:
        """Its log so far; a last line that is not whole is left out."""
        entries = []
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:
                entries.append({"ts": 0.0, "level": "raw", "msg": line})
        return entries

    def bindings(self) -> list[tuple[float, str]]:
        """When it has bound which pod, by its own account; seconds since 1970."""
        return [(one["ts"], one["pod"]) for one in self.said() if one["msg"] == "Successfully bound pod to node"]

    def complaints(self) -> list[str]:
        """Whatever it said that looks like a mistake of its own: traces, and lines that are no log."""
        return [str(one)[:500] for one in self.said() if one["level"] in {"raw", "error"} or "trace" in one]


def until(holds: Callable[[], bool], within: float, what: str) -> float:
    """Wait until *holds*; return the seconds it took. Raises when it takes too long."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > within:
            raise AssertionError(f"not within {within:.0f} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - began
