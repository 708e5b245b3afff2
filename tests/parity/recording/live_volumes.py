"""
Volume controllers of a recording with a real API server: they bind the claims of the current case, and make volumes.

    volume that kube-scheduler reserved (spec.claimRef) ──> claim bound to it
    claim with a node that kube-scheduler selected ───────> new volume, claim bound to it

This is what the façade's controller does, told through the API. Claims whose node was selected before the case began wait
until `release`.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any, Final

from testbed.errors import RefusedError
from testbed.requests import Requests
from tests.parity.case_files import ParityCase
from tests.parity.storage_cases import BIND_COMPLETED, NAMESPACE, SELECTED_NODE

CLAIMS: Final = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"
PERIOD: Final = 0.05
"""Seconds between two looks at the claims."""


class LiveVolumes:
    """Binds claims of one case at a time."""

    def __init__(self, requests: Requests) -> None:
        """Ask the API server with *requests*."""
        self._requests = requests
        self._open: set[str] = set()
        """Names of the case's claims that are not bound."""
        self._held: set[str] = set()
        self._made: list[str] = []

    def begin(self, case: ParityCase) -> None:
        """Care for the claims of *case* from now on."""
        claims = [one for one in case.objects["persistentvolumeclaims"] if "volumeName" not in one["spec"]]
        self._open = {one["metadata"]["name"] for one in claims}
        self._held = {
            one["metadata"]["name"] for one in claims if SELECTED_NODE in one["metadata"].get("annotations", {})
        }

    def release(self, names: Iterable[str]) -> None:
        """Make volumes for these claims, too."""
        self._held.difference_update(names)

    async def work(self) -> None:
        """Look at the claims again and again, until this is cancelled or all are bound."""
        while self._open:
            await asyncio.to_thread(self._look)
            await asyncio.sleep(PERIOD)

    def clear(self) -> None:
        """Delete the volumes that were made."""
        for name in self._made:
            with contextlib.suppress(RefusedError):
                self._requests.send("DELETE", f"{VOLUMES}/{name}")
        self._made.clear()

    def _look(self) -> None:
        reserved = {
            one["spec"]["claimRef"]["uid"]: one["metadata"]["name"]
            for one in self._requests.send("GET", VOLUMES)["items"]
            if one["spec"].get("claimRef", {}).get("uid")
        }
        for claim in self._requests.send("GET", CLAIMS)["items"]:
            metadata, name = claim["metadata"], claim["metadata"]["name"]
            if name not in self._open:
                continue
            if volume := reserved.get(metadata["uid"]):
                self._bind(claim, volume)
            elif SELECTED_NODE in metadata.get("annotations", {}) and name not in self._held:
                self._bind(claim, self._provision(claim))

    def _provision(self, claim: dict[str, Any]) -> str:
        metadata, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{metadata['uid']}"
        reference = {key: metadata[key] for key in ("name", "namespace", "uid")}
        body = {
            "kind": "PersistentVolume",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "storageClassName": spec["storageClassName"],
                "volumeMode": spec["volumeMode"],
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **reference},
                "csi": {"driver": "x.csi", "volumeHandle": name},
            },
        }
        self._requests.send("POST", VOLUMES, body)
        self._made.append(name)
        return name

    def _bind(self, claim: dict[str, Any], volume: str) -> None:
        name = claim["metadata"]["name"]
        patch = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
        self._requests.send("PATCH", f"{CLAIMS}/{name}", patch)
        self._requests.send("PATCH", f"{CLAIMS}/{name}/status", {"status": {"phase": "Bound"}})
        self._open.discard(name)
