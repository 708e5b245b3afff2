"""The real helm with the chart of deploy/ and the image of `make image`, on a testbed without a pod network."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from testbed import Testbed, building, containerd
from tests.integration.nodes.real import RealCluster
from tests.integration.scheduler.live import DEPLOY, ROOT

CHART: Final = DEPLOY / "chart"
RELEASE: Final = "lamina"
NAMESPACE: Final = "lamina-system"
AGENTS: Final = "lamina-agents"
WITHIN: Final = 300.0
ARCHIVE: Final = ROOT / "build" / "image" / "lamina.tar"


class InstalledCluster(RealCluster):
    """Nodes and a registry; what is installed comes from the chart."""

    def install(self) -> None:
        """Leave it to helm."""

    def without_the_road(self) -> None:
        """Let nodes pull at full speed from now on."""
        for node in self.nodes.values():
            containerd.allow(node.folder, self.bed.registry, self.bed.registry)

    def over_the_road(self) -> None:
        """Let nodes pull over the slow road from now on."""
        for node in self.nodes.values():
            containerd.allow(node.folder, self.bed.registry, self.road.host)


class Helm:
    """Helm as the administrator of a testbed."""

    def __init__(self, bed: Testbed) -> None:
        """Prepare; builds helm if needed."""
        self._bed, self._program = bed, building.ensure("helm")

    def __call__(self, *words: str) -> str:
        """Run helm; raises with its message if it fails."""
        command = [str(self._program), *words, f"--kubeconfig={self._bed.admin}", f"--namespace={NAMESPACE}"]
        environment = self._bed.site.environment()
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=WITHIN, check=False, env=environment, cwd=self._bed.folder
        )
        if run.returncode:
            raise AssertionError(f"helm {' '.join(words)}: {run.stderr.strip()}\n{run.stdout[-2000:]}")
        return run.stdout

    def values(self, name: str, image: str, tag: str, port: int, **more: Any) -> Path:
        """Write the values that the testbed needs: one scheduler on the machine's network, and a socket for each node."""
        server = urlsplit(self._bed.url)
        nodes = self._bed.folder / "nodes"
        chosen: dict[str, dict[str, Any] | str] = {
            "image": {"repository": image, "tag": tag},
            "apiServer": {"host": server.hostname, "port": server.port},
            "seccompProfile": "",
            "scheduler": {"replicas": 1, "port": port, "hostNetwork": True, "extraArgs": ["--no-registries", "-v=2"]},
            "nodeAgent": {"hostNetwork": True, "socket": f"{nodes}/$(NODE_NAME)/c.sock", "socketFolder": str(nodes)},
            "test": {"hostNetwork": True},
        }
        for part, values in more.items():
            usual = chosen.get(part)
            chosen[part] = {**usual, **values} if isinstance(usual, dict) else values
        path = self._bed.folder / f"{name}.json"
        path.write_text(json.dumps(chosen), encoding="utf-8")
        return path


def push_lamina(bed: Testbed) -> str:
    """Push Lamina's image to the testbed's registry, built if it is not there; return its repository."""
    if not ARCHIVE.exists():
        subprocess.run([sys.executable, str(ROOT / "scripts" / "image.py"), "--once"], check=True)
    target = f"{bed.registry}/lamina"
    words = ["skopeo", "--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false"]
    subprocess.run([*words, f"docker-archive:{ARCHIVE}", f"docker://{target}:e2e"], check=True)
    return target
