"""Checks of NodeLayers reports: which nodes report, and which reports are old or incomplete."""

from collections.abc import Iterable
from typing import Final

from lamina.clients.kube import paged_list
from lamina.clients.kube.errors import ApiError
from lamina.clients.kube.transport import KubeClient
from lamina.model.image import Platform
from lamina.model.layer_report import LayerReport
from lamina.model.plain import plural
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.services.doctor.finding import Finding, broken, fine, unseen, warned
from lamina.services.doctor.registry_checks import RegistrySample
from lamina.wire.custom_resources.node_layers import decode_node_layers
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import decode_meta

NODE_LAYERS: Final = "/apis/lamina.dev/v1alpha1/nodelayers"
NODES: Final = "/api/v1/nodes"
PAGE: Final = 250
SHOWN: Final = 3
"""Most node names in one line."""
SKEW_LIMIT: Final = 60.0
"""Seconds that a report's time may be ahead of the server's."""


async def check_node_reports(client: KubeClient, server_time: float) -> tuple[list[Finding], dict[str, RegistrySample]]:
    """Check all reports; also return one sample image for each registry that nodes have pulled from."""
    try:
        nodes = [meta.name async for meta in paged_list.list_objects(client, NODES, decode_meta, size=PAGE)]
        refused: list[WireError] = []
        found = paged_list.list_objects(client, NODE_LAYERS, decode_node_layers, size=PAGE, refused=refused)
        reports = [report async for report in found]
    except ApiError as error:
        if error.status == 404:
            return [unseen("reports", "the custom resources are not installed, so no node reports")], {}
        if error.status == 403:
            return [unseen("reports", f"permission denied: {error}", "kubectl apply -f deploy/rbac/viewer.yaml")], {}
        raise
    findings = [_coverage(nodes, reports, refused), *_ages(reports, server_time), *_troubles(reports)]
    return findings, _an_image_of_each(reports)


def _coverage(nodes: list[str], reports: list[LayerReport], refused: list[WireError]) -> Finding:
    reporting = {report.node for report in reports}
    silent = [node for node in nodes if node not in reporting]
    if refused:
        return warned(
            "reports", f"{len(refused)} cannot be used, the first: {refused[0]!s:.200}", "kubectl get nl -o yaml"
        )
    if silent:
        told = f"{len(nodes) - len(silent)} of {plural(len(nodes), 'node reports', 'nodes report')}; silent: {_some(silent)}"
        return broken(
            "reports", told, "kubectl -n lamina-agents get pods -o wide; kubectl -n lamina-agents logs POD -c publisher"
        )
    return fine("reports", f"{len(nodes)} of {plural(len(nodes), 'node reports', 'nodes report')}")


def _ages(reports: list[LayerReport], server_time: float) -> Iterable[Finding]:
    old = [one.node for one in reports if 0 < 2 * one.renews_within < server_time - one.observed_at]
    if old:
        yield warned(
            "age", f"old reports, trusted less over time: {_some(old)}", "read the log of the node agent on that node"
        )
    early = [one.node for one in reports if one.observed_at > server_time + SKEW_LIMIT]
    if early:
        yield broken("clock of nodes", f"reports from the future: {_some(early)}", "let the node follow a time server")


def _troubles(reports: list[LayerReport]) -> Iterable[Finding]:
    unknown = [one.node for one in reports if one.platform is None or not one.runtime.name]
    if unknown:
        told = f"runtime or platform not reported: {_some(unknown)}"
        yield warned("runtimes", told, "run `lamina doctor` on that node")
    if reports:
        told = ", ".join(
            f"{sum(one.reuse == reuse for one in reports)} reuse {words}"
            for reuse, words in (("set", "any layer they know"), ("prefix", "only layers on the same base"))
        )
        yield fine("reuse", f"nodes: {told}")


def _an_image_of_each(reports: list[LayerReport]) -> dict[str, RegistrySample]:
    """Return for each registry the first name with a tag; without one, the first name with a digest."""
    found: dict[str, RegistrySample] = {}
    pinned: dict[str, RegistrySample] = {}
    for report in reports:
        for name in (name for image in report.images for name in image.names):
            try:
                reference = parse_reference(name)
            except ReferenceFormatError:
                continue
            kind = found if reference.digest is None else pinned
            kind.setdefault(reference.registry, RegistrySample(name, report.platform or Platform()))
    return pinned | found


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
