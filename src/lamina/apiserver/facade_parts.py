"""Assembly of a façade for one run: store, API and the two directions between API and cluster."""

from collections.abc import Callable

import msgspec

from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.facade.api_handler import ApiHandler
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.cluster_object_writer import ClusterObjectWriter
from lamina.simulator.facade.cluster_writer import ClusterWriter
from lamina.simulator.facade.event_views import EventViews
from lamina.simulator.facade.gang_resources import gang_custom_resources
from lamina.simulator.facade.resource_types import ResourceTypes
from lamina.simulator.facade.store_writer import StoreWriter
from lamina.simulator.facade.volume_controller import VolumeController
from lamina.simulator.run.run_parts import RunParts

EPOCH = 1_767_225_600.0
"""Unix time of virtual second 0, unless the user chooses another one: 2026-01-01 00:00 UTC."""
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease", "lamina-system")


class FacadeParts(msgspec.Struct, frozen=True, eq=False):
    """The parts of one façade."""

    state: ApiState
    handler: ApiHandler
    reader: StoreWriter
    writer: ClusterWriter
    cluster: VirtualCluster


def assemble_facade(
    parts: RunParts,
    profile: str,
    *,
    epoch: float = EPOCH,
    seed: int = 0,
    clock: Callable[[], float] | None = None,
) -> FacadeParts:
    """
    Return a façade in front of the cluster of a run; *profile* names the scheduler in traces.

    With a *clock*, the real time of each decision is measured.
    """
    environment = parts.environment
    types = ResourceTypes()
    types.add_customs(gang_custom_resources())
    writer = ClusterWriter(environment, parts.cluster, parts.controllers, profile, clock)
    state = ApiState(types, lambda: environment.now, writer, epoch, seed)
    EventViews(state)
    VolumeController(state)
    reader = StoreWriter(state, parts.cluster)
    for name in NAMESPACES:
        reader.ensure_namespace(name)
    handler = ApiHandler(state)
    reader.objects = ClusterObjectWriter(state, handler, parts.cluster.objects)
    for found in parts.cluster.objects.all():
        reader.objects.seen(found)
    return FacadeParts(state, handler, reader, writer, parts.cluster)
