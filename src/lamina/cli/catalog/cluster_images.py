"""The images a cluster describes: ImageLayers list their layers, NodeLayers list the names nodes have for them."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from lamina.clients.kube import paged_list
from lamina.clients.kube.access import load_access
from lamina.clients.kube.errors import ApiError
from lamina.clients.kube.transport import KubeClient
from lamina.layers.catalog import Catalog
from lamina.model.errors import InputError
from lamina.model.image import Image, Platform
from lamina.model.layer_report import LayerReport
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.wire.custom_resources.api_group import API_VERSION
from lamina.wire.custom_resources.image_layers import decode_image_layers
from lamina.wire.custom_resources.node_layers import decode_node_layers
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_node, decode_pod

NOT_FOUND: Final = 404
FORBIDDEN: Final = 403
UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class NodeInCluster(msgspec.Struct, frozen=True):
    """A node, and the newest report about it; None when its node agent has not reported."""

    name: str
    platform: Platform
    report: LayerReport | None = None


class ClusterImages(msgspec.Struct, frozen=True, kw_only=True):
    """The images, nodes and registries found in a cluster."""

    images: tuple[Image, ...]
    """Each with the names that nodes have for it."""
    unknown: tuple[str, ...] = ()
    """Images that pods use and no ImageLayers describes."""
    registries: tuple[str, ...] = ()
    """Registries that nodes have pulled from."""
    platforms: tuple[Platform, ...] = ()
    """Platforms of the nodes."""
    nodes: tuple[NodeInCluster, ...] = ()
    """Sorted by name; empty unless *nodes* was requested."""
    mistakes: tuple[str, ...] = ()
    """Objects that could not be read, one line each."""


def query_cluster(kubeconfig: Path | None, context: str, *, pods: bool = False, nodes: bool = False) -> ClusterImages:
    """Return the cluster's images; *pods* adds images that only pods name, *nodes* adds each node's report."""
    return asyncio.run(_query_cluster(kubeconfig, context, pods, nodes))


async def _query_cluster(kubeconfig: Path | None, context: str, pods: bool, nodes: bool) -> ClusterImages:
    client = KubeClient(load_access(kubeconfig, context), connections=2, user_agent="lamina-catalog")
    try:
        return await _collect(client, pods, nodes)
    except ApiError as error:
        if error.status == FORBIDDEN:
            hint = "bind the role of deploy/rbac/viewer.yaml to this user"
            raise InputError.one("the cluster", f"{error}; {hint}") from error
        if error.status == NOT_FOUND:
            hint = "install Lamina's custom resources (deploy/crds) and the node agent first"
            raise InputError.one("the cluster", f"does not have ImageLayers and NodeLayers; {hint}") from error
        raise
    finally:
        await client.close()


async def _collect(client: KubeClient, pods: bool, nodes: bool) -> ClusterImages:
    mistakes: list[WireError] = []
    catalog = Catalog()
    async for image in paged_list.list_objects(
        client, f"/apis/{API_VERSION}/imagelayers", decode_image_layers, refused=mistakes
    ):
        catalog.learn(image)
    platform_of: dict[str, Platform] = {}
    uid_of: dict[str, str] = {}
    async for node in paged_list.list_objects(client, "/api/v1/nodes", decode_node, refused=mistakes):
        platform_of[node.name], uid_of[node.name] = node.platform, node.uid
    names: dict[tuple[str, Platform], None] = {}
    reports: dict[str, LayerReport] = {}
    async for report in paged_list.list_objects(
        client, f"/apis/{API_VERSION}/nodelayers", decode_node_layers, refused=mistakes
    ):
        platform = platform_of.get(report.node) or report.platform or Platform()
        catalog.replace_votes(platform, (), report.images)
        if nodes and report.node_uid in {"", uid_of.get(report.node, "")}:
            reports[report.node] = report
        names.update(dict.fromkeys((name, platform) for held in report.images for name in held.names))
    platforms = tuple(sorted(set(platform_of.values()), key=msgspec.structs.astuple)) or (Platform(),)
    unknown: dict[str, None] = {}
    if pods:
        selector = {"fieldSelector": UNFINISHED}
        async for pod in paged_list.list_objects(
            client, "/api/v1/pods", decode_pod, selectors=selector, refused=mistakes
        ):
            unknown.update(dict.fromkeys(pod.images))
    wanted = (name for name in unknown if any(catalog.find(name, platform) is None for platform in platforms))
    return ClusterImages(
        images=tuple(_named(catalog, names)),
        unknown=tuple(sorted(name for name in wanted if _registry(name))),
        registries=tuple(sorted({host for name, _ in names if (host := _registry(name))})),
        platforms=platforms,
        nodes=tuple(NodeInCluster(one, platform_of[one], reports.get(one)) for one in sorted(platform_of) if nodes),
        mistakes=tuple(map(str, mistakes)),
    )


def _named(catalog: Catalog, names: dict[tuple[str, Platform], None]) -> list[Image]:
    """Return the images, each with the names that most nodes have for it."""
    named: dict[str, dict[str, None]] = {image.digest: {} for image in catalog}
    for name, platform in sorted(names, key=lambda one: (one[0], msgspec.structs.astuple(one[1]))):
        image = catalog.find(name, platform) if _registry(name) else None
        if image is not None:
            named[image.digest][name] = None
    ordered = sorted(catalog, key=lambda image: image.digest)
    return [msgspec.structs.replace(image, names=(*image.names, *named[image.digest])) for image in ordered]


def _registry(name: str) -> str:
    try:
        return parse_reference(name).registry
    except ReferenceFormatError:
        return ""
