"""
What the API server says happened, followed by a witness that has nothing to do with the scheduler.

The witness watches every pod from the first to the last and writes down each node it was ever seen on, so that a pod
bound twice cannot hide; the account at the end adds up requests node by node, as a kubelet would.
"""

import contextlib
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from testbed import Testbed
from testbed.requests import Requests
from tests.integration.scheduler.watch_reader import Item, WatchReader

ENDED: Final = {"Succeeded", "Failed"}
THREADS: Final = 8


# ------------------------------------------------------------------------------------------------------------ making it


def pod(
    name: str, *, cpu: str = "100m", memory: str = "64Mi", scheduler: str = "lamina", **spec: Any
) -> dict[str, Any]:
    """A pod that asks for room."""
    container = {
        "name": "main",
        "image": "example.org/app:1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


def add_pods(bed: Testbed, pods: Iterable[Mapping[str, Any]], *, over: float = 0.0, threads: int = THREADS) -> None:
    """Create pods, several at a time, spread evenly over *over* seconds. A server that is away is waited for."""
    pods = list(pods)
    began, pause = time.monotonic(), over / max(len(pods), 1)
    with contextlib.closing(bed.site.requests()) as requests, ThreadPoolExecutor(threads) as pool:

        def add(numbered: tuple[int, Mapping[str, Any]]) -> None:
            number, wanted = numbered
            time.sleep(max(began + number * pause - time.monotonic(), 0.0))
            create(requests, wanted)

        for _ in pool.map(add, enumerate(pods)):
            pass


def create(requests: Requests, wanted: Mapping[str, Any], patience: float = 60.0) -> None:
    """Create a pod; if the answer was lost, that it exists is as good."""
    until = time.monotonic() + patience
    while True:
        try:
            requests.send("POST", f"/api/v1/namespaces/{wanted['metadata']['namespace']}/pods", wanted)
            return
        except Exception as error:
            status = getattr(error, "status", 0)
            if status == 409:
                return
            if (status and status < 500 and status not in {403, 429}) or time.monotonic() > until:
                raise
            time.sleep(0.2)


class Arrivals:
    """Pods that arrive while the test goes on with something else."""

    def __init__(self, bed: Testbed, pods: Iterable[Mapping[str, Any]], *, over: float) -> None:
        self._thread = threading.Thread(target=self._run, args=(bed, list(pods), over), daemon=True)
        self._error: BaseException | None = None
        self._thread.start()

    def _run(self, bed: Testbed, pods: list[Mapping[str, Any]], over: float) -> None:
        try:
            add_pods(bed, pods, over=over)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            self._error = error

    def wait(self, within: float = 120.0) -> None:
        """Wait until all were created."""
        self._thread.join(within)
        if self._error is not None:
            raise self._error
        assert not self._thread.is_alive(), "pods are still being created"


# ---------------------------------------------------------------------------------------------------------- watching it


@dataclass
class Seen:
    """One pod, as the witness knows it."""

    name: str
    scheduler: str
    nodes: list[str] = field(default_factory=list)
    """Every node it was seen on, one after the other."""
    created_at: float = 0.0
    bound_at: float = 0.0
    """By the witness's monotonic clock."""
    version: int = 0
    """The resource version with which its binding was seen."""
    phase: str = ""
    gone: bool = False
    cpu: int = 0


class Witness:
    """Watches pods until told to stop, over restarts of the server."""

    def __init__(self, bed: Testbed, on_bound: Callable[[dict[str, Any]], None] | None = None) -> None:
        """*on_bound* is told of every pod that was bound, in the order of binding."""
        self._on_bound = on_bound
        self.pods: dict[str, Seen] = {}
        self.lists = 0
        self._lock = threading.Lock()
        # A silent connection is looked at anew: the list that begins the next one misses nothing that matters here.
        self._reader = WatchReader(bed, "/api/v1/pods", self._list, self._see, silence=2.0)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.stop(within=15.0)

    def bound(self) -> int:
        """How many pods have been seen on a node."""
        with self._lock:
            return sum(bool(seen.nodes) for seen in self.pods.values())

    def moved(self) -> list[Seen]:
        """Pods that were seen on more than one node: there must be none."""
        with self._lock:
            return [seen for seen in self.pods.values() if len(seen.nodes) > 1]

    def all(self) -> list[Seen]:
        """Everything seen so far."""
        with self._lock:
            return list(self.pods.values())

    def _list(self, items: list[Item]) -> None:
        self.lists += 1
        for item in items:
            self._see("ADDED", item)

    def _see(self, kind: str, item: dict[str, Any]) -> None:
        told = False
        with self._lock:
            uid = item["metadata"]["uid"]
            seen = self.pods.get(uid)
            if seen is None:
                seen = self.pods[uid] = Seen(item["metadata"]["name"], item["spec"]["schedulerName"])
                seen.created_at = time.monotonic()
                seen.cpu = asked(item)["cpu"]
            node = item["spec"].get("nodeName", "")
            if node and (not seen.nodes or seen.nodes[-1] != node):
                seen.nodes.append(node)
                seen.bound_at = time.monotonic()
                seen.version = int(item["metadata"]["resourceVersion"])
                told = True
            seen.phase = item.get("status", {}).get("phase", "")
            seen.gone = kind == "DELETED"
        if told and self._on_bound is not None:
            self._on_bound(item)


# -------------------------------------------------------------------------------------------------------- adding it up


def asked(item: Mapping[str, Any]) -> Counter[str]:
    """What a pod asks for, in thousandths; itself counts as one pod."""
    wanted: Counter[str] = Counter({"pods": 1000})
    for container in item["spec"]["containers"]:
        for resource, amount in container.get("resources", {}).get("requests", {}).items():
            wanted[resource] += thousandths(amount)
    return wanted


def thousandths(amount: str) -> int:
    """A quantity as a number; read by four lines of our own, so that Lamina's reading is not taken for the truth."""
    number, suffix = re.fullmatch(r"(\d+)(m|Ki|Mi|Gi|)", amount).groups()
    return int(number) * {"m": 1, "": 1000, "Ki": 1000 * 2**10, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}[suffix]


def overcommitted(bed: Testbed) -> list[str]:
    """Nodes whose pods ask for more than there is, in words."""
    used: dict[str, Counter[str]] = {}
    for item in bed.api("GET", "/api/v1/pods")["items"]:
        node = item["spec"].get("nodeName", "")
        if node and item.get("status", {}).get("phase") not in ENDED:
            used.setdefault(node, Counter()).update(asked(item))
    found = []
    for item in bed.api("GET", "/api/v1/nodes")["items"]:
        room = {resource: thousandths(amount) for resource, amount in item["status"]["allocatable"].items()}
        name = item["metadata"]["name"]
        for resource, amount in used.pop(name, Counter()).items():
            if amount > room.get(resource, 0):
                found.append(f"{name}: {resource} {amount / 1000:g} of {room.get(resource, 0) / 1000:g}")
    return found + [f"{name}: not there, and has pods" for name in used]


def waiting(bed: Testbed) -> list[str]:
    """Pods without a node."""
    return [
        item["metadata"]["name"] for item in bed.api("GET", "/api/v1/pods")["items"] if not item["spec"].get("nodeName")
    ]
