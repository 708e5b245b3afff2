"""`lamina explain` on a cluster: read the pod, and the scheduler's recent decisions."""

import asyncio
import re
from pathlib import Path
from typing import Final

import msgspec

from lamina.clients.kube.access import load_access
from lamina.clients.kube.errors import ApiError, one_line
from lamina.clients.kube.transport import KubeClient
from lamina.clients.service_endpoint import EndpointError, read_endpoint
from lamina.model.decision import Decision
from lamina.model.errors import InputError
from lamina.model.plain import shown
from lamina.wire.kube.pod_placement import PodPlacement, decode_pod_placement

LARGEST: Final = 16 * 1024 * 1024
"""Limit of a response in bytes: a decision in full detail for more nodes than clusters have."""
TIMEOUT: Final = 10.0
NOT_FOUND: Final = 404
LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


def query_pod(pod: str, namespace: str, kubeconfig: Path | None, context: str) -> PodPlacement:
    """Read a pod's placement from the API server."""
    return asyncio.run(_query_pod(pod, namespace, kubeconfig, context))


async def _query_pod(pod: str, namespace: str, kubeconfig: Path | None, context: str) -> PodPlacement:
    access = load_access(kubeconfig, context)
    where, _, name = pod.rpartition("/")
    where = where or namespace or access.namespace
    _check_names(where, name)
    client = KubeClient(access, connections=1)
    try:
        return decode_pod_placement(
            await client.request("GET", f"/api/v1/namespaces/{where}/pods/{name}", timeout=TIMEOUT)
        )
    except ApiError as error:
        if error.status == NOT_FOUND:
            hint = "name its namespace with -n, or a trace with --trace"
            raise InputError.one("POD", f"there is no pod {where}/{name} in this cluster; {hint}") from error
        raise
    finally:
        await client.close()


def _check_names(namespace: str, name: str) -> None:
    """Reject names that would change the request's path."""
    if not LABEL.fullmatch(namespace) or len(namespace) > 63:
        raise InputError.one("-n", f"{shown(namespace)} is not a valid namespace; use a-z, 0-9 and - between")
    if not all(LABEL.fullmatch(part) for part in name.split(".")) or len(name) > 253:
        raise InputError.one("POD", f"{shown(name)} is not a valid pod name; use a-z, 0-9, with - or . between")


def query_scheduler(url: str, pod: str) -> Decision | None:
    """Return the scheduler's decision about ``namespace/name``, or None if it has none."""
    return asyncio.run(_query_scheduler(url, pod))


async def _query_scheduler(url: str, pod: str) -> Decision | None:
    try:
        status, body = await read_endpoint(f"{url.rstrip('/')}/debug/decisions/{pod}", LARGEST, TIMEOUT)
        if status == NOT_FOUND:
            return None
        if status != 200:
            said = one_line(body[:200].decode(errors="replace"))
            raise InputError.one("--scheduler", f"{url} answered {status}: {said}")
        return msgspec.json.decode(body, type=Decision)
    except (EndpointError, ValueError, RecursionError) as error:
        hint = "forward its port first: kubectl -n lamina-system port-forward deploy/lamina-scheduler 10259"
        raise InputError.one("--scheduler", f"{url} cannot be read: {error}; {hint}") from error
