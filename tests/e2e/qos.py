"""
Promises of availability on a real API server: order, preemption, restarts, disturbances, and the page throughout.

The controller-manager's Deployments, StatefulSets and Jobs make the pods, kwok plays the kubelets, `lamina scheduler`
places the pods with the rights of its own account. A witness that is never restarted measures the same controllers from
the watch alone. The story has four parts:

    promises    three Deployments with the SLOs 1, 0.8 and 0.5 share too few slots: bindings and evictions follow the TTV
    killed      SIGKILL at RUNS (default 10) moments, every other one just before a write of the history, while pods are
                deleted at random
    disturbed   more replicas, a rollout with a surge, failed pods of a Job, a StatefulSet, another namespace
    many        1,000 controllers more

A thread reads the page five times a second, in all parts.
"""

import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Any, Final, Self

import yaml

from lamina.qos.promise import ControllerKey
from lamina.wire import timestamps
from testbed import Testbed, ports
from testbed.errors import RefusedError
from tests.e2e._qos_witness import QosWitness
from tests.integration.scheduler.live import DEPLOY, ROOT, Lamina, configuration, install, until
from tests.integration.scheduler.truth import add_pods, pod

NAME = "qos"
SUMMARY = "QosAware live: order and evictions by time to violation, kill -9 at RUNS (10) moments, the page throughout."
NEEDS = ()

SEED: Final = 21
NODES: Final = ("n0", "n1")
CORES: Final = 8
REPLICAS: Final = {"gold": 6, "silver": 9, "bronze": 5}
"""Twenty pods for 16 slots. They promise 6 + 7.2 + 2.5 = 15.7 of them, and no fixed division keeps all promises."""
SLOS: Final = {"gold": 1.0, "silver": 0.8, "bronze": 0.5, "work": 1.0}
MARGIN: Final = 5.0
MINIMUM: Final = 5.0
"""minimumRunningTime in seconds."""
SETTLING: Final = 100.0
"""
Seconds before the first kill. A pod that is bound and ends between two writes of the history costs up to five seconds,
so the figures are as stable as the lifetimes are long.
"""
COALESCED: Final = 5.0
"""Seconds between two writes of the history."""
DRIFT: Final = 0.01
FOLLOWS: Final = 0.95
"""
Least share of bindings and evictions that follow the time to violation. A pod in back-off (1 s here) is passed over: it
cannot be told from the watch.
"""
MANY: Final = 1000
WITHIN: Final = 120.0
HISTORY: Final = "/apis/lamina.dev/v1alpha1/qoshistories/lamina-scheduler"
EXAMPLE: Final = ROOT / "examples" / "qos-live"
APPS: Final = "/apis/apps/v1/namespaces/default"


def main() -> dict[str, Any]:
    """Run the parts."""
    kills = int(os.environ.get("RUNS", "10"))
    with Testbed.start(parts=("etcd", "kube-apiserver", "kube-controller-manager")) as bed:
        install(bed)
        for file in ("scheduler-preemption.yaml", "scheduler-qos.yaml"):
            bed.kubectl("apply", "-f", str(DEPLOY / "rbac" / "optional" / file))
        bed.start_part("kwok")
        bed.add_nodes({"name": name, "cpu": str(CORES), "memory": "64Gi"} for name in NODES)
        port = ports.free()
        log = bed.folder / "metrics.log"
        words = ("--qos-listen", f"127.0.0.1:{port}", "--qos-log", str(log))
        with (
            QosWitness(bed, MARGIN) as witness,
            Lamina(bed, config=settings(), words=words) as scheduler,
            PageReader(port) as page,
        ):
            found = promises(bed, witness, page)
            with Deletions(bed):
                found |= killed(bed, witness, scheduler, page, kills)
            found |= disturbed(bed, witness, page)
            found |= many(bed, page)
            complaints = scheduler.complaints()
            found |= page.figures()
            found["preemptions"] = witness.evictions
            found["log_lines"] = len(log.read_text(encoding="utf-8").splitlines())
        judged = witness.bindings + witness.evictions
        found |= {"order_follows_ttv": round(1 - len(witness.against) / judged, 3), "bindings": witness.bindings}
        print(*witness.against[:20], sep="\n", flush=True)
    print(json.dumps(found), flush=True)
    assert not complaints, complaints[:5]
    assert found["order_follows_ttv"] >= FOLLOWS, witness.against
    assert found["preemptions"] > 0, found
    assert found["qos_drift_after_kill"] <= DRIFT, found
    assert found["qos_drift_disturbed"] <= DRIFT, found
    assert found["pages_failed"] == 0, found
    return found


def settings() -> dict[str, Any]:
    """Return the configuration of the example, with shorter durations: the story takes minutes, not hours."""
    example = yaml.safe_load((EXAMPLE / "configuration.yaml").read_text(encoding="utf-8"))
    (profile,) = example["profiles"]
    (plugin,) = profile["pluginConfig"]
    plugin["args"] |= {"safetyMargin": f"{MARGIN:g}s", "minimumRunningTime": f"{MINIMUM:g}s"}
    return configuration(profiles=[profile], podInitialBackoffSeconds=1, podMaxBackoffSeconds=1)


# -- the page ----------------------------------------------------------------------------------------------------------


class PageReader:
    """Reads the page five times a second while the scheduler runs."""

    def __init__(self, port: int) -> None:
        """Read from *port* of this machine."""
        self._port = port
        self.url = f"http://127.0.0.1:{port}"
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.read = 0
        self.failed: list[str] = []
        self.slowest = 0.0
        self.most_rows = 0
        self.down = threading.Event()
        """Set while the scheduler is killed and not back yet."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join(30)

    def get(self, path: str) -> str:
        """Return one form of the page."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read().decode()
            assert response.status == 200, body
            return body
        finally:
            connection.close()

    def qos(self) -> tuple[float, dict[ControllerKey, float]]:
        """Return the time of the figures, and the QoS of every controller."""
        view = json.loads(self.get("/qos.json"))
        assert view["omitted"] == 0
        keyed = {ControllerKey(**one["key"]): one for one in view["controllers"]}
        return view["at"], {
            key: one["qos"] for key, one in keyed.items() if one["counts"]["pending"] + one["counts"]["running"]
        }

    def figures(self) -> dict[str, Any]:
        """Return how often and how quickly the page answered."""
        print(*self.failed[:5], sep="\n", flush=True)
        return {
            "pages_read": self.read,
            "pages_failed": len(self.failed),
            "page_slowest_s": round(self.slowest, 3),
            "page_rows": self.most_rows,
        }

    def _run(self) -> None:
        while not self._stopped.wait(0.2):
            down = self.down.is_set()
            began = time.monotonic()
            try:
                rows = self.get("/").count("\n") - 1
            except (OSError, http.client.HTTPException, AssertionError) as error:
                if not (down or self.down.is_set()):
                    self.failed.append(f"{type(error).__name__}: {error}")
                continue
            self.read += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.most_rows = max(self.most_rows, rows)


def printed(page: PageReader) -> None:
    """Let `lamina qos` print the page in all its forms, and watch it."""
    command = [sys.executable, "-m", "lamina", "qos", "--url", page.url]
    for words, expected in (
        (("--format", "controllers"), "QOS/SLO"),
        (("--format", "replicas"), "PREEMPTION OVERHEAD"),
        (("-o", "json"), '"controllers"'),
        (("-o", "yaml"), "controllers:"),
    ):
        run = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60, check=True)
        assert expected in run.stdout, run.stdout
        assert "gold" in run.stdout, run.stdout
    with subprocess.Popen([*command, "--watch", "--every", "0.2"], stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        tables = 0
        while tables < 3:
            tables += "CONTROLLER" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130


def differences(witness: QosWitness, page: PageReader) -> dict[ControllerKey, float]:
    """Return by how much the page's QoS of each controller differs from the witness's at the same moment."""
    at, told = page.qos()
    seen = witness.qos(at)
    return {key: told[key] - seen[key] for key in told.keys() & seen.keys()}


def greatest(found: dict[ControllerKey, float]) -> float:
    """Return the largest difference."""
    return max(map(abs, found.values()))


# -- promises ----------------------------------------------------------------------------------------------------------


def template(name: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    """Return a pod template that promises the SLO of its class."""
    made = pod(name, cpu="1", **spec)
    metadata = {
        "namespace": namespace,
        "labels": {"app": name},
        "annotations": {"controller": name, "slo": str(SLOS.get(name, 0.5))},
    }
    return {"metadata": metadata, "spec": made["spec"]}


def deployment(name: str, replicas: int) -> dict[str, Any]:
    """Return a Deployment."""
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": template(name),
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def promises(bed: Testbed, witness: QosWitness, page: PageReader) -> dict[str, Any]:
    """Let three Deployments share the slots."""
    for name, replicas in REPLICAS.items():
        bed.api("POST", f"{APPS}/deployments", deployment(name, replicas))
    until(lambda: witness.evictions >= 3, WITHIN, "three pods are evicted")
    time.sleep(SETTLING)
    printed(page)
    _, told = page.qos()
    print(page.get("/"), f"promises: {witness.bindings} bindings, {witness.evictions} evictions", sep="", flush=True)
    drift = greatest(differences(witness, page))
    return {
        "qos": {key.name: round(qos, 3) for key, qos in sorted(told.items())},
        "qos_difference_before_kills": round(drift, 5),
    }


# -- killed ------------------------------------------------------------------------------------------------------------


class Deletions:
    """Deletes a random pod every few seconds, as drained nodes and impatient people do."""

    def __init__(self, bed: Testbed) -> None:
        """Delete pods of the default namespace."""
        self._bed = bed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join(30)

    def _run(self) -> None:
        dice = random.Random(SEED)
        path = "/api/v1/namespaces/default/pods"
        with contextlib.closing(self._bed.site.requests()) as requests:
            while not self._stopped.wait(dice.uniform(2.0, 6.0)):
                running = [one for one in requests.send("GET", path)["items"] if one["spec"].get("nodeName")]
                if running:
                    with contextlib.suppress(RefusedError):
                        requests.send("DELETE", f"{path}/{dice.choice(running)['metadata']['name']}")


def killed(bed: Testbed, witness: QosWitness, scheduler: Lamina, page: PageReader, kills: int) -> dict[str, Any]:
    """Kill the scheduler at *kills* moments; return by how much that changed the figures."""
    dice = random.Random(SEED)
    worst = 0.0
    unwritten = 0
    for number in range(kills):
        if number % 2:
            wait_for_unwritten(bed, witness)
        else:
            time.sleep(dice.uniform(1.0, 12.0))
        before = differences(witness, page)
        page.down.set()
        scheduler.kill()
        at = time.time()
        pending = bool(witness.ends) and observed_at(bed) < witness.ends[-1] <= at
        unwritten += pending and bool(number % 2)
        scheduler.start()
        until(lambda: answers(page), WITHIN, "the page answers")
        page.down.clear()
        time.sleep(1.0)
        after = differences(witness, page)
        changed = {key: after[key] - before[key] for key in after.keys() & before.keys()}
        worst = max(worst, greatest(changed))
        shown = ", ".join(f"{key.name} {change:+.4f}" for key, change in sorted(changed.items()))
        print(f"killed: {number + 1}, {'before a write' if pending else 'any moment'}: {shown}", flush=True)
    return {"kills": kills, "killed_before_write": unwritten, "qos_drift_after_kill": round(worst, 5)}


def wait_for_unwritten(bed: Testbed, witness: QosWitness) -> None:
    """Wait until a pod has ended since the last write, and the next write is due in a moment."""
    deadline = time.monotonic() + WITHIN
    while time.monotonic() < deadline:
        written = observed_at(bed)
        until_due = written + COALESCED - 0.2 - time.time()
        if until_due > 0:
            time.sleep(min(until_due, 0.1))
            continue
        ended = bool(witness.ends) and witness.ends[-1] > written
        # Past the pause between two writes, the write follows the end within a quarter of a second.
        if ended and observed_at(bed) == written:
            return
        time.sleep(0.01)
    raise AssertionError(f"no pod ended between two writes within {WITHIN:g} s")


def observed_at(bed: Testbed) -> float:
    """Return when the stored history was measured."""
    try:
        return timestamps.seconds(bed.api("GET", HISTORY)["spec"]["observedAt"])
    except RefusedError:
        return 0.0


def answers(page: PageReader) -> bool:
    """Return whether the page can be read."""
    try:
        return bool(page.get("/livez"))
    except OSError:
        return False


# -- disturbed ---------------------------------------------------------------------------------------------------------


def disturbed(bed: Testbed, witness: QosWitness, page: PageReader) -> dict[str, Any]:
    """Change what crashed the original: more replicas, a surge, failed pods, other owners and namespaces."""
    bed.kubectl("scale", "deployment/bronze", "--replicas=7")
    bed.kubectl("set", "env", "deployment/silver", "RELEASE=2")
    bed.kubectl("create", "namespace", "other")
    made = template("steady", namespace="other")
    spec = {"replicas": 2, "serviceName": "steady", "selector": {"matchLabels": {"app": "steady"}}, "template": made}
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "steady"}, "spec": spec}
    bed.api("POST", "/apis/apps/v1/namespaces/other/statefulsets", body)
    work = {"parallelism": 2, "completions": 3, "backoffLimit": 4, "template": template("work", restartPolicy="Never")}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": work}
    bed.api("POST", "/apis/batch/v1/namespaces/default/jobs", job)
    add_pods(bed, [pod("bare-0", cpu="1"), pod("bare-1", cpu="1")])
    until(lambda: witness.running_of("work") > 0, WITHIN, "a pod of the Job runs")
    fail_one(bed)
    time.sleep(20)
    most = differences(witness, page)
    bed.kubectl("scale", "deployment/bronze", "--replicas=5")
    bed.kubectl("delete", "statefulset/steady", "-n", "other")
    bed.kubectl("delete", "--ignore-not-found", "job/work", "pod/bare-0", "pod/bare-1")
    time.sleep(10)
    found = differences(witness, page)
    print(page.get("/replicas"), f"disturbed: {len(most)} controllers, then {len(found)}", sep="", flush=True)
    assert len(most) >= len(REPLICAS) + 2, most
    return {"qos_drift_disturbed": round(max(greatest(most), greatest(found)), 5)}


def fail_one(bed: Testbed) -> None:
    """Let a running pod of the Job fail, as its kubelet would report it."""
    pods = bed.api("GET", "/api/v1/namespaces/default/pods?labelSelector=app%3Dwork")["items"]
    name = next(one["metadata"]["name"] for one in pods if one["spec"].get("nodeName"))
    body = {"status": {"phase": "Failed", "reason": "Crashed"}}
    bed.api("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", body)


# -- many --------------------------------------------------------------------------------------------------------------


def many(bed: Testbed, page: PageReader) -> dict[str, Any]:
    """Add 1,000 controllers with one pod each, and a node that has room for most of them."""
    # Only they go to that node: otherwise a pod of the other parts would evict hundreds of them.
    taint = {"key": "crowd", "value": "yes", "effect": "NoSchedule"}
    bed.add_node("large", cpu="8", memory="64Gi", pods=2000, taints=[taint])
    slowest, page.slowest = page.slowest, 0.0
    tolerations = [{"key": "crowd", "operator": "Exists"}]
    pods = [pod(f"crowd-{number}", cpu="1m", memory="1Mi", tolerations=tolerations) for number in range(MANY)]
    add_pods(bed, pods, over=10.0)
    until(lambda: page.most_rows >= MANY, WITHIN, "the page shows all controllers")
    time.sleep(5)
    with_many, page.slowest = page.slowest, max(slowest, page.slowest)
    rows = page.get("/replicas").count("\n")
    assert rows > MANY
    assert "<table>" not in page.get("/")
    return {"page_slowest_with_many_s": round(with_many, 3)}
