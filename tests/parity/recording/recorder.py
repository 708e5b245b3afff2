"""
Recorder: shows cases to the real kube-scheduler, one after the other, and returns its answers.

    objects of the case --> wait until its log shows them --> pod under test --> binding, or refusal and preemption
    remove the pod under test --> wait --> remove the rest --> wait --> next case

The API behind it is the façade, or another `RecordingApi`.

Nodes and pods travel on separate watches, so the recorder waits for the log to mirror both before it shows the pod
under test. A case that does not end within `LIMIT` seconds ends the recording with an error.
"""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from lamina.apiserver.child_process import ChildProcess
from lamina.apiserver.facade_run import free_port
from tests.parity.case_files import ParityCase, PreemptionCandidate, RecordedAnswer, RecordedCase
from tests.parity.case_generator import draw_case
from tests.parity.case_objects import KubeJson, pod_key
from tests.parity.recording.case_stage import SchedulerWrites
from tests.parity.recording.recording_api import FacadeApi, RecordingApi
from tests.parity.recording.recording_extender import RecordingExtender
from tests.parity.recording.recording_log import FLAGS, RecordingLog
from tests.parity.storage_cases import SELECTED_NODE

LIMIT: Final = 20.0
GATES: Final = ("--feature-gates=OpportunisticBatching=false",)
"""Batching may offer an extender one node only, so it is off."""
PROVISIONS: Final = 0.2
"""Seconds between filtering and a volume for a claim whose node was selected before; the scheduler writes it first."""
CLAIMS: Final = "persistentvolumeclaims"
SPARED: Final = 0.3
"""Seconds to wait for the end of a preemption that is seldom logged: all its victims are being deleted already."""
CONFIG: Final = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: "{kubeconfig}", qps: 5000, burst: 10000}}
leaderElection: {{leaderElect: false}}
percentageOfNodesToScore: 100
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
extenders:
- urlPrefix: "{extender}"
  filterVerb: filter
  preemptVerb: preempt
  nodeCacheCapable: true
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: DefaultPreemption
    args: {{minCandidateNodesPercentage: 100, minCandidateNodesAbsolute: 1000}}
"""


class StuckCaseError(Exception):
    """The scheduler did not answer a case in time."""


class CaseRecorder:
    """One kube-scheduler and what it is connected to."""

    def __init__(self, api: Callable[[SchedulerWrites], RecordingApi] = FacadeApi) -> None:
        """Nothing runs before `running`; *api* makes the API that kube-scheduler is connected to."""
        self._changed = asyncio.Event()
        self._writes = SchedulerWrites(self._changed.set)
        self._api = api(self._writes)
        self._log = RecordingLog(self._changed.set)
        self._extender = RecordingExtender(self._changed.set)
        self._process: ChildProcess | None = None

    @contextlib.asynccontextmanager
    async def running(
        self,
        program: str,
        fixtures: dict[str, list[KubeJson]],
        gates: Sequence[str] = GATES,
        cases: Iterable[ParityCase] = (),
    ) -> AsyncIterator[None]:
        """
        Run *program* while the block runs; *gates* are further flags.

        *fixtures* and the storage objects of *cases* exist from the beginning, because the scheduler's log does not
        show when it has read such an object.
        """
        folder = Path(tempfile.mkdtemp(prefix="lamina-parity-"))
        objects = [fixtures, *(case.objects for case in cases)]
        try:
            await self._extender.start()
            kubeconfig, config = await self._api.start(folder, objects), folder / "config.yaml"
            config.write_text(CONFIG.format(kubeconfig=kubeconfig, extender=self._extender.url))
            self._process = await ChildProcess.start(
                [
                    program,
                    f"--config={config}",
                    *gates,
                    "--bind-address=127.0.0.1",
                    f"--secure-port={free_port()}",
                    *FLAGS,
                ],
                read=self._log.read,
            )
            await self._connect()
            yield
        finally:
            if self._process is not None:
                await self._process.stop()
            await self._extender.stop()
            await self._api.stop()
            shutil.rmtree(folder, ignore_errors=True)

    async def _connect(self) -> None:
        """
        Wait until the scheduler watches nodes and pods.

        It handles the objects of its first lists in any order, and the size of an image is that of the first node.
        """
        warm_up = draw_case("node-unschedulable", 0)
        await self._set_up(warm_up)
        await self._clear(warm_up)

    async def record(self, cases: Iterable[ParityCase]) -> AsyncIterator[RecordedCase]:
        """Yield each case with the scheduler's answer."""
        for case in cases:
            await self._set_up(case)
            answer = await self._answer(case)
            await self._clear(case)
            yield RecordedCase(case, answer)

    async def _set_up(self, case: ParityCase) -> None:
        log, api = self._log, self._api
        log.touched.clear()
        await api.show_cluster(case)
        names, pods = set(case.names()), {pod_key(pod) for pod in case.placed}
        await self._until(lambda: log.nodes == names and log.pods == pods, case, "show its objects")
        last = case.nodes[-1]
        await api.touch_node(last)
        await self._until(lambda: last["metadata"]["name"] in log.touched, case, "show its nodes")

    async def _answer(self, case: ParityCase) -> RecordedAnswer:
        log, writes, extender = self._log, self._writes, self._extender
        name = case.pod["metadata"]["name"]
        writes.clear()
        extender.clear()
        log.begin(pod_key(case.pod))
        await self._api.show_pod(case)
        if selected := [one for one in case.objects.get(CLAIMS, ()) if SELECTED_NODE in _annotations(one)]:
            await self._until(lambda: name in writes.refused or name in extender.feasible, case, "filter nodes")
            await asyncio.sleep(PROVISIONS)
            await self._api.sync_claims(selected)
        await self._until(lambda: name in writes.refused or (name in writes.bound and log.bound), case, "place its pod")
        places = {node: place for place, node in enumerate(case.names())}
        if name not in writes.refused:
            return _placed(extender.feasible[name], log.scores, writes.bound[name], places)
        message, nominated = writes.refused[name]
        candidates = {node: self._named(one) for node, one in sorted(extender.candidates.get(name, {}).items())}
        if nominated and any(one.victims for one in candidates.values()):
            evicted = set(candidates[nominated].victims) - _leaving(case) if nominated in candidates else set()
            with contextlib.suppress(StuckCaseError):
                await self._until(lambda: log.preempted, case, "preempt", LIMIT if evicted else SPARED)
            await self._api.catch_up()
        return RecordedAnswer(
            message=message,
            nominated=places.get(nominated, -1),
            victims=sorted(writes.deleted),
            candidates=candidates,
        )

    def _named(self, candidate: PreemptionCandidate) -> PreemptionCandidate:
        """Return a candidate with names instead of uids."""
        return PreemptionCandidate(sorted(map(self._api.pod_name, candidate.victims)), candidate.violations)

    async def _clear(self, case: ParityCase) -> None:
        log, key = self._log, pod_key(case.pod)
        if log.bound:
            # The binding is an update of the pod for the scheduler; its deletion is logged under the pod's new kind.
            await self._until(lambda: key in log.pods, case, "see its binding")
        await self._api.hide_pod(case.pod)
        log.waiting -= {key} if log.bound else set()
        await self._until(lambda: key not in log.pods and key not in log.waiting, case, "forget its pod")
        await self._api.hide_cluster(case)
        await self._until(lambda: not log.nodes and not log.pods, case, "forget its objects")

    async def _until(self, condition: Callable[[], bool], case: ParityCase, what: str, limit: float = LIMIT) -> None:
        try:
            async with asyncio.timeout(limit):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            tail = "" if self._process is None else "\n".join(self._process.tail)
            raise StuckCaseError(f"{case.family} {case.number}: kube-scheduler did not {what}\n{tail}") from None


def _leaving(case: ParityCase) -> set[str]:
    """Return the names of the pods that are being deleted from the beginning."""
    return {one["metadata"]["name"] for one in case.placed if "deletionTimestamp" in one["metadata"]}


def _annotations(found: KubeJson) -> dict[str, str]:
    annotations: dict[str, str] = found["metadata"].get("annotations", {})
    return annotations


def _placed(
    feasible: list[str], scores: dict[str, dict[str, int]], node: str, places: dict[str, int]
) -> RecordedAnswer:
    ordered = sorted(feasible, key=places.__getitem__)
    by_plugin = {plugin: [given[name] for name in ordered] for plugin, given in sorted(scores.items())}
    return RecordedAnswer(
        feasible=[places[name] for name in ordered],
        scores={plugin: given for plugin, given in by_plugin.items() if any(given)},
        chosen=places[node],
    )
