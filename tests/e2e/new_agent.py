"""
A scheduling agent of one's own, from nothing to a placement it changed, by the steps of its README.

`lamina new-agent` writes the folder. It is installed in an environment of its own beside Lamina, its tests are run, and it
is asked without a cluster. Then its manifest is applied to a real control plane: the extender runs with the rights of that
manifest, kube-scheduler with the configuration in it, and annotations move pods.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import Testbed
from tests.e2e._agent_cases import At, Case, some
from tests.e2e._agent_stage import STOCK, Stage, pod
from tests.e2e._live import until
from tests.integration.extender.processes import Extender, Scheduler, changed
from tests.integration.scheduler.live import install

NAME = "new-agent"
SUMMARY = (
    "A scheduling agent of one's own: written by `lamina new-agent`, installed, and asked by a real kube-scheduler."
)
NEEDS = ()

AGENT: Final = "quiet-nodes"
SCHEDULER: Final = f"{AGENT}-scheduler"
LAMINA: Final = ("-m", "lamina.cli.main")
COMMAND_WITHIN: Final = 300.0
# Where b is preferred it has level 10 and the others 5, which is 50 points at weight 1; a pod on it costs 2.
CLUSTER: Final = Case("three nodes", {"a": At(), "b": At(some(1)), "c": At(some(2))}, stock="a", ours="b")


def main() -> dict[str, Any]:
    """Follow the README."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="new-agent-") as name:
        python = environment(Path(name) / "environment")
        run(python, *LAMINA, "new-agent", AGENT, cwd=Path(name))
        folder = Path(name) / AGENT
        holds = {"tested": installed(python, folder)}
        with Testbed.start(parts=("kube-scheduler",)) as bed:
            holds["asked"] = asked(bed, python, folder)
            holds |= placed(bed, python, folder)
    if not all(holds.values()):
        raise AssertionError(f"{holds}")
    return {**holds, "seconds": round(time.monotonic() - began, 1)}


def environment(folder: Path) -> Path:
    """Make an environment that has what this one has, and return its Python; nothing that is installed there stays."""
    run(Path(sys.executable), "-m", "venv", "--without-pip", str(folder))
    python = folder / "bin" / "python"
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # Not the bare path: what is installed there for editing would not be found.
    beside = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (Path(packages) / "beside.pth").write_text(beside, encoding="utf-8")
    return python


def run(python: Path, *words: str, cwd: Path | None = None) -> str:
    """Run something, and return what it printed; raises with its own words."""
    # Whoever runs the story may have pytest's own settings; its processes start afresh.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [python, *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=COMMAND_WITHIN, env=clean
    )
    if done.returncode:
        raise AssertionError(f"{' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def installed(python: Path, folder: Path) -> bool:
    """Install and test it, and look whether Lamina knows it."""
    run(python, "-m", "pip", "install", "--quiet", "-e", ".[dev]", cwd=folder)
    tested = run(python, "-m", "pytest", "-q", cwd=folder).strip().splitlines()[-1]
    known = [line for line in run(python, *LAMINA, "extender", "--list-agents").splitlines() if line.startswith(AGENT)]
    print(f"  its own tests: {tested}")
    print(f"  {' '.join(known)}")
    return " passed" in tested and len(known) == 1


def asked(bed: Testbed, python: Path, folder: Path) -> bool:
    """Ask it without a cluster, with the question that comes with it."""
    install(bed)
    bed.kubectl("apply", "-f", str(folder / "deploy.yaml"))
    question = json.loads((folder / "ask.json").read_text(encoding="utf-8"))
    with extender(bed, python, "alone", "--state", "body") as alone:
        passed = [node["metadata"]["name"] for node in alone.ask(f"predicates/{AGENT}", question)["Nodes"]["items"]]
        levels = alone.ask(f"priorities/{AGENT}", question)
    print(f"  without a cluster: {passed} pass, and the levels are {levels}")
    return (passed, levels) == (["plain", "liked"], [{"Host": "liked", "Score": 4}])


def placed(bed: Testbed, python: Path, folder: Path) -> dict[str, bool]:
    """Let annotations move pods, as the README does."""
    stage = Stage(bed)
    stage.set_up(CLUSTER)
    documents = list(yaml.safe_load_all((folder / "deploy.yaml").read_text(encoding="utf-8")))
    config = yaml.safe_load(next(one for one in documents if one["kind"] == "ConfigMap")["data"]["scheduler.yaml"])
    with extender(bed, python, "agent") as agent:
        # What is different here: nobody is elected, and the extender listens elsewhere.
        config = {**config, "leaderElection": {"leaderElect": False}}
        config = changed(config, urlPrefix=f"http://127.0.0.1:{agent.port}/scheduler")
        with Scheduler(bed, SCHEDULER, config):
            stock = stage.place("stock", CLUSTER.pod, STOCK)
            without = stage.place("without", CLUSTER.pod, SCHEDULER)
            bed.kubectl("annotate", "node", "b", f"{AGENT}.example.com/preference=100")
            seen(agent, {"a": 0, "b": 5, "c": 0})
            first = stage.place("first", CLUSTER.pod, SCHEDULER)
            bed.kubectl("annotate", "node", "b", f"{AGENT}.example.com/closed=true")
            until("the node is refused", lambda: agent.refused(AGENT, pod("asked"), ["a", "b"]) or None)
            second = stage.place("second", CLUSTER.pod, SCHEDULER)
        complaints = agent.complaints()
    print(f"  stock takes {stock}, the agent {without}; with a preference {first}, and with that node closed {second}")
    return {
        "as_stock_without_annotations": stock == without == "a",
        "preferred": first == "b",
        "closed": second == "a",
        "quiet": not complaints,
    }


def extender(bed: Testbed, python: Path, name: str, *words: str) -> Extender:
    """The agent in a process, with the account of its own manifest."""
    return Extender(bed, AGENT, name, words=words, scheduler=SCHEDULER, python=python, account=(SCHEDULER, SCHEDULER))


def seen(agent: Extender, levels: dict[str, int]) -> None:
    """Wait until the agent answers so."""
    until(f"levels are {levels}", lambda: agent.levels(AGENT, pod("asked"), sorted(levels)) == levels or None)
