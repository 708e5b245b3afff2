"""
Measure one scheduler: create pending pods, start the scheduler, and watch the pods being bound.

    pods created, pending ──> scheduler started ──> bound, one by one ──> the last event is stored ──> pods deleted
                                   processor time: ├──────── from the start ────────┤
                                                          ├─ from the first bind ───┤

The watch selects metadata of pods that have a node, so each pod appears once, when it is bound. The cost of the watch
is the same for every scheduler.
"""

import contextlib
import http.client
import json
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec
import yaml

from _large_cluster import Known, LargeCluster, an_image
from _processes import cpu_seconds, lamina
from lamina.scheduling.config.named_profiles import NAMED
from testbed import Testbed
from testbed.control_plane import SCHEDULER
from testbed.launching import LAUNCHERS, Order
from testbed.processes import Program

IMAGES: Final = 200
LABELS: Final = 50
HELD: Final = 50
"""Images on a node, of those that pods use, in benchmarks with layers."""
REQUESTS: Final = {"cpu": "100m", "memory": "500Mi"}
"""Requests of a pod, as in scheduler_perf's pod-default."""
THREADS: Final = 8
BOUND_WITHIN: Final = 300.0
LANDED_WITHIN: Final = 20.0
POLL: Final = 0.1
PODS: Final = "/api/v1/namespaces/{}/pods"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"
QUIET: Final = 1.0
"""Idle seconds between the creation of the pods and the start of the scheduler."""
FAST: Final = {"qps": 10_000, "burst": 10_000}
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
KUBE: Final = "kube-scheduler"
BATCHING_OFF: Final = ("--feature-gates=OpportunisticBatching=false",)
"""Flag for kube-scheduler: schedule every pod by itself, as it does with any extender."""
ADDED: Final = re.compile(rb'\{"type":"ADDED".*?"name":"([^"]+)"')
GONE: Final = re.compile(rb'\{"type":"DELETED".*?"name":"([^"]+)"')
FIRST: Final = 0.10
LAST: Final = 0.95


class Contender(msgspec.Struct, frozen=True):
    """A scheduler and its configuration."""

    name: str
    """The scheduler's name, and the schedulerName of its pods."""
    profile: str = ""
    """For Lamina: the name of a built-in profile."""
    all_nodes: bool = False
    """Whether it is configured to score every node."""
    extenders: tuple[dict[str, Any], ...] = ()
    """For kube-scheduler: entries of the extenders it calls."""
    flags: tuple[str, ...] = ()
    """For kube-scheduler: further command-line arguments."""

    def configuration(self) -> dict[str, Any]:
        """Return its KubeSchedulerConfiguration."""
        given: dict[str, Any] = yaml.safe_load(NAMED[self.profile][1]) if self.profile else {}
        profiles = given.get("profiles", [{}])
        given["profiles"] = [{**profiles[0], "schedulerName": self.name}]
        given["leaderElection"] = {"leaderElect": False}
        given["clientConnection"] = dict(FAST)
        if self.extenders:
            given["extenders"] = list(self.extenders)
        if self.all_nodes:
            given["percentageOfNodesToScore"] = 100
        return given

    def process(self, bed: Testbed, name: str) -> Program:
        """Return the process, not started; all contenders use the same user."""
        if self.name == KUBE:
            return LAUNCHERS[KUBE](bed.site, Order(name, self.flags, self.configuration()))
        path = bed.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(self.configuration()), encoding="utf-8")
        words = ["--config", str(path), "--kubeconfig", str(bed.kubeconfig(SCHEDULER)), "--listen", "127.0.0.1:0"]
        return bed.site.program(name, lamina("scheduler", *words), lambda: True)


class Setting(msgspec.Struct, frozen=True):
    """The trial that a workload belongs to."""

    number: int
    """Of the trial; names that contain it are new."""
    scheduler: str
    pods: int
    nodes: int


class Workload(msgspec.Struct, frozen=True):
    """What the pods of a trial ask for, and what happens beside it."""

    name: str
    change: Callable[[dict[str, Any]], None] = lambda _: None
    """Changes the manifest of a basic pod."""
    beside: Callable[[Testbed, Setting], contextlib.AbstractContextManager[object]] = lambda _bed, _setting: (
        contextlib.nullcontext()
    )
    """Prepares the cluster before the pods are created, and ends what it began after the trial."""
    victims: str = ""
    """
    What the namespace of the pods that must be evicted begins with, if the pods need that.

    A scheduler may evict all of them before it binds the first pod, so its work begins with the first eviction.
    """


BASIC: Final = Workload("basic")


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run."""

    pods: int
    pods_per_second: float
    """Rate between the pod at FIRST and the one at LAST; for pods that preempt, from the first eviction to the last bind."""
    with_events: float
    """Pods per second from the first bind (or eviction) until every event is stored."""
    cpu_us: float
    """CPU time of the scheduler per pod in microseconds, including its start."""
    cpu_us_after_first: float
    server_us: float
    """CPU time of the API server per pod, from the first bind (or eviction) on."""
    etcd_us: float
    """The same for etcd."""
    own_us: float
    """CPU time of this benchmark per pod, from the start of the scheduler on."""
    beside_us: float = 0.0
    """CPU time per pod of the process beside the scheduler, from the first bind to the last."""
    first_after: float
    """Seconds from the start of the scheduler to the first bind (or eviction)."""
    events: int
    """Stored events that report a binding; each pod has one."""


class Arrivals:
    """Watches objects of a namespace in a thread, and records when each arrives (or, with *gone*, leaves)."""

    def __init__(  # noqa: PLR0913 - what to watch, and what to measure
        self, bed: Testbed, pid: int, path: str, selector: str, expected: int, *, gone: bool = False, beside: int = 0
    ) -> None:
        """
        Watch until *expected* objects of *path* matched the field selector.

        Measure the CPU time of *pid* until the first arrival, and that of *beside* from then until the last.
        """
        self._bed, self._pid, self._expected, self._beside = bed, pid, expected, beside
        self._target = f"{path}?watch=true&fieldSelector={quote(selector)}&timeoutSeconds=3600"
        self._line = GONE if gone else ADDED
        self.times: list[float] = []
        self.cpu_at_first = self.server_at_first = self.etcd_at_first = self.beside = 0.0
        self._names: set[bytes] = set()
        self._closing = False
        self.reopened = 0
        """How often the watch ended early and was restarted."""
        self.complete = threading.Event()
        self._connection = self._open()
        self._answer = self._connection.getresponse()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _open(self) -> http.client.HTTPSConnection:
        where = urlsplit(self._bed.url)
        context = ssl.create_default_context(cafile=str(self._bed.ca_file))
        folder = self._bed.site.authority.folder
        context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
        connection = http.client.HTTPSConnection(where.hostname or "", where.port, context=context)
        connection.request("GET", self._target, headers={"Accept": METADATA_ONLY})
        return connection

    def _read(self) -> None:
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                self._read_on()
            if self._closing or self.complete.is_set():
                return
            # An API server under such load ends a watch now and then; objects that were seen before are sent again.
            self.reopened += 1
            self._connection = self._open()
            self._answer = self._connection.getresponse()

    def _read_on(self) -> None:
        rest = b""
        while piece := self._answer.read1(1 << 16):
            *lines, rest = (rest + piece).split(b"\n")
            names = {found[1] for line in lines if (found := self._line.match(line))} - self._names
            if not names:
                continue
            self._names |= names
            now = time.monotonic()
            if not self.times:
                self.cpu_at_first = cpu_seconds(self._pid)
                self.server_at_first = self._bed.parts["kube-apiserver"].cpu_seconds()
                self.etcd_at_first = self._bed.parts["etcd"].cpu_seconds()
                self.beside = -cpu_seconds(self._beside) if self._beside else 0.0
            self.times += [now] * len(names)
            if len(self.times) >= self._expected:
                self.beside += cpu_seconds(self._beside) if self._beside else 0.0
                self.complete.set()

    def close(self) -> None:
        """End the watch."""
        self._closing = True
        if self._connection.sock is not None:
            # The reader blocks in the socket; closing alone would not wake it.
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._answer.close()
        self._connection.close()


def run(  # noqa: PLR0913 - the parts of a trial
    bed: Testbed,
    contender: Contender,
    pods: int,
    number: int,
    beside: int = 0,
    *,
    workload: Workload = BASIC,
    nodes: int = 0,
) -> Trial:
    """Let a scheduler bind *pods* pods on *nodes* nodes; *beside* is the pid of a further process to measure."""
    with workload.beside(bed, Setting(number, contender.name, pods, nodes)):
        return _run(bed, contender, pods, number, beside, workload)


def _run(bed: Testbed, contender: Contender, pods: int, number: int, beside: int, workload: Workload) -> Trial:
    namespace = f"trial-{number}"
    create_pods(bed, namespace, contender.name, pods, random.Random(number), workload)
    time.sleep(QUIET)
    process = contender.process(bed, f"{contender.name}-{number}")
    own, began = time.process_time(), time.monotonic()
    process.start(wait=False)
    with contextlib.ExitStack() as stack:
        stack.callback(delete_pods, bed, namespace)
        stack.callback(process.stop)
        watch = partial(Arrivals, bed, process.pid)
        bindings = watch(PODS.format(namespace), "spec.nodeName!=", pods, beside=beside)
        stack.callback(bindings.close)
        effects = bindings
        if workload.victims:
            effects = watch(PODS.format(f"{workload.victims}-{number}"), "", pods, gone=True)
            stack.callback(effects.close)
        if not bindings.complete.wait(BOUND_WITHIN):
            words = f"{contender.name} bound {len(bindings.times)} of {pods} pods in {BOUND_WITHIN:.0f} s"
            raise TimeoutError(f"{words}; {process.last_words()}")
        events, landed = wait_for_events(bed, namespace, pods)
        used, served, stored = [one.cpu_seconds() for one in (process, bed.parts["kube-apiserver"], bed.parts["etcd"])]
        own = time.process_time() - own
    times, first = bindings.times, effects.times[0]
    return Trial(
        pods=pods,
        pods_per_second=pods / (times[-1] - first) if workload.victims else rate(times),
        with_events=pods / (max(times[-1], landed) - first),
        cpu_us=used / pods * 1e6,
        cpu_us_after_first=(used - effects.cpu_at_first) / pods * 1e6,
        server_us=(served - effects.server_at_first) / pods * 1e6,
        etcd_us=(stored - effects.etcd_at_first) / pods * 1e6,
        own_us=own / pods * 1e6,
        beside_us=bindings.beside / pods * 1e6,
        first_after=first - began,
        events=events,
    )


def rate(times: list[float]) -> float:
    """Return the rate per second between the time at FIRST and the one at LAST."""
    first, last = int(len(times) * FIRST), int(len(times) * LAST) - 1
    return (last - first) / (times[last] - times[first])


def wait_for_events(bed: Testbed, namespace: str, expected: int) -> tuple[int, float]:
    """
    Wait until each pod has an event Scheduled, or no more events arrive.

    Return the number of such pods, and when the last event was stored. Counting is cheap for the API server; a watch of
    events would read them from etcd.
    """
    path, seen, since = EVENTS.format(namespace), -1, time.monotonic()
    scheduled = 0
    while scheduled < expected and time.monotonic() - since < LANDED_WITHIN:
        page = bed.api("GET", f"{path}?limit=1")
        found = len(page["items"]) + page["metadata"].get("remainingItemCount", 0)
        if found != seen:
            seen, since = found, time.monotonic()
        elif found >= expected:
            items = bed.api("GET", f"{path}?fieldSelector=reason%3DScheduled")["items"]
            scheduled = len({one["regarding"]["name"] for one in items})
        time.sleep(POLL)
    return scheduled, since


# ------------------------------------------------------------------------------------------------------- the cluster


def images() -> list[Known]:
    """Return the images that pods use."""
    return [an_image(random.Random(number), number) for number in range(IMAGES)]


def create_pods(
    bed: Testbed, namespace: str, scheduler: str, count: int, rng: random.Random, workload: Workload = BASIC
) -> None:
    """Create the pending pods of a workload for *scheduler*."""
    bed.api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    names = [image.held.names[0] for image in images()]
    bodies = [a_pod(number, scheduler, rng.choice(names), rng.randrange(LABELS)) for number in range(count)]
    for body in bodies:
        workload.change(body)
    in_parallel(bed, [("POST", f"/api/v1/namespaces/{namespace}/pods", body, "") for body in bodies])


def a_pod(number: int, scheduler: str, image: str, label: int) -> dict[str, Any]:
    """Return a pod's manifest."""
    container = {"name": "app", "image": image, "resources": {"requests": REQUESTS, "limits": REQUESTS}}
    return {
        "metadata": {"name": f"pod-{number:05}", "labels": {"app": f"app-{label}"}},
        "spec": {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 0},
    }


def delete_pods(bed: Testbed, namespace: str) -> None:
    """Delete every pod of a trial at once."""
    bed.api("DELETE", f"/api/v1/namespaces/{namespace}/pods", {"gracePeriodSeconds": 0})


def in_parallel(bed: Testbed, wanted: Sequence[tuple[str, str, object, str]]) -> None:
    """Send requests, several at a time: method, path, body, content type."""
    with contextlib.closing(bed.site.requests()) as requests, ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(lambda one: requests.send(one[0], one[1], one[2], content_type=one[3]), wanted):
            pass


def allow_layers(bed: Testbed, crds: Path) -> None:
    """Install Lamina's custom resources, and give the contenders' user read permission."""
    bed.kubectl("apply", "-f", str(crds))
    bed.kubectl("wait", "--for=condition=Established", "crd/nodelayers.lamina.dev", "crd/imagelayers.lamina.dev")
    bed.kubectl(
        "create",
        "clusterrole",
        "layers",
        "--verb=get,list,watch",
        "--resource=nodelayers.lamina.dev,imagelayers.lamina.dev",
    )
    bed.kubectl("create", "clusterrolebinding", "layers", "--clusterrole=layers", f"--user={SCHEDULER}")


def grow(bed: Testbed, before: int, nodes: int) -> None:
    """Add nodes to the *before* existing ones until there are *nodes*, and report what they hold."""
    bed.add_nodes({"name": f"node-{number:05}", "cpu": "4", "memory": "32Gi"} for number in range(before, nodes))
    tell_layers(bed, nodes, before)


def tell_layers(bed: Testbed, nodes: int, told: int = 0) -> None:
    """Write every node's NodeLayers and all ImageLayers, as node agents would; the first *told* nodes have theirs."""
    cluster = LargeCluster(nodes, 0, len(images()), 0.0)
    root = "/apis/lamina.dev/v1alpha1"
    posts = [("POST", f"{root}/imagelayers", json.loads(image.posted), "") for image in images()]
    if not told:
        in_parallel(bed, posts)
    reports = [json.loads(written) for written in cluster.report_objects()][told:]
    for report in reports:
        report["metadata"] = {"name": report["metadata"]["name"]}
        report["status"]["nodeUID"] = ""
        report["status"]["renewSeconds"] = 0
        # Reports list images by digest. Cut off, the same digests would be missing on every node, and their names unknown.
        listed = report["status"]["images"]
        kept = random.Random(report["metadata"]["name"]).sample(range(len(listed)), min(HELD, len(listed)))
        report["status"]["images"] = [listed[place] for place in sorted(kept)]
    in_parallel(bed, [("POST", f"{root}/nodelayers", report, "") for report in reports])
    statuses = [
        ("PATCH", f"{root}/nodelayers/{report['metadata']['name']}/status", {"status": report["status"]}, "")
        for report in reports
    ]
    in_parallel(bed, statuses)
