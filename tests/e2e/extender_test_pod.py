"""
The walk-through of examples/test-pod on a real control plane, with processes for containers.

A stock kube-scheduler as `my-scheduler`, an extender with the agent `safe` beside it, three nodes that say what they are
used for. One pod goes to the calmest node, another one is refused by all of them, and both logs tell so.
"""

import re
import time
from pathlib import Path
from typing import Any, Final

from testbed import Testbed, building, ports
from testbed import parts as catalogue
from tests.e2e._live import node_of, until
from tests.integration.extender_deploy.processes import Extender, StockScheduler, install
from tests.integration.scheduler.live import ROOT

NAME = "test-pod"
SUMMARY = "The stock scheduler with an extender beside it places a test pod by what nodes are really used for."
NEEDS = ()

EXAMPLE: Final = ROOT / "examples" / "test-pod"
ANNOTATION: Final = re.compile(r"^kubectl annotate node (\w+) (.*)$", re.MULTILINE)
ANSWERED: Final = re.compile(r"answered (\S+) (.*)")


def main() -> dict[str, Any]:
    """Play it on the newest version."""
    began = time.monotonic()
    building.build([catalogue.find("kube-scheduler", catalogue.KUBERNETES)])
    with Testbed.start() as bed:
        install(bed)
        bed.add_nodes({"name": name, "cpu": "8", "memory": "16Gi"} for name in ("n1", "n2", "n3"))
        for node, annotations in as_the_readme_says():
            bed.kubectl("annotate", "node", node, *annotations.split())
        found = played(bed)
    for name, holds in found["holds"].items():
        print(f"  {'yes' if holds else 'NO '}  {name}")
    if not all(found["holds"].values()):
        raise AssertionError(f"{found['holds']}\n{found['told']}\n{found['extender']}\n{found['scheduler'][-4000:]}")
    return {
        "kubernetes": catalogue.KUBERNETES,
        "placed": found["placed"],
        "refused": found["refused"],
        "seconds": round(time.monotonic() - began, 1),
    }


def as_the_readme_says() -> list[tuple[str, str]]:
    """Nodes and annotations, from the commands of the README."""
    return ANNOTATION.findall((EXAMPLE / "README.md").read_text(encoding="utf-8"))


def played(bed: Testbed) -> dict[str, Any]:
    """Start both, let both pods come, and return what became of them and what was said."""
    port = ports.free()
    config = bed.folder / "extender.yaml"
    config.write_text(moved(EXAMPLE / "extender.yaml", port), encoding="utf-8")
    with (
        Extender(bed, ["--config", str(config), "-v", "2"], port=port) as extender,
        StockScheduler(bed, moved(EXAMPLE / "scheduler.yaml", port)) as scheduler,
    ):
        bed.kubectl("apply", "-f", str(EXAMPLE / "pod.yaml"))
        placed = until("test-pod is bound", lambda: node_of(bed, "test-pod"))
        told = until("test-pod has an event", lambda: event(bed, "test-pod", "Scheduled"))
        bed.kubectl("apply", "-f", str(EXAMPLE / "greedy.yaml"))
        refused = until("greedy is told why it waits", lambda: event(bed, "greedy", "FailedScheduling"))
        until("the extender has seen the pod bound", lambda: attended(extender))
        answers = extender.log.read_text(encoding="utf-8")
        log = scheduler.said()
    print(f"  test-pod on {placed}; greedy waits: {refused}")
    answered = dict(ANSWERED.findall("\n".join(line for line in answers.splitlines() if "default/test-pod" in line)))
    return {
        "placed": placed,
        "refused": refused,
        "told": told,
        "extender": answers,
        "scheduler": log,
        "holds": {
            "the calmest node has the pod": placed == "n3",
            "its event is the scheduler's": told == "Successfully assigned default/test-pod to n3",
            "the extender refused the node that is used up": "refused=1" in answered["predicates/safe-overload"],
            "and preferred the calmest": "first_best=n3" in answered["priorities/safe-balance"],
            "the scheduler tells where the pod went": 'pod="default/test-pod" node="n3"' in log,
            "whoever fits nowhere is told why": "3 node(s) would risk cpu overload" in refused,
            "the README shows these words": "3 node(s) would risk cpu overload" in (EXAMPLE / "README.md").read_text(),
        },
    }


def moved(path: Path, port: int) -> str:
    """A file of the example, with a port that nobody else has."""
    return path.read_text(encoding="utf-8").replace("127.0.0.1:5401", f"127.0.0.1:{port}")


def event(bed: Testbed, pod: str, reason: str) -> str | None:
    """Return what an event of a pod says, once there is one."""
    found = bed.api("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={pod}")["items"]
    return next((one["message"] for one in found if one["reason"] == reason), None)


def attended(extender: Extender) -> bool | None:
    """Whether the extender counts the pod among those that were bound with its answer; None while it does not."""
    return extender.metric('lamina_extender_pods_bound_total{answered="true"}') == 1 or None
