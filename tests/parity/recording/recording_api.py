"""
The API that kube-scheduler is connected to during a recording: what a recorder asks of it, and the façade as one.

    recorder --show, hide--> RecordingApi --watch--> kube-scheduler --writes--> RecordingApi --> SchedulerWrites

The other one is a real API server (`live_api`).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

from lamina.apiserver.facade_server import FacadeServer
from lamina.apiserver.kubeconfig import write_kubeconfig
from tests.parity.case_files import ParityCase
from tests.parity.case_objects import KubeJson
from tests.parity.recording.case_stage import CaseStage, SchedulerWrites

ObjectsByResource: TypeAlias = Mapping[str, list[KubeJson]]


class RecordingApi(Protocol):
    """What a recorder needs of the API."""

    async def start(self, folder: Path, objects: Iterable[ObjectsByResource]) -> Path:
        """Serve *objects*, and return kube-scheduler's kubeconfig, which may lie in *folder*."""

    async def stop(self) -> None:
        """Remove what `start` created."""

    async def show_cluster(self, case: ParityCase) -> None:
        """Create the nodes, in order, and the pods that have one."""

    async def touch_node(self, node: KubeJson) -> None:
        """Update a node without a change that matters, so that the log shows how far the nodes were read."""

    async def show_pod(self, case: ParityCase) -> None:
        """Create the pod under test."""

    async def sync_claims(self, claims: list[KubeJson]) -> None:
        """Let volumes be made for claims whose node was selected before the case began."""

    async def catch_up(self) -> None:
        """Note everything that kube-scheduler has written so far."""

    async def hide_pod(self, pod: KubeJson) -> None:
        """Remove the pod under test."""

    async def hide_cluster(self, case: ParityCase) -> None:
        """Remove the nodes and the pods that have one."""

    def pod_name(self, uid: str) -> str:
        """Return the name of the pod with this uid."""


class FacadeApi:
    """The façade, which stores the objects of a case as they are."""

    def __init__(self, writes: SchedulerWrites) -> None:
        """kube-scheduler's writes go to *writes*; nothing is served before `start`."""
        self._stage = CaseStage(writes)
        self._server = FacadeServer(self._stage.handler)

    async def start(self, folder: Path, objects: Iterable[ObjectsByResource]) -> Path:
        """Serve."""
        for by_resource in objects:
            for resource, found in by_resource.items():
                for one in found:
                    self._stage.show(resource, one)
        self._stage.start_volume_controller()
        await self._server.start()
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(kubeconfig, self._server.url)
        return kubeconfig

    async def stop(self) -> None:
        """Serve no longer."""
        await self._server.stop()

    async def show_cluster(self, case: ParityCase) -> None:
        """Create nodes and placed pods."""
        for node in case.nodes:
            self._stage.show("nodes", node)
        for pod in case.placed:
            self._stage.show("pods", pod)

    async def touch_node(self, node: KubeJson) -> None:
        """Update a node."""
        self._stage.touch_node(node)

    async def show_pod(self, case: ParityCase) -> None:
        """Create the pod under test."""
        self._stage.show("pods", case.pod)

    async def sync_claims(self, claims: list[KubeJson]) -> None:
        """Let the volume controller look at claims without a write."""
        for claim in claims:
            self._stage.sync_claim(claim)

    async def catch_up(self) -> None:
        """Do nothing: the façade notes a write before it answers."""

    async def hide_pod(self, pod: KubeJson) -> None:
        """Remove the pod under test."""
        self._stage.hide("pods", pod)

    async def hide_cluster(self, case: ParityCase) -> None:
        """Remove placed pods and nodes."""
        for pod in case.placed:
            self._stage.hide("pods", pod)
        for node in case.nodes:
            self._stage.hide("nodes", node)

    def pod_name(self, uid: str) -> str:
        """Return the uid: the cases' pods have their names as uids."""
        return uid
