"""
A Prometheus server and a node-exporter without a control plane: Debian's programs, on the loopback interface.

    with Prometheus([Target("127.0.0.1:9100", {"node": "n1"})]) as server:
        server.url

They are not built but found on the PATH; if one is missing, `MissingError` says how to install it. *blocks* is a
history that exists from the start: text in the OpenMetrics format, with times.
"""

import base64
import http.client
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import ports
from testbed.errors import MissingError, TestbedError
from testbed.launching import PROBE_WITHIN
from testbed.processes import Program
from testbed.site import Command
from testbed.standalone import Standalone

USER: Final = "reader"
PASSWORD: Final = "a password of the testbed"  # noqa: S105 - protects nothing
# bcrypt with the lowest cost; `htpasswd -nbBC 4` creates such a hash.
HASHED: Final = "$2b$04$rOA.lnjxMAdKmnBNwB0G4OuhqxC7QQr5U8iWdwJGVklqUPMOaG6lq"
PACKAGES: Final = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-node-exporter": "prometheus-node-exporter",
}


@dataclass(frozen=True, slots=True)
class Target:
    """An address to scrape, and the labels of its metrics; ``__metrics_path__`` sets the path."""

    address: str
    labels: Mapping[str, str] = field(default_factory=dict)


def program(name: str) -> str:
    """Return the path of a Debian program. Raises MissingError with the package to install."""
    found = shutil.which(name)
    if found is None:
        raise MissingError(f"{name} is not installed; try `apt-get install {PACKAGES[name]}`")
    return found


class Prometheus(Standalone):
    """A Prometheus server that scrapes every second."""

    def __init__(
        self,
        targets: Sequence[Target] = (),
        *,
        blocks: str = "",
        password: bool = False,
        folder: Path | None = None,
    ) -> None:
        """Scrape *targets*, start with the history *blocks*, and require *password* if it is set."""
        super().__init__(folder)
        self._targets = targets
        self._blocks = blocks
        self._password = password
        self.port = 0

    def __enter__(self) -> "Prometheus":
        for name in ("prometheus", *(("promtool",) if self._blocks else ())):
            program(name)
        return super().__enter__()

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"http://{ports.LOOPBACK}:{self.port}"

    def prepare(self) -> Program:
        """Return a server on a free port."""
        self.port = ports.free()
        data = self.site.folder / "data"
        if self._blocks and not data.exists():
            self._fill(data)
        words: Command = [
            program("prometheus"),
            f"--config.file={self._written('prometheus.yaml', self._config())}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address={ports.LOOPBACK}:{self.port}",
            "--log.level=warn",
        ]
        if self._password:
            users = {"basic_auth_users": {USER: HASHED}}
            words = [*words, f"--web.config.file={self._written('web.yaml', users)}"]
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode() if self._password else ""
        headers = {"Authorization": f"Basic {login}"} if login else {}
        return self.site.program("prometheus", words, ready(self.port, "/-/ready", headers), self.port)

    def _config(self) -> dict[str, Any]:
        # One second is the shortest interval at which Prometheus scrapes reliably.
        groups = [{"targets": [one.address], "labels": dict(one.labels)} for one in self._targets]
        job = {"job_name": "node", "static_configs": groups, "scrape_timeout": "1s"}
        return {"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}

    def _written(self, name: str, document: Mapping[str, Any]) -> Path:
        path = self.site.folder / name
        path.write_text(yaml.safe_dump(dict(document)), encoding="utf-8")
        return path

    def _fill(self, data: Path) -> None:
        text = self.site.folder / "history.txt"
        text.write_text(self._blocks, encoding="utf-8")
        words = [program("promtool"), "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=self.site.environment())
        if done.returncode != 0:
            raise TestbedError(f"promtool rejected the history: {(done.stderr or done.stdout)[-500:]}")


class NodeExporter(Standalone):
    """A node-exporter with the metrics of this machine."""

    def __init__(self, folder: Path | None = None) -> None:
        """Prepare; nothing runs yet."""
        super().__init__(folder)
        self.port = 0

    def __enter__(self) -> "NodeExporter":
        program("prometheus-node-exporter")
        return super().__enter__()

    @property
    def address(self) -> str:
        """Host and port, for a target."""
        return f"{ports.LOOPBACK}:{self.port}"

    def prepare(self) -> Program:
        """Return an exporter on a free port."""
        self.port = ports.free()
        words: Command = [program("prometheus-node-exporter"), f"--web.listen-address={self.address}"]
        return self.site.program("node-exporter", words, ready(self.port, "/metrics", {}), self.port)


def ready(port: int, path: str, headers: Mapping[str, str]) -> Callable[[], bool]:
    """Return a readiness check that requests *path*."""

    def ask() -> bool:
        connection = http.client.HTTPConnection(ports.LOOPBACK, port, timeout=PROBE_WITHIN)
        try:
            connection.request("GET", path, headers=dict(headers))
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return ask
