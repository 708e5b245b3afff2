"""From the entries of pods, and of controllers that make pods, to the pods themselves."""

from collections.abc import Iterator

import msgspec

from lamina.model.image import Image
from lamina.model.pod import Container, Owner, Pod, PodUid, total_limits, total_requests
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads import units
from lamina.simulator.workloads.assembly_state import AssemblyState
from lamina.simulator.workloads.disk_capacity import DiskCapacityCheck
from lamina.simulator.workloads.lifecycle_entries import entry_lifecycle, is_endless
from lamina.simulator.workloads.node_capacity import NodeCapacityCheck
from lamina.simulator.workloads.pod_limits import broken_limits, requests_and_limits
from lamina.simulator.workloads.pod_schema import PodEntry, TemplateEntry
from lamina.simulator.workloads.pod_stream import CONTROLLER
from lamina.simulator.workloads.resource_fields import OWN_FIELDS, misplaced_resources
from lamina.simulator.workloads.scenario import PodArrival
from lamina.simulator.workloads.scenario_catalog import ScenarioCatalog
from lamina.simulator.workloads.scenario_files import ScenarioEntry


class PodChecks(msgspec.Struct, frozen=True, kw_only=True):
    """What pods are judged by."""

    catalog: ScenarioCatalog
    room: NodeCapacityCheck | None
    """None: not all nodes are known, and nothing is said about room."""
    disk_room: DiskCapacityCheck
    ends: bool
    """Whether the scenario says when it ends."""


class PodBuilder:
    """Makes pods from what files say about them."""

    def __init__(self, ledger: AssemblyState, around: PodChecks) -> None:
        """Take names from a ledger."""
        self._ledger = ledger
        self._around = around

    def arrivals(self, entry: ScenarioEntry) -> Iterator[tuple[str, PodArrival]]:
        """Yield the pods that an entry stands for, by name."""
        said: PodEntry = entry.value
        plain, life = self.template(entry, "")
        if said.owner is not None:
            plain = msgspec.structs.replace(plain, owner=Owner(CONTROLLER, said.owner, said.owner))
        for number, name in enumerate(self._ledger.names(entry, "pod")):
            arrives = time_of(said, number)
            copy = msgspec.structs.replace(plain, uid=PodUid(name), name=name, created_at=arrives)
            yield name, PodArrival(arrives, copy, life)

    def template(self, entry: ScenarioEntry, kind: str) -> tuple[Pod, PodLifecycle]:
        """Return what the pods of an entry are like; *kind* is the controller's, empty without one."""
        said: TemplateEntry = entry.value
        self._ledger.mistakes += misplaced_resources(entry, said.resources)
        asked, most = requests_and_limits(said)
        images = list(self._images(entry, said))
        for step, message in self._around.room.lacking(asked) if self._around.room is not None else ():
            own_field = (step,) if step in OWN_FIELDS else ("resources", step)
            self._ledger.wrong(entry, message, *(own_field if step else ()))
        names = (said.image,) if said.image is not None else said.images
        containers = tuple(
            Container(image, asked, limits=most) if index == 0 else Container(image)
            for index, image in enumerate(names)
        )
        first = tuple(Container(image) for image in said.init)
        requests, ranked = total_requests(containers, first)
        pod = Pod(
            uid=PodUid(said.name),
            name=said.name,
            containers=containers,
            init_containers=first,
            requests=requests,
            scoring_requests=ranked,
            limits=total_limits(containers, first) if most else (),
            priority=said.priority,
            scheduler_name=said.scheduler,
            tolerations=tuple(one.toleration() for one in said.tolerations),
            labels=said.labels,
            annotations=said.annotations,
            spread=tuple(one.constraint(said.labels) for one in said.spread),
        )
        for steps, image in images:
            if told := self._around.disk_room.too_small(pod, image):
                self._ledger.wrong(entry, told, *steps)
        life = self._life(entry, kind)
        self._ledger.mistakes += broken_limits(entry, asked, most, life)
        return pod, life

    def _life(self, entry: ScenarioEntry, kind: str) -> PodLifecycle:
        life, mistakes = entry_lifecycle(entry, kind)
        self._ledger.mistakes += mistakes
        if not mistakes and is_endless(life, kind) and not self._around.ends:
            self._ledger.wrong(entry, "is restarted for ever; say until when the scenario runs, or leave duration out")
        return life

    def _images(self, entry: ScenarioEntry, said: TemplateEntry) -> Iterator[tuple[tuple[str | int, ...], Image]]:
        """Yield the images that are there, and where the entry names them."""
        if said.image is not None and said.images:
            self._ledger.wrong(entry, "say image or images, not both", "images")
        elif said.image is None and not said.images:
            self._ledger.wrong(entry, "say which image the pod runs", "image")
        named: list[tuple[tuple[str | int, ...], str]] = []
        if said.image is not None:
            named.append((("image",), said.image))
        for field, names in (("images", said.images), ("init", said.init)):
            named += (((field, index), name) for index, name in enumerate(names))
        for steps, name in named:
            if (image := self._around.catalog.find(entry, name, *steps)) is not None:
                yield steps, image


def time_of(said: TemplateEntry, number: int) -> float:
    """When a copy comes; the first has number 0."""
    # To the nanosecond: 3 times 50 ms is 0.15, not 0.15000000000000002.
    return round(units.seconds(said.at) + number * units.seconds(said.every), 9)
