"""An extender process for benchmarks: started beside a testbed, checked for readiness, measured."""

import http.client
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from _contest import a_pod, images
from _processes import Measured, lamina, running
from testbed import Testbed
from testbed.control_plane import SCHEDULER

LOOPBACK: Final = "127.0.0.1"
READY_WITHIN: Final = 120.0


class Beside(msgspec.Struct, frozen=True):
    """A running extender."""

    process: Measured
    port: int

    def entry(self, verb: str, weight: int = 5) -> dict[str, Any]:
        """Return kube-scheduler's configuration entry for one verb: scores only, by node names."""
        return {
            "urlPrefix": f"http://{LOOPBACK}:{self.port}/scheduler",
            "prioritizeVerb": f"priorities/{verb}",
            "weight": weight,
            "nodeCacheCapable": True,
            "ignorable": True,
            "httpTimeout": "2s",
        }

    def counted(self, name: str) -> float:
        """Return the sum of all series of a metric."""
        return sum(
            float(line.rpartition(" ")[2])
            for line in self.get("/metrics").splitlines()
            if line.partition("{")[0].partition(" ")[0] == name
        )

    def get(self, path: str) -> str:
        """Request an endpoint."""
        return ask(self.port, "GET", path)


def ask(port: int, method: str, path: str, body: bytes = b"") -> str:
    """Send one request. Raises RuntimeError if the status is not 200."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    try:
        connection.request(method, path, body or None, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {text[:200]}")
        return text
    finally:
        connection.close()


@contextmanager
def null_beside(log: Path) -> Iterator[Beside]:
    """Run an extender that answers `[]` at once."""
    with running([sys.executable, str(Path(__file__).with_name("_null_extender.py"))], log) as process:
        process.wait(lambda: bool(process.said("listening")), READY_WITHIN)
        null = Beside(process, int(process.said("listening").partition("port=")[2]))
        if ask(null.port, "POST", "/scheduler/priorities/null", b"{}") != "[]":
            raise RuntimeError("the null extender returned scores")
        yield null


@contextmanager
def beside(bed: Testbed, agents: str, log: Path, words: Sequence[str] = (), *, python: str = "") -> Iterator[Beside]:
    """
    Run an extender until the block ends; it has synced with the cluster when the block begins.

    *python* is the interpreter that has the Lamina to run; this one if it is empty.
    """
    command = lamina(
        "extender", "--agents", agents, "--kubeconfig", str(bed.kubeconfig(SCHEDULER)), "--listen", f"{LOOPBACK}:0",
        "--no-registries", *words,
    )  # fmt: skip
    if python:
        command[0] = python
    with running(command, log) as process:
        process.wait(lambda: bool(process.said("serving scheduling agents")), READY_WITHIN)
        port = int(process.said("serving scheduling agents").split("at=http://")[1].split()[0].rpartition(":")[2])
        process.wait(lambda: bool(process.said("caches synced")), READY_WITHIN)
        yield Beside(process, port)


def question(names: Sequence[str], number: int) -> bytes:
    """Return a prioritize request as kube-scheduler sends it: a pod as the API server returns it, and node names."""
    known = images()
    pod = a_pod(number, "kube-scheduler", known[number % len(known)].held.names[0], number % 50)
    pod["metadata"] |= {
        "uid": f"00000000-0000-4000-8000-{number:012}",
        "namespace": "default",
        "resourceVersion": str(1_000_000 + number),
        "creationTimestamp": "2026-03-01T09:00:00Z",
        "managedFields": [
            {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:spec": {}}}
        ],
    }
    pod["spec"] |= {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "securityContext": {},
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{taint}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for taint in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    pod["status"] = {"phase": "Pending", "qosClass": "Guaranteed"}
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(names)}, separators=(",", ":")).encode()
