"""
Checks of the API server: its version, the custom resources, the admission policy and the clock.

The server's time comes from the creation timestamp of a SelfSubjectReview, which every user has permission to create.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec

from lamina.clients.kube.errors import ApiError
from lamina.clients.kube.transport import KubeClient
from lamina.services.doctor.finding import Finding, broken, fine, unseen, warned
from lamina.wire.kube.server_info import (
    decode_creation_timestamp,
    decode_established,
    decode_validation_actions,
    decode_version,
)
from lamina.wire.timestamps import seconds

OLDEST: Final = (1, 30)
"""From this version on, service account tokens name the node of their pod."""
CUSTOM_RESOURCES: Final = ("nodelayers.lamina.dev", "imagelayers.lamina.dev")
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
POLICY: Final = "lamina-nodelayers"
WHO_AM_I: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
SKEW_LIMIT: Final = 5.0
"""Seconds that clocks may differ. Leases and report ages tolerate more, but a larger difference needs attention."""


async def check_version(client: KubeClient) -> Finding:
    """Check that the API server answers and is new enough."""
    found = decode_version(await client.request("GET", "/version", timeout=10.0))
    told = f"Kubernetes {found.git_version:.40}"
    if found.number == (0, 0):
        return warned("API server", f"{told}: no version that can be compared", "Lamina needs Kubernetes 1.30 or newer")
    if found.number < OLDEST:
        return broken("API server", f"{told} is too old", "Lamina needs Kubernetes 1.30 or newer")
    return fine("API server", f"{told} answers")


async def check_custom_resources(client: KubeClient) -> Finding:
    """Check that the custom resources NodeLayers and ImageLayers are installed."""
    missing: list[str] = []
    for name in CUSTOM_RESOURCES:
        answer = await _get(client, f"{DEFINITIONS}/{name}")
        if isinstance(answer, Finding):
            return msgspec.structs.replace(answer, subject="kinds")
        if not answer or not decode_established(answer):
            missing.append(name)
    if missing:
        told = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        return broken("kinds", told, "kubectl apply --server-side -f deploy/crds")
    return fine("kinds", "NodeLayers and ImageLayers are installed")


async def check_policy(client: KubeClient) -> Finding:
    """Check that the admission policy keeps a node agent from writing reports of other nodes."""
    advice = "kubectl apply --server-side -f deploy/policy"
    binding = b""
    for path in (f"{POLICIES}/{POLICY}", f"{BINDINGS}/{POLICY}"):
        answer = await _get(client, path)
        if isinstance(answer, Finding):
            return msgspec.structs.replace(answer, subject="policy")
        if not answer:
            told = f"there is no {path.split('/')[-2]} {POLICY}: an attacker on one node can write all reports"
            return broken("policy", told, advice)
        binding = answer
    actions = decode_validation_actions(binding)
    if "Deny" not in actions:
        return broken("policy", f"it is there and denies nothing ({', '.join(actions) or 'no action'})", advice)
    return fine("policy", "a node agent can write the report of its own node only")


async def check_clock(client: KubeClient, now: Callable[[], float] = time.time) -> tuple[Finding, float | None]:
    """Compare this machine's clock with the server's; also return by how many seconds the server is ahead."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    before = now()
    try:
        answer = await client.request("POST", WHO_AM_I, body=msgspec.json.encode(body))
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        return unseen("clock", "the API server does not serve SelfSubjectReview, so its time is unknown"), None
    after = now()
    stamp = decode_creation_timestamp(answer)
    if not stamp:
        return unseen("clock", "the API server's reply has no creation timestamp"), None
    # The timestamp has whole seconds, so the true time is anywhere within that second.
    low, high = seconds(stamp) - after, seconds(stamp) + 1.0 - before
    ahead = 0.0 if low <= 0.0 <= high else (low if low > 0 else high)
    if abs(ahead) <= SKEW_LIMIT:
        return fine("clock", f"this machine and the API server agree to {max(abs(ahead), 1.0):.0f} s"), ahead
    told = f"this machine is {abs(ahead):.0f} s {'behind' if ahead > 0 else 'ahead of'} the API server"
    return broken("clock", told, "let both follow a time server (chrony, systemd-timesyncd)"), ahead


async def _get(client: KubeClient, path: str) -> bytes | Finding | None:
    """Return the object; None if it does not exist; a finding if reading it is forbidden."""
    try:
        return await client.request("GET", path)
    except ApiError as error:
        if error.status == 404:
            return None
        if error.status == 403:
            return unseen("", f"permission denied: {error}", "run this as a user who can read cluster objects")
        raise
