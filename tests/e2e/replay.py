"""
A live scheduler is recorded while its cluster changes all the time, and every recording is replayed.

Nodes come, change and go, agents report layers, pods come, run and go, some fit nowhere until room is made. The scheduler
leads by lease, its ring is small, so that many snapshots are taken in the middle of it all, and one recording is asked
for by signal and one by page. SECONDS says how long (default 40), NODES on how many nodes.
"""

import os
import random
import signal
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

import msgspec

from lamina.model.digest import Digest
from lamina.model.errors import LaminaError
from testbed import Testbed
from testbed.errors import TestbedError
from tests.e2e._live import Reporter, make_pod, manifest_of, publish_image, remove_pod, run_pod
from tests.integration.scheduler.live import Lamina, configuration, install

NAME = "replay"
SUMMARY = "A live scheduler is recorded for SECONDS (40) while everything changes; every recording is replayed."
NEEDS = ()

SEED: Final = 17
MB: Final = 10**6
SMALL_RING: Final = "400"
MOST_PODS: Final = 60
IMAGES: Final = [f"registry.example/app-{number}:1" for number in range(6)]


def main() -> dict[str, Any]:
    """Record for SECONDS on NODES nodes, then replay."""
    seconds, count = float(os.environ.get("SECONDS", "40")), int(os.environ.get("NODES", "12"))
    with Testbed.start() as bed:
        install(bed)
        folder = bed.folder / "recordings"
        elected = {"leaderElect": True, "resourceNamespace": "lamina-system", "resourceName": "lamina-scheduler"}
        words = ("--record-dir", str(folder), "--record-events", SMALL_RING, "--record-files", "10000")
        with Lamina(bed, config=configuration(leaderElection=elected), words=words) as lamina:
            life = Life(bed, count)
            end = time.monotonic() + seconds
            life.begin()
            while time.monotonic() < end - seconds / 2:
                life.step()
            lamina.signal(signal.SIGUSR2)
            page = fetch(lamina, bed.folder / "page.lamrec")
            while time.monotonic() < end:
                life.step()
            code, _ = lamina.end(within=30.0)
            complaints = lamina.complaints()
        files = [*sorted(folder.iterdir()), page]
        modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        replays = [replayed(path) for path in files]
    found = {
        "events": sum(one["events"] for one in replays),
        "decisions": sum(one["decisions"] for one in replays),
        "equal": all(one["equal"] for one in replays),
        "recordings": len(files),
        "seconds": seconds,
        "pods": life.serial,
        "steps": life.steps,
    }
    print(f"{found['recordings']} recordings, {found['events']} events, {found['decisions']} decisions")
    assert (0, []) == (code, complaints), complaints
    assert modes == {0o600}, modes
    assert found["equal"], [one["difference"] for one in replays if not one["equal"]]
    assert found["decisions"] > 0
    return found


def fetch(lamina: Lamina, path: Path) -> Path:
    """Ask the scheduler for a recording of what it remembers."""
    with urllib.request.urlopen(f"http://127.0.0.1:{lamina.port}/debug/events", timeout=60) as answer:
        path.write_bytes(answer.read())
    return path


def replayed(path: Path) -> dict[str, Any]:
    """Run ``lamina replay`` on one file."""
    command = [sys.executable, "-m", "lamina.cli.main", "replay", str(path), "-o", "json"]
    ended = subprocess.run(command, capture_output=True, check=False)
    if ended.returncode not in (0, 1):
        raise AssertionError(f"{path.name}: {ended.stderr.decode()}")
    report: dict[str, Any] = msgspec.json.decode(ended.stdout)
    if not report["equal"]:
        print(subprocess.run(command[:-2], capture_output=True, check=False).stdout.decode())
    return report


class Life:
    """What happens in the cluster, drawn with a fixed seed."""

    def __init__(self, bed: Testbed, count: int) -> None:
        self.bed = bed
        self.count = count
        self.dice = random.Random(SEED)
        self.reporter = Reporter(bed)
        self.digests: dict[str, Digest] = {}
        self.pods: list[str] = []
        self.serial = self.steps = 0

    def begin(self) -> None:
        """Describe images, add nodes, and have them report."""
        for number, name in enumerate(IMAGES):
            layers = [(b"base", 80 * MB), (f"layer {number % 3}".encode(), 150 * MB), (name.encode(), 40 * MB)]
            self.digests[name] = publish_image(self.bed, manifest_of(layers))
        self.bed.add_nodes(
            {
                "name": f"n{number}",
                "cpu": "4",
                "memory": "8Gi",
                "labels": {"topology.kubernetes.io/zone": f"z{number % 3}"},
            }
            for number in range(self.count)
        )
        for number in range(self.count):
            self.report(f"n{number}")

    def step(self) -> None:
        """Let one thing happen."""
        self.steps += 1
        kinds = [self.add_pod, self.add_pod, self.end_pod, self.start_pod, self.report_layers, self.change_node]
        kind = self.dice.choices(kinds, [8, 8, 8, 5, 3, 1])[0]
        try:
            kind()
        except (TestbedError, LaminaError) as error:
            # A pod may have been bound or removed meanwhile.
            print(f"  {kind.__name__}: {error}"[:200])
        time.sleep(self.dice.choice([0.0, 0.01, 0.05]))

    def add_pod(self) -> None:
        """Create a pod; one in six asks for more than any node has while others are there."""
        if len(self.pods) >= MOST_PODS:
            self.end_pod()
        self.serial += 1
        name = f"p{self.serial}"
        cpu = "3800m" if self.dice.random() < 1 / 6 else f"{self.dice.choice([100, 300, 900])}m"
        spread = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": self.dice.choice(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": {},
        }
        more: dict[str, Any] = {"topologySpreadConstraints": [spread]} if self.dice.random() < 0.3 else {}
        make_pod(self.bed, name, self.dice.choice(IMAGES), {"cpu": cpu, "memory": "64Mi"}, **more)
        self.pods.append(name)

    def end_pod(self) -> None:
        """Delete a pod."""
        if self.pods:
            remove_pod(self.bed, self.pods.pop(self.dice.randrange(len(self.pods))))

    def start_pod(self) -> None:
        """Say that a pod runs."""
        if self.pods:
            run_pod(self.bed, self.dice.choice(self.pods))

    def report_layers(self) -> None:
        """Have a node report."""
        self.report(f"n{self.dice.randrange(self.count)}")

    def report(self, node: str) -> None:
        """Report some images on a node."""
        held = self.dice.sample(IMAGES, self.dice.randrange(len(IMAGES)))
        self.reporter.report(node, {self.digests[name]: (name,) for name in held})

    def change_node(self) -> None:
        """Cordon a node, or let pods in again."""
        node = f"n{self.dice.randrange(self.count)}"
        self.bed.api("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": self.dice.random() < 0.5}})
