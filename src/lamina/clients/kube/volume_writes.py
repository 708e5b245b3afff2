"""
Writes of a scheduler about volumes: a volume reserved for a claim, and a node selected for a claim.

Each write names the resource version that was read before, so that it never overwrites a change by the volume
controller or by another scheduler: the API server then returns 409. Fields and annotations are kube-scheduler's.
"""

from typing import Final
from urllib.parse import quote

import msgspec

from lamina.clients.kube.pod_writes import WriteClient
from lamina.model.volumes import ClaimRef, PersistentVolume, PersistentVolumeClaim
from lamina.wire.kube.meta import decode_meta
from lamina.wire.kube.storage_objects import SELECTED_NODE, decode_claim, decode_volume

MERGE: Final = "application/merge-patch+json"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


def volume_path(name: str) -> str:
    """Return the URL path of a volume."""
    return f"/api/v1/persistentvolumes/{quote(name, safe='')}"


def claim_path(namespace: str, name: str) -> str:
    """Return the URL path of a claim."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/persistentvolumeclaims/{quote(name, safe='')}"


async def read_volume(client: WriteClient, name: str) -> tuple[PersistentVolume, str]:
    """Return a volume and its resource version."""
    data = await client.request("GET", volume_path(name))
    return decode_volume(data), decode_meta(data).resource_version


async def read_claim(client: WriteClient, namespace: str, name: str) -> tuple[PersistentVolumeClaim, str]:
    """Return a claim and its resource version."""
    data = await client.request("GET", claim_path(namespace, name))
    return decode_claim(data), decode_meta(data).resource_version


async def reserve_volume(client: WriteClient, volume: PersistentVolume, version: str, claim: ClaimRef) -> None:
    """Reserve a volume for a claim; the volume controller then binds both."""
    metadata: dict[str, object] = {"resourceVersion": version}
    if volume.claim is None:
        # Without the annotation, an operator has reserved the volume, and the controller must not give it back.
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **msgspec.structs.asdict(claim)}
    await _merge(client, volume_path(volume.name), {"metadata": metadata, "spec": {"claimRef": reference}})


async def select_node(client: WriteClient, claim: ClaimRef, version: str, node: str) -> None:
    """Select the node for which a volume is to be made for a claim."""
    metadata = {"resourceVersion": version, "uid": claim.uid, "annotations": {SELECTED_NODE: node}}
    await _merge(client, claim_path(claim.namespace, claim.name), {"metadata": metadata})


async def _merge(client: WriteClient, path: str, patch: dict[str, object]) -> None:
    await client.request("PATCH", path, body=msgspec.json.encode(patch), content_type=MERGE)
