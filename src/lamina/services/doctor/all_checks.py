"""
All checks of `lamina doctor`, in the options in which it prints them.

The checks change nothing: they send reviews, gets and lists only. A component that cannot be reached is a finding; the
other checks still run.
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
    """What `lamina doctor` checks, and how it connects."""

    runtime: str = "auto"
    socket: Path | None = None
    storage: Path | None = None
    kubeconfig: Path | None = None
    context: str = ""
    cluster: bool = True
    rules: RegistryConfig = RegistryConfig()
    keyring: Keyring | None = None
    ask_registries: bool = True


async def run_checks(options: DoctorOptions, report: Callable[[Finding], None]) -> None:
    """Run every check; call *report* with each finding as soon as it is made."""
    for finding in await runtime_checks.check_runtime(options.runtime, options.socket, options.storage):
        report(finding)
    images = await _cluster(options, report) if options.cluster else {}
    if options.ask_registries:
        for finding in await registry_checks.check_registries(options.rules, options.keyring, images):
            report(finding)


async def _cluster(options: DoctorOptions, report: Callable[[Finding], None]) -> dict[str, RegistrySample]:
    """Check the cluster; return one sample image for each registry that its nodes pulled from."""
    try:
        access = load_access(options.kubeconfig, options.context)
    except InputError as error:
        if options.kubeconfig is not None or options.context:
            raise
        report(unseen("API server", f"{error}".splitlines()[0], "name one with --kubeconfig"))
        return {}
    client = KubeClient(access, connections=2, user_agent="lamina-doctor")
    images: dict[str, RegistrySample] = {}

    async def clock_and_reports() -> list[Finding]:
        finding, ahead = await cluster_checks.check_clock(client)
        found, held = await node_report_checks.check_node_reports(client, time.time() + (ahead or 0.0))
        images.update(held)
        return [finding, *found]

    async def resources_and_policy() -> list[Finding]:
        return [await cluster_checks.check_custom_resources(client), await cluster_checks.check_policy(client)]

    async def version() -> list[Finding]:
        return [await cluster_checks.check_version(client)]

    checks: tuple[tuple[str, Callable[[], Awaitable[list[Finding]]]], ...] = (
        ("API server", version),
        ("installation", resources_and_policy),
        ("rights", lambda: permission_checks.check_permissions(client)),
        ("reports", clock_and_reports),
    )
    try:
        for subject, check in checks:
            try:
                for finding in await check():
                    report(finding)
            except UnreachableError as error:
                report(broken(subject, f"{error}", "is the address in the kubeconfig right, and the server up?"))
                break
            except (LaminaError, ValueError, RecursionError) as error:
                # The reply is not valid JSON, text or time: another server may answer at this address.
                report(broken(subject, f"{error}", "is this a Kubernetes API server? See what its log says"))
    finally:
        await client.close()
    return images
