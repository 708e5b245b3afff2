"""The real helm with the chart of deploy/, on a testbed without a pod network."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from testbed import Testbed, building
from tests.integration.scheduler.live import DEPLOY

CHART: Final = DEPLOY / "chart"
RELEASE: Final = "lamina"
NAMESPACE: Final = "lamina-system"
AGENTS: Final = "lamina-agents"
WITHIN: Final = 300.0


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
        chosen = {
            "image": {"repository": image, "tag": tag},
            "apiServer": {"host": server.hostname, "port": server.port},
            "seccompProfile": "",
            "scheduler": {"replicas": 1, "port": port, "hostNetwork": True, "extraArgs": ["--no-registries", "-v=2"]},
            "nodeAgent": {"hostNetwork": True, "socket": f"{nodes}/$(NODE_NAME)/c.sock", "socketFolder": str(nodes)},
            "test": {"hostNetwork": True},
        }
        for part, values in more.items():
            chosen[part] = {**chosen.get(part, {}), **values}
        path = self._bed.folder / f"{name}.json"
        path.write_text(json.dumps(chosen), encoding="utf-8")
        return path
