"""
A Kubernetes API for tests of clients: a simulated cluster on 127.0.0.1, in this process.

    with lamina.testing.apiserver(nodes=3) as cluster:
        client = MyClient(kubeconfig=cluster.kubeconfig)
        ...
        cluster.advance(60)                            # virtual seconds; the test does not wait
        cluster.faults.fail(429, path="/api/v1/pods")  # the next list of pods is rejected

The server runs in a thread with an event loop of its own, so tests with and without asyncio can use it. Other languages
start ``lamina apiserver --manual --ready-file FILE`` and have the same functions at ``/lamina/``.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from lamina.apiserver.api_faults import FaultRule
from lamina.apiserver.facade_parts import EPOCH
from lamina.apiserver.real_time import ClockPace, ManualPace, QuietPace, RealTimePace
from lamina.apiserver.served_cluster import ServedCluster, ServedClusterSettings, equal_nodes
from lamina.apiserver.watch_streams import MOST_UNSENT
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.serving.event_loop import new_loop
from lamina.simulator.workloads import Scenario, load_scenario

T = TypeVar("T")

ClockMode = Literal["manual", "virtual", "real-time"]
PACES: Final[dict[ClockMode, Callable[[], ClockPace]]] = {
    "manual": ManualPace,
    "virtual": QuietPace,
    "real-time": RealTimePace,
}
START_SECONDS: Final = 60.0


class ClusterFaults:
    """Lets requests of clients fail."""

    def __init__(self, cluster: "ApiCluster") -> None:
        """Act on *cluster*."""
        self._cluster = cluster

    def fail(
        self,
        status: int,
        *,
        method: str = "",
        path: str = "*",
        times: int = 1,
        watch: bool | None = None,
        delay: float = 0.0,
        message: str = "",
    ) -> None:
        """
        Answer the next *times* matching requests with an error, after *delay* real seconds.

        *path* may contain ``*``. *watch* selects only watches, or only other requests.
        """
        self._add(FaultRule(method, path, watch, status, message, times, delay))

    def delay(
        self, seconds: float, *, method: str = "", path: str = "*", times: int = 1, watch: bool | None = None
    ) -> None:
        """Answer the next *times* matching requests after *seconds* real seconds."""
        self._add(FaultRule(method, path, watch, times=times, delay=seconds))

    def close_watches(self, path: str = "*", status: int = 0) -> int:
        """End the open watches on *path*, with an error event if *status* is given; return their number."""
        rule = FaultRule(path=path, status=status, close_watches=True)
        return self._cluster.call(lambda served: served.facade.server.close_watches(rule))

    def clear(self) -> None:
        """Remove all faults that have not happened yet."""
        self._cluster.call(lambda served: served.facade.server.faults.clear())

    @property
    def pending(self) -> int:
        """Number of requests that are still going to fail."""
        return self._cluster.call(lambda served: sum(rule.times for rule in served.facade.server.faults.rules))

    def _add(self, rule: FaultRule) -> None:
        self._cluster.call(lambda served: served.facade.server.faults.add(rule))


class ApiCluster:
    """A running test cluster."""

    def __init__(self, loop: asyncio.AbstractEventLoop, served: ServedCluster) -> None:
        """Control *served*, which runs on *loop* in another thread."""
        self._loop = loop
        self._served = served
        self.url: Final = served.url
        """Address of the API."""
        self.kubeconfig: Final = served.kubeconfig
        """Path of a kubeconfig."""
        self.faults: Final = ClusterFaults(self)

    @property
    def now(self) -> float:
        """The virtual time in seconds."""
        return self.call(lambda served: served.facade.control.caught_up())

    def advance(self, seconds: float) -> None:
        """Let *seconds* of virtual time pass at once; watches get the events in order."""
        self.call(lambda served: served.facade.control.advance(seconds))

    @property
    def requests(self) -> int:
        """Number of requests so far."""
        return self.call(lambda served: served.facade.server.requests)

    @property
    def watches(self) -> int:
        """Number of open watches."""
        return self.call(lambda served: served.facade.server.watches)

    def call(self, work: Callable[[ServedCluster], T]) -> T:
        """Call *work* in the server's thread, and return its result."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work(self._served))
            except Exception as error:  # noqa: BLE001 - raised again in the calling thread
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result()


@contextmanager
def apiserver(
    scenario: Scenario | str | Path | None = None,
    *,
    nodes: int = 3,
    profile: str = "",
    clock: ClockMode = "manual",
    epoch: float = EPOCH,
    seed: int = 0,
    tls: bool = False,
    watch_buffer: int = MOST_UNSENT,
) -> Iterator[ApiCluster]:
    """
    Serve a simulated cluster; stop it when the block ends.

    The cluster is that of *scenario*, or has *nodes* equal nodes. With a *profile* such as ``kube-default``, Lamina
    schedules pods; otherwise only clients do. *clock* says when virtual time passes; with ``manual`` only in `advance`.
    Watches whose clients do not read are cut off when all together hold *watch_buffer* bytes.
    """
    settings = ServedClusterSettings(
        scenario=_scenario(scenario, nodes, seed),
        pace=PACES[clock](),
        epoch=epoch,
        seed=seed,
        configuration=named(profile, registry()) if profile else None,
        tls=tls,
        watch_buffer=watch_buffer,
    )
    thread = _ServerThread(settings)
    try:
        yield thread.begin()
    finally:
        thread.end()


def _scenario(given: Scenario | str | Path | None, nodes: int, seed: int) -> Scenario:
    if given is None:
        return equal_nodes(nodes)
    return given if isinstance(given, Scenario) else load_scenario(given, seed)


class _ServerThread:
    """Runs one cluster in a thread."""

    def __init__(self, settings: ServedClusterSettings) -> None:
        self._settings = settings
        self._ready: Future[ApiCluster] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="lamina apiserver", daemon=True)

    def begin(self) -> ApiCluster:
        """Return the cluster when it is ready."""
        self._thread.start()
        return self._ready.result(START_SECONDS)

    def end(self) -> None:
        """Stop the cluster, and wait for its end."""
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        served = ServedCluster(self._settings)
        try:
            await served.start()
        except Exception as error:  # noqa: BLE001 - raised again in the calling thread
            self._ready.set_exception(error)
            return
        self._ready.set_result(ApiCluster(self._loop, served))
        try:
            await _first_of(served.run(), self._stopping.wait())
        finally:
            await served.stop()


async def _first_of(*works: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.create_task(one) for one in works]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
