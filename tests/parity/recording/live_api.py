"""
A real API server as the API of a recording, without controllers, so that nothing changes but by kube-scheduler.

    object of a case --sendable--> POST --> PATCH of its status --> DELETE with grace, if the case has it being deleted
    watch of all pods --> SchedulerWrites

The API server chooses uids, so references by uid are translated: claims are created before their volumes. A claim that the
pod under test owns is created after this pod, which a scheduling gate holds back meanwhile. Admission plugins that change
pods and nodes are off (`FLAGS`), as the cases have their objects as they are stored.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from testbed import Testbed
from testbed.control_plane import SCHEDULER as SCHEDULER_USER
from testbed.errors import RefusedError
from tests.integration.scheduler.watch_reader import WatchReader
from tests.parity.case_files import ParityCase
from tests.parity.case_objects import KubeJson
from tests.parity.recording.case_stage import KINDS, SchedulerWrites
from tests.parity.recording.live_volumes import LiveVolumes
from tests.parity.recording.recording_api import ObjectsByResource
from tests.parity.recording.sendable_objects import path_of, sendable, with_uids

ADMISSION_OFF: Final = (
    "DefaultTolerationSeconds",  # adds tolerations
    "Priority",  # refuses a priority without a class
    "RuntimeClass",  # refuses overhead without a class
    "ServiceAccount",  # requires an account, which a controller would make
    "StorageObjectInUseProtection",  # adds finalizers, which a controller would remove
    "TaintNodesByCondition",  # taints new nodes
    "PodTopologyLabels",  # adds labels
)
FLAGS: Final = {
    "kube-apiserver": (
        f"--disable-admission-plugins={','.join(ADMISSION_OFF)}",
        # Without this one, no pod can ask for a host's network and its own users.
        "--feature-gates=UserNamespacesHostNetworkSupport=true",
    )
}
"""Further arguments of the testbed's API server."""
THREADS: Final = 8
PODS: Final = "/api/v1/pods"
SILENCE: Final = 60.0
GATE: Final = "example.com/claims"
GATED: Final = "SchedulingGated"
SEEN: Final = 0.5
"""Seconds until kube-scheduler has read a new claim; its log does not show that."""
FIRST: Final = ("namespaces", "storageclasses", "csidrivers", "csinodes", "persistentvolumeclaims", "persistentvolumes")
"""Resources to which others refer, in this order."""
OUT_OF_TIME: Final = {"gracePeriodSeconds": 0}


class LiveApi:
    """The API server of a testbed that was started with `FLAGS`."""

    def __init__(self, bed: Testbed, writes: SchedulerWrites) -> None:
        """kube-scheduler's writes go to *writes*."""
        self._bed = bed
        self._writes = writes
        self._requests = bed.site.requests()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="live-api")
        self._volumes = LiveVolumes(self._requests)
        self._volume_work: asyncio.Task[None] | None = None
        self._reader: WatchReader | None = None
        self._shown: list[str] = []
        """Paths of the objects that exist during the whole recording."""
        self._uids: dict[str, str] = {}
        """Uid in the case → uid of the API server."""
        self._names: dict[str, str] = {}
        """Uid of a placed pod → name."""
        self._leaving: set[str] = set()
        """Uids of placed pods that are being deleted from the beginning."""
        self._pod = ""

    # -- start and stop ------------------------------------------------------------------------------------------------

    async def start(self, folder: Path, objects: Iterable[ObjectsByResource]) -> Path:
        """Create *objects*, and follow all pods."""
        by_resource: dict[str, list[KubeJson]] = {}
        for one in objects:
            for resource, found in one.items():
                by_resource.setdefault(resource, []).extend(found)
        await asyncio.to_thread(self._show_shared, by_resource)
        loop = asyncio.get_running_loop()

        def changed(kind: str, item: dict[str, Any]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._note, kind, item)

        def listed(items: list[dict[str, Any]]) -> None:
            for item in items:
                changed("ADDED", item)

        self._reader = WatchReader(self._bed, PODS, listed, changed, silence=SILENCE)
        self._reader.start()
        return self._bed.kubeconfig(SCHEDULER_USER)

    def _show_shared(self, objects: ObjectsByResource) -> None:
        others = sorted(objects.keys() - set(FIRST))
        for resource in (*FIRST, *others):
            for one in objects.get(resource, ()):
                if not _of_pod(one):
                    self._show_one(resource, one)

    def _show_one(self, resource: str, found: KubeJson) -> None:
        with contextlib.suppress(_ExistsError):
            self._create(resource, found)
            if resource != "namespaces":  # no controller would empty one that is deleted
                self._shown.append(f"{path_of(resource, found)}/{found['metadata']['name']}")

    async def stop(self) -> None:
        """Delete what `start` created, and follow pods no longer."""
        if self._reader is not None:
            self._reader.stop()
        await self._end_volume_work()
        await asyncio.to_thread(self._hide_shared)
        self._pool.shutdown()
        self._requests.close()

    def _hide_shared(self) -> None:
        for path in reversed(self._shown):
            self._delete(path)
        self._volumes.clear()

    # -- the cluster of a case -------------------------------------------------------------------------------------------

    async def show_cluster(self, case: ParityCase) -> None:
        """Create the nodes one after the other, and the placed pods side by side."""
        self._names, self._leaving = {}, set()
        await asyncio.to_thread(self._show_nodes, case.nodes)
        await asyncio.to_thread(lambda: list(self._pool.map(self._show_placed, case.placed)))

    def _show_nodes(self, nodes: list[KubeJson]) -> None:
        # The size of an image is that of the first node that has it.
        for node in nodes:
            self._create("nodes", node)

    def _show_placed(self, pod: KubeJson) -> None:
        made = self._create("pods", pod)
        uid = made["metadata"]["uid"]
        self._names[uid] = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            self._leaving.add(uid)
            grace = {"gracePeriodSeconds": pod["metadata"].get("deletionGracePeriodSeconds", 30)}
            self._requests.send("DELETE", f"{path_of('pods', pod)}/{pod['metadata']['name']}", grace)

    async def touch_node(self, node: KubeJson) -> None:
        """Update a node."""
        path = f"{path_of('nodes', node)}/{node['metadata']['name']}"
        patch = {"metadata": {"annotations": {"example.com/touched": "yes"}}}
        await asyncio.to_thread(self._requests.send, "PATCH", path, patch)

    async def hide_cluster(self, case: ParityCase) -> None:
        """Delete all nodes, and all pods of the case's namespaces, without grace."""
        namespaces = sorted({pod["metadata"]["namespace"] for pod in (case.pod, *case.placed)})
        paths = [*(f"/api/v1/namespaces/{one}/pods" for one in namespaces), "/api/v1/nodes"]
        await asyncio.to_thread(lambda: list(self._pool.map(self._delete, paths)))

    # -- the pod under test ----------------------------------------------------------------------------------------------

    async def show_pod(self, case: ParityCase) -> None:
        """Create the pod under test, and begin to act as volume controllers if it has claims."""
        self._pod = case.pod["metadata"]["name"]
        owned = [one for one in case.objects.get("persistentvolumeclaims", ()) if _of_pod(one)]
        await asyncio.to_thread(self._show_pod, case.pod, owned)
        if case.objects.get("persistentvolumeclaims"):
            self._volumes.begin(case)
            self._volume_work = asyncio.create_task(self._volumes.work(), name="volumes of a case")

    def _show_pod(self, pod: KubeJson, owned: list[KubeJson]) -> None:
        if not owned:
            self._create("pods", pod)
            return
        self._create("pods", {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": GATE}]}})
        for claim in owned:
            self._show_one("persistentvolumeclaims", claim)
        time.sleep(SEEN)
        path = f"{path_of('pods', pod)}/{pod['metadata']['name']}"
        self._requests.send("PATCH", path, {"spec": {"schedulingGates": None}})

    async def sync_claims(self, claims: list[KubeJson]) -> None:
        """Let volumes be made for claims whose node was selected before the case began."""
        self._volumes.release([one["metadata"]["name"] for one in claims])

    async def catch_up(self) -> None:
        """Read all pods: the watch may be behind."""
        found = await asyncio.to_thread(self._requests.send, "GET", PODS)
        for item in found["items"]:
            self._note("LISTED", item)

    async def hide_pod(self, pod: KubeJson) -> None:
        """Delete the pod under test without grace."""
        await self._end_volume_work()
        await asyncio.to_thread(self._delete, f"{path_of('pods', pod)}/{pod['metadata']['name']}")

    async def _end_volume_work(self) -> None:
        if self._volume_work is not None:
            self._volume_work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._volume_work
            self._volume_work = None

    def pod_name(self, uid: str) -> str:
        """Return the name of a placed pod."""
        return self._names[uid]

    # -- what kube-scheduler writes --------------------------------------------------------------------------------------

    def _note(self, kind: str, item: dict[str, Any]) -> None:
        metadata, status = item["metadata"], item.get("status", {})
        uid = metadata["uid"]
        if kind == "DELETED":
            return
        if metadata["name"] == self._pod:
            conditions = [one for one in status.get("conditions", ()) if one["type"] == "PodScheduled"]
            refusal = next((one for one in conditions if one["status"] == "False" and one["reason"] != GATED), None)
            if node := item["spec"].get("nodeName"):
                self._writes.pod_bound(item, node)
            elif refusal is not None:
                self._writes.pod_refused(item, refusal.get("message", ""))
        elif uid in self._names and uid not in self._leaving and "deletionTimestamp" in metadata:
            self._leaving.add(uid)
            self._writes.pod_deleted(item, metadata["deletionGracePeriodSeconds"])

    # -- requests --------------------------------------------------------------------------------------------------------

    def _create(self, resource: str, found: KubeJson) -> dict[str, Any]:
        """Create an object with its status, and return it as it was created."""
        _, version, kind = KINDS[resource]
        body = {"kind": kind, "apiVersion": version, **with_uids(sendable(resource, found), self._uids)}
        path = path_of(resource, found)
        try:
            made = self._requests.send("POST", path, body)
        except RefusedError as error:
            if error.reason == "AlreadyExists":
                raise _ExistsError from error
            raise
        self._uids[found["metadata"].get("uid", "")] = made["metadata"]["uid"]
        status = found.get("status") or {}
        if resource != "nodes" and any(status.get(key) != made.get("status", {}).get(key) for key in status):
            self._requests.send("PATCH", f"{path}/{found['metadata']['name']}/status", {"status": status})
        if resource != "pods" and "deletionTimestamp" in found["metadata"]:
            self._requests.send("DELETE", f"{path}/{found['metadata']['name']}")
        return made

    def _delete(self, path: str) -> None:
        """Delete an object, or all of a collection, without grace; it may be gone already."""
        with contextlib.suppress(RefusedError):
            self._requests.send("DELETE", path, OUT_OF_TIME)


class _ExistsError(Exception):
    """The object exists already."""


def _of_pod(found: KubeJson) -> bool:
    """Return whether a pod owns the object."""
    return any(one["kind"] == "Pod" for one in found["metadata"].get("ownerReferences", ()))
