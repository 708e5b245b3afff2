"""
The walk-through of examples/test-pod on a real control plane, with processes for containers, once for each of its halves.

A stock kube-scheduler as `my-scheduler`, an extender beside it, three nodes that say what they are used for. One pod goes to
the calmest node, another one is refused by all of them, and both logs tell so in the words of the README. As two processes
both have the files of the example; as a pod, those of deploy/extender/one-process.yaml, and the words of its containers.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from testbed import Testbed, building, ports
from testbed import parts as catalog
from tests.e2e._live import node_of, until
from tests.integration.extender_deploy.processes import Extender, StockScheduler, configuration, install
from tests.integration.scheduler.live import ROOT

NAME = "test-pod"
SUMMARY = "The stock scheduler with an extender beside it places a test pod by what nodes are really used for."
NEEDS = ()

EXAMPLE: Final = ROOT / "examples" / "test-pod"
README: Final = (EXAMPLE / "README.md").read_text(encoding="utf-8")
MANIFEST: Final = "one-process.yaml"
ANNOTATION: Final = re.compile(r"^kubectl annotate node (\w+) (.*)$", re.MULTILINE)
# What differs from run to run, or from version to version: which pod, when, which process, which line of its source.
PASSING: Final = re.compile(r'^\[pod/\S+\] |^[\d:.]+ (?=I answered)|"ts": [\d.]+|I\d{4} [\d:.]+ +\d+ \S+\] ')


def main() -> dict[str, Any]:
    """Play it on the newest version."""
    began = time.monotonic()
    building.build([catalog.find("kube-scheduler", catalog.KUBERNETES)])
    with Testbed.start() as bed:
        install(bed)
        bed.add_nodes({"name": name, "cpu": "8", "memory": "16Gi"} for name in ("n1", "n2", "n3"))
        for node, annotations in ANNOTATION.findall(README):
            bed.kubectl("annotate", "node", node, *annotations.split())
        found = {half: played(bed, half) for half in ("two processes", "a pod")}
    for half, one in found.items():
        for name, holds in one["holds"].items():
            print(f"  {'yes' if holds else 'NO '}  as {half}: {name}")
    for one in found.values():
        if not all(one["holds"].values()):
            raise AssertionError(f"{one['holds']}\n{one['told']}\n{one['extender']}\n{one['scheduler'][-4000:]}")
    return {
        "kubernetes": catalog.KUBERNETES,
        "placed": found["a pod"]["placed"],
        "refused": found["a pod"]["refused"],
        "seconds": round(time.monotonic() - began, 1),
    }


@contextmanager
def running(bed: Testbed, half: str) -> Iterator[tuple[Extender, StockScheduler]]:
    """Start extender and scheduler as one half of the README does; only ports are others."""
    port, pages = ports.free(), ports.free()

    def moved(text: str) -> str:
        """A file of the example, with ports that nobody else has."""
        return text.replace("127.0.0.1:5401", f"127.0.0.1:{port}").replace("0.0.0.0:5411", f"127.0.0.1:{pages}")

    config = bed.folder / "extender.yaml"
    if half == "a pod":
        config.write_text(moved(configuration(MANIFEST, "extender.yaml")), encoding="utf-8")
        words, variables = ["--config", str(config), "--log-format=json"], {"LOG_LEVEL": "DEBUG"}
        asks = moved(configuration(MANIFEST))
    else:
        config.write_text(moved((EXAMPLE / "extender.yaml").read_text(encoding="utf-8")), encoding="utf-8")
        words, variables = ["--config", str(config), "-v", "2"], {}
        asks = moved((EXAMPLE / "scheduler.yaml").read_text(encoding="utf-8"))
    with (
        Extender(bed, words, port=port, variables=variables) as extender,
        StockScheduler(bed, asks, flags=["-v=2"]) as scheduler,
    ):
        yield extender, scheduler


def played(bed: Testbed, half: str) -> dict[str, Any]:
    """Start both, let both pods come, and return what became of them and what was said."""
    with running(bed, half) as (extender, scheduler):
        bed.kubectl("apply", "-f", str(EXAMPLE / "pod.yaml"))
        placed = until("test-pod is bound", lambda: node_of(bed, "test-pod"))
        told = until("test-pod has an event", lambda: event(bed, "test-pod", "Scheduled"))
        bed.kubectl("apply", "-f", str(EXAMPLE / "greedy.yaml"))
        refused = until("greedy is told why it waits", lambda: event(bed, "greedy", "FailedScheduling"))
        until("the extender has seen the pod bound", lambda: attended(extender))
        answers = extender.log.read_text(encoding="utf-8")
        log = scheduler.said()
    bed.kubectl("delete", "pod", "test-pod", "greedy", "--force", "--grace-period=0")
    bed.kubectl("delete", "events", "--all")
    print(f"  as {half}: test-pod on {placed}; greedy waits: {refused}")
    return {
        "placed": placed,
        "refused": refused,
        "told": told,
        "extender": answers,
        "scheduler": log,
        "holds": {
            "the calmest node has the pod": placed == "n3",
            "its event is the scheduler's": told == "Successfully assigned default/test-pod to n3",
            "the extender says what the README shows": lines(answers) == shown(half, "answered"),
            "the scheduler says what the README shows": lines(log) == shown(half, "Successfully bound"),
            "whoever fits nowhere is told why": "3 node(s) would risk cpu overload" in refused,
            "the README shows these words": "3 node(s) would risk cpu overload" in README,
        },
    }


def lines(log: str) -> list[str]:
    """What a log has about the test pod, as the README filters it, without what differs from run to run; in any order."""
    return sorted(PASSING.sub("", line) for line in log.splitlines() if "test-pod" in line)


def shown(half: str, word: str) -> list[str]:
    """The lines of the README with this word in them, as `lines` has them; those of a pod begin with its name."""
    found = [line for line in README.splitlines() if word in line and "test-pod" in line and "`" not in line]
    return sorted(PASSING.sub("", line) for line in found if line.startswith("[pod/") == (half == "a pod"))


def event(bed: Testbed, pod: str, reason: str) -> str | None:
    """Return what an event of a pod says, once there is one."""
    found = bed.api("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={pod}")["items"]
    return next((one["message"] for one in found if one["reason"] == reason), None)


def attended(extender: Extender) -> bool | None:
    """Whether the extender counts the pod among those that were bound with its answer; None while it does not."""
    return extender.metric('lamina_extender_pods_bound_total{answered="true"}') == 1 or None
