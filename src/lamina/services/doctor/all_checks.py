"""
Everything that can be looked at from where one stands, in the order a person would ask.

Nothing is changed anywhere: reviews and lists only. What cannot be reached is a finding, not the end.
"""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from lamina.clients.kube.access import load_access
from lamina.clients.kube.errors import UnreachableError
from lamina.clients.kube.transport import KubeClient
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.registry_config import RegistryConfig
from lamina.model.errors import InputError, LaminaError
from lamina.services.doctor import (
    cluster_checks,
    node_report_checks,
    permission_checks,
    registry_checks,
    runtime_checks,
)
from lamina.services.doctor.finding import Finding, broken, unseen
from lamina.services.doctor.registry_checks import RegistrySample


class DoctorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to look at."""

    runtime: str = "auto"
    socket: Path | None = None
    storage: Path | None = None
    kubeconfig: Path | None = None
    context: str = ""
    cluster: bool = True
    rules: RegistryConfig = RegistryConfig()
    keyring: Keyring | None = None
    ask_registries: bool = True


async def run_checks(order: DoctorOptions, tell: Callable[[Finding], None]) -> None:
    """Look at everything; *tell* is called with each finding as it is made."""
    for finding in await runtime_checks.check_runtime(order.runtime, order.socket, order.storage):
        tell(finding)
    images = await _cluster(order, tell) if order.cluster else {}
    if order.ask_registries:
        for finding in await registry_checks.check_registries(order.rules, order.keyring, images):
            tell(finding)


async def _cluster(order: DoctorOptions, tell: Callable[[Finding], None]) -> dict[str, RegistrySample]:
    """Look at the cluster; return an image of each registry that its nodes pulled from."""
    try:
        access = load_access(order.kubeconfig, order.context)
    except InputError as error:
        if order.kubeconfig is not None or order.context:
            raise
        tell(unseen("API server", f"{error}".splitlines()[0], "name one with --kubeconfig"))
        return {}
    client = KubeClient(access, connections=2, user_agent="lamina-doctor")
    images: dict[str, RegistrySample] = {}

    async def clocks_and_reports() -> list[Finding]:
        finding, ahead = await cluster_checks.check_clock(client)
        found, held = await node_report_checks.check_node_reports(client, time.time() + (ahead or 0.0))
        images.update(held)
        return [finding, *found]

    async def kinds_and_policy() -> list[Finding]:
        return [await cluster_checks.check_custom_resources(client), await cluster_checks.check_policy(client)]

    async def version() -> list[Finding]:
        return [await cluster_checks.check_version(client)]

    questions: tuple[tuple[str, Callable[[], Awaitable[list[Finding]]]], ...] = (
        ("API server", version),
        ("installation", kinds_and_policy),
        ("rights", lambda: permission_checks.check_permissions(client)),
        ("reports", clocks_and_reports),
    )
    try:
        for subject, question in questions:
            try:
                for finding in await question():
                    tell(finding)
            except UnreachableError as error:
                tell(broken(subject, f"{error}", "is the address in the kubeconfig right, and the server up?"))
                break
            except (LaminaError, ValueError, RecursionError) as error:
                # Also what is no JSON, no text, no time: something else answers in the server's place.
                tell(broken(subject, f"{error}", "is this a Kubernetes API server? See what its log says"))
    finally:
        await client.close()
    return images
