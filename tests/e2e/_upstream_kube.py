"""
kube-scheduler in a retold case: a new process for each case, behind a façade whose objects are those of the case.

    objects before --> kube-scheduler starts --> log shows them --> stage: hide, show --> wait --> what became of the pods

Nothing ends victims, because there is no kubelet. Two controllers of a real cluster are acted out for volumes: a claim
is bound to the volume that names it, and a claim with a selected node gets a new volume there.
"""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from lamina.apiserver.child_process import ChildProcess
from lamina.apiserver.facade_run import free_port
from lamina.apiserver.facade_server import FacadeServer
from lamina.apiserver.kubeconfig import write_kubeconfig
from tests.parity.case_objects import KubeJson, pod_key
from tests.parity.recording.case_stage import CaseStage, SchedulerWrites
from tests.parity.recording.recording_log import FLAGS, RecordingLog
from tests.upstream_cases.case_model import Expectation, Observation, Stage, UpstreamCase
from tests.upstream_cases.kube_objects import NAMESPACE, namespace

LIMIT: Final = 15.0
"""Seconds to wait for a scheduler that starts, and for an expectation."""
QUIET: Final = 0.5
"""Seconds to wait for what is not expected: further victims, or pods that must stay where they are."""
RESOURCES: Final = {
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
    "Service": "services",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "StorageClass": "storageclasses",
    "CSINode": "csinodes",
    "CSIDriver": "csidrivers",
}
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
CONFIG: Final = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: "{kubeconfig}", qps: 5000, burst: 10000}}
leaderElection: {{leaderElect: false}}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
"""


async def play(case: UpstreamCase, program: str) -> list[dict[str, Observation]]:
    """Let a new kube-scheduler decide the case; return what became of the pods after each stage."""
    cluster = KubeCluster()
    cluster.show(namespace(NAMESPACE), *case.before)
    async with cluster.running(program):
        await cluster.known(case)
        return [await cluster.decided(stage) for stage in case.stages]


class KubeCluster:
    """A façade and one kube-scheduler."""

    def __init__(self) -> None:
        """Start empty; nothing runs before `running`."""
        self._changed = asyncio.Event()
        self._stage = CaseStage(SchedulerWrites(self._changed.set))
        self._log = RecordingLog(self._changed.set)

    def show(self, *objects: KubeJson) -> None:
        """Create or replace objects."""
        for one in objects:
            self._stage.show(RESOURCES[one["kind"]], one)

    @contextlib.asynccontextmanager
    async def running(self, program: str) -> AsyncIterator[None]:
        """Run *program* while the block runs."""
        folder = Path(tempfile.mkdtemp(prefix="lamina-upstream-"))
        server, process = FacadeServer(self._stage.handler), None
        controller = asyncio.create_task(self._bind_claims())
        try:
            await server.start()
            kubeconfig, config = folder / "kubeconfig", folder / "config.yaml"
            write_kubeconfig(kubeconfig, server.url)
            config.write_text(CONFIG.format(kubeconfig=kubeconfig))
            serving = ("--bind-address=127.0.0.1", f"--secure-port={free_port()}")
            process = await ChildProcess.start([program, f"--config={config}", *serving, *FLAGS], read=self._log.read)
            yield
        finally:
            controller.cancel()
            if process is not None:
                await process.stop()
            await server.stop()
            shutil.rmtree(folder, ignore_errors=True)

    async def known(self, case: UpstreamCase) -> None:
        """Wait until the scheduler knows the nodes and pods that exist before it starts."""
        nodes = {one["metadata"]["name"] for one in case.before if one["kind"] == "Node"}
        pods = {pod_key(one) for one in case.before if one["kind"] == "Pod"}
        await self._until(lambda: self._log.nodes == nodes and self._log.pods == pods, LIMIT)

    async def decided(self, stage: Stage) -> dict[str, Observation]:
        """Change the cluster, wait, and return what became of the pods."""
        for one in stage.hide:
            self._stage.hide(RESOURCES[one["kind"]], one)
            await self._until(partial(self._forgot, one), LIMIT)
        self.show(*stage.show)
        wanted = stage.expect
        await self._until(lambda: all(self._is(name, one) for name, one in wanted.items()), LIMIT)
        if any(not one.nodes for one in wanted.values()):
            await asyncio.sleep(QUIET)
        return {name: found for name in wanted if (found := self._observed(name)) is not None}

    def _forgot(self, one: KubeJson) -> bool:
        """Return whether a deleted node or running pod is unknown; their watches are separate."""
        if one["kind"] == "Node":
            return one["metadata"]["name"] not in self._log.nodes
        return pod_key(one) not in self._log.pods

    def _is(self, name: str, expected: Expectation) -> bool:
        found = self._observed(name)
        return found is not None and expected.allows(found)

    def _observed(self, name: str) -> Observation | None:
        """Return what became of a pod, or None while the scheduler has not decided."""
        pods = self._stage.objects("pods")
        found = next((one for one in pods if one["metadata"]["name"] == name), None)
        if found is None:
            return None
        node, status = found["spec"].get("nodeName", ""), found["status"]
        if not node and not any(one["type"] == "PodScheduled" for one in status.get("conditions", ())):
            return None
        nominated = status.get("nominatedNodeName", "")
        victims = [one["metadata"]["name"] for one in pods if one["metadata"].get("deletionTimestamp")]
        return Observation(node, nominated, frozenset(victims if nominated else ()))

    async def _bind_claims(self) -> None:
        """Act like the controllers that provision volumes and bind claims."""
        while True:
            await asyncio.sleep(0.05)
            claims = {one["metadata"]["name"]: one for one in self._stage.objects("persistentvolumeclaims")}
            for one in self._stage.objects("persistentvolumes"):
                claim = claims.get(one["spec"].get("claimRef", {}).get("name", ""))
                if claim is not None and not claim["spec"].get("volumeName"):
                    self.show(bound(claim, one["metadata"]["name"]))
            for claim in claims.values():
                if SELECTED_NODE in claim["metadata"].get("annotations", {}) and not claim["spec"].get("volumeName"):
                    self.show(provisioned(claim))

    async def _until(self, condition: Callable[[], bool], limit: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()


def bound(claim: dict[str, Any], volume: str) -> KubeJson:
    """Return a claim after the volume controller has bound it."""
    metadata = claim["metadata"]
    annotations = {**metadata.get("annotations", {}), BIND_COMPLETED: "yes"}
    return {
        **claim,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**claim["spec"], "volumeName": volume},
        "status": {"phase": "Bound"},
    }


def provisioned(claim: dict[str, Any]) -> KubeJson:
    """Return the volume that a provisioner makes for a claim."""
    metadata, spec = claim["metadata"], claim["spec"]
    reference = {"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": metadata["name"]}
    return {
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": {"name": f"volume-of-{metadata['name']}", "uid": f"volume-of-{metadata['name']}"},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "claimRef": {**reference, "uid": metadata["uid"]},
            "hostPath": {"path": "/tmp/provisioned"},
        },
        "status": {"phase": "Bound"},
    }
