"""From the entries of pods, and of controllers that make pods, to the pods themselves."""

from collections.abc import Iterator

import msgspec

from lamina.model.image import Image
from lamina.model.pod import Container, Owner, Pod, PodUid, total_limits, total_requests
from lamina.simulator.cluster.life import Life
from lamina.simulator.workloads import units
from lamina.simulator.workloads.catalogue import Catalogue
from lamina.simulator.workloads.disk_room import DiskRoom
from lamina.simulator.workloads.files import Entry
from lamina.simulator.workloads.ledger import Ledger
from lamina.simulator.workloads.limits import broken_limits, demand_of
from lamina.simulator.workloads.lives import is_endless, life_of
from lamina.simulator.workloads.own_fields import OWN_FIELDS, misplaced
from lamina.simulator.workloads.pod_schema import PodEntry, TemplateEntry
from lamina.simulator.workloads.room import Room
from lamina.simulator.workloads.scenario import Arrival
from lamina.simulator.workloads.stream import CONTROLLER


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What pods are judged by."""

    catalogue: Catalogue
    room: Room | None
    """None: not all nodes are known, and nothing is said about room."""
    disk_room: DiskRoom
    ends: bool
    """Whether the scenario says when it ends."""


class Pods:
    """Makes pods from what files say about them."""

    def __init__(self, ledger: Ledger, around: Around) -> None:
        """Take names from a ledger."""
        self._ledger = ledger
        self._around = around

    def arrivals(self, entry: Entry) -> Iterator[tuple[str, Arrival]]:
        """Yield the pods that an entry stands for, by name."""
        said: PodEntry = entry.value
        plain, life = self.template(entry, "")
        if said.owner is not None:
            plain = msgspec.structs.replace(plain, owner=Owner(CONTROLLER, said.owner, said.owner))
        for number, name in enumerate(self._ledger.names(entry, "pod")):
            arrives = time_of(said, number)
            copy = msgspec.structs.replace(plain, uid=PodUid(name), name=name, created_at=arrives)
            yield name, Arrival(arrives, copy, life)

    def template(self, entry: Entry, kind: str) -> tuple[Pod, Life]:
        """Return what the pods of an entry are like; *kind* is the controller's, empty without one."""
        said: TemplateEntry = entry.value
        self._ledger.mistakes += misplaced(entry, said.resources)
        asked, most = demand_of(said)
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

    def _life(self, entry: Entry, kind: str) -> Life:
        life, mistakes = life_of(entry, kind)
        self._ledger.mistakes += mistakes
        if not mistakes and is_endless(life, kind) and not self._around.ends:
            self._ledger.wrong(entry, "is restarted for ever: say until when the scenario runs, or leave duration out")
        return life

    def _images(self, entry: Entry, said: TemplateEntry) -> Iterator[tuple[tuple[str | int, ...], Image]]:
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
            if (image := self._around.catalogue.find(entry, name, *steps)) is not None:
                yield steps, image


def time_of(said: TemplateEntry, number: int) -> float:
    """When a copy comes; the first has number 0."""
    # To the nanosecond: 3 times 50 ms is 0.15, not 0.15000000000000002.
    return round(units.seconds(said.at) + number * units.seconds(said.every), 9)
