"""`lamina apiserver` as a process of its own, for clients that are processes as well."""

import json
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.e2e._live import until

PROFILE: Final = "kube-default"
"""Lamina schedules pods of the default scheduler; pods of any other scheduler wait for a binding."""
QUIET: Final = "50ms"


@dataclass(frozen=True)
class ApiserverProcess:
    """A façade that serves."""

    url: str
    kubeconfig: Path
    folder: Path
    """An empty folder that ends with the process, for files of clients."""

    def api(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and return the decoded response."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        authority = json.loads(self.kubeconfig.read_text())["clusters"][0]["cluster"].get("certificate-authority")
        trusted = None if authority is None else ssl.create_default_context(cafile=authority)
        with urllib.request.urlopen(request, timeout=30, context=trusted) as response:
            return dict(json.load(response))


@contextmanager
def apiserver_process(*, tls: bool = False, nodes: int = 3) -> Iterator[ApiserverProcess]:
    """Serve a cluster of equal nodes, whose clock jumps when clients are quiet; stop at the end."""
    with tempfile.TemporaryDirectory(prefix="lamina-clients-") as name:
        folder = Path(name)
        ready, kubeconfig, log = folder / "ready.json", folder / "kubeconfig", folder / "log"
        arguments = ["--nodes", str(nodes), "--profile", PROFILE, "--quiet", QUIET, *(["--tls"] if tls else [])]
        files = ["--kubeconfig", str(kubeconfig), "--ready-file", str(ready)]
        command = [str(Path(sys.executable).with_name("lamina")), "apiserver", *arguments, *files]
        with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
            try:

                def found() -> dict[str, Any] | None:
                    if process.poll() is not None:
                        raise AssertionError(f"lamina apiserver ended: {log.read_text()}")
                    return json.loads(ready.read_bytes()) if ready.exists() else None

                url = until("lamina apiserver is ready", found, seconds=120.0)["url"]
                (folder / "client").mkdir()
                yield ApiserverProcess(url, kubeconfig, folder / "client")
                if "Traceback" in log.read_text():
                    raise AssertionError(f"lamina apiserver failed: {log.read_text()}")
            finally:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
