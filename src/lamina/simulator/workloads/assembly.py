"""
From the files of a scenario to one that can run, or to everything that does not fit together in them.

Goes through the entries of all files, included ones first. What an entry gets wrong is told at that entry; what
depends on entries that are wrong themselves is not told twice.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from lamina.model import resources
from lamina.model.errors import Mistake
from lamina.model.plain import shown
from lamina.model.pod import Container, Owner, Pod, PodUid, total_requests
from lamina.model.resources import CPU, MEMORY, PODS, Amounts
from lamina.model.schema import suggest
from lamina.simulator.cluster import NodeSpec
from lamina.simulator.workloads import units
from lamina.simulator.workloads.catalogue import Catalogue
from lamina.simulator.workloads.files import Entry, Part
from lamina.simulator.workloads.planning import Planning
from lamina.simulator.workloads.room import Room
from lamina.simulator.workloads.scenario import Arrival, Happening, Kind
from lamina.simulator.workloads.schema import MOST_NODES, MOST_PODS, EventEntry, NodeEntry, PodEntry
from lamina.simulator.workloads.stream import CONTROLLER, Plan, Stream
from lamina.simulator.workloads.workload_schema import WorkloadEntry

OWN_FIELDS: Final = (CPU, MEMORY, PODS)
KINDS: Final[tuple[Kind, ...]] = ("remove", "drop", "cordon")


class Assembly:
    """Nodes, pods and events of all files, and the images they name."""

    def __init__(self, parts: Iterable[Part], bandwidth: float, seed: int) -> None:
        """Put them together; *bandwidth* is for nodes that do not say theirs, *seed* for what is drawn."""
        self.mistakes: list[Mistake] = []
        self.nodes: dict[str, NodeSpec] = {}
        self.arrivals: dict[str, Arrival] = {}
        self.happenings: list[Happening] = []
        self._parts = tuple(parts)
        self.catalogue = Catalogue(self._parts)
        self._bandwidth = bandwidth
        self._named: dict[str, dict[str, Entry]] = {"nodes": {}, "pods": {}}
        self._read: dict[str, bool] = {}
        for entry in self._bounded("nodes", NodeEntry, MOST_NODES):
            self._node(entry, entry.value)
        self._room = Room(self.nodes.values())
        for entry in self._bounded("pods", PodEntry, MOST_PODS):
            self._pod(entry, entry.value)
        self._workload(seed)
        for entry in self._entries("events", EventEntry):
            self._event(entry, entry.value)
        if self._read["nodes"] and not self.nodes:
            last = self._parts[-1].document
            self.mistakes.append(Entry(last, ("nodes",), None).mistake("there is no node: list at least one"))
        self.mistakes.extend(self.catalogue.mistakes)

    def _entries(self, field: str, kind: type[object]) -> list[Entry]:
        entries = [entry for part in self._parts for entry in part.entries(field, kind)]
        # Only where every entry could be read is what is not among them really missing.
        self._read[field] = all(part.lists(field) for part in self._parts) and len(entries) == sum(
            len(part.places(field)) for part in self._parts
        )
        return entries

    def _bounded(self, field: str, kind: type[object], most: int) -> list[Entry]:
        """List the entries of a field, or none of them when together they stand for too many."""
        total, entries = 0, self._entries(field, kind)
        for entry in entries:
            total += entry.value.count
            if total > most:
                message = f"too many: with this one there are {total}, and at most {most} are simulated"
                self._wrong(entry, message, "count")
                self._read[field] = False
                return []
        return entries

    def _wrong(self, entry: Entry, message: str, *steps: str | int) -> None:
        self.mistakes.append(entry.mistake(message, *steps))

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _node(self, entry: Entry, node: NodeEntry) -> None:
        asked = self._amounts(entry, {CPU: node.cpu, MEMORY: node.memory, PODS: node.pods}, node.resources)
        found = [self.catalogue.find(entry, name, "holds", index) for index, name in enumerate(node.holds)]
        spec = NodeSpec(
            name=node.name,
            allocatable=asked,
            bandwidth=self._bandwidth if node.bandwidth is None else float(units.bandwidth(node.bandwidth)),
            holds=tuple(image for image in found if image is not None),
            labels=node.labels,
            taints=tuple(taint.taint() for taint in node.taints),
        )
        for name in self._names(entry, "nodes"):
            self.nodes[name] = msgspec.structs.replace(spec, name=name)

    def _names(self, entry: Entry, field: str) -> list[str]:
        """List the names an entry stands for."""
        name, count = entry.value.name, entry.value.count
        names = [name] if count == 1 else [f"{name}{number}" for number in range(1, count + 1)]
        return self._fresh(entry, field, names)

    def _fresh(self, entry: Entry, field: str, names: list[str]) -> list[str]:
        """Take names for an entry, leaving out those that are taken and telling the first of them."""
        taken = self._named[field]
        twice = [one for one in names if one in taken]
        if twice:
            before = taken[twice[0]].where
            self._wrong(entry, f"there is a second {field[:-1]} {shown(twice[0])}, the first is in {before}", "name")
        fresh = [one for one in names if one not in taken]
        taken.update(dict.fromkeys(fresh, entry))
        return fresh

    def _amounts(self, entry: Entry, own: Mapping[str, str | float], more: Mapping[str, str | float]) -> Amounts:
        for name in more:
            if name in OWN_FIELDS:
                self._wrong(entry, f"{name} is a field of its own: move it out of resources", "resources", name)
        return resources.amounts({**more, **own})

    # -- pods --------------------------------------------------------------------------------------------------------

    def _pod(self, entry: Entry, pod: PodEntry) -> None:
        own = {name: value for name, value in ((CPU, pod.cpu), (MEMORY, pod.memory)) if value is not None}
        asked = self._amounts(entry, own, pod.resources)
        self._images(entry, pod)
        if self._read["nodes"] and self.nodes:
            for step, message in self._room.lacking(asked):
                own_field = (step,) if step in OWN_FIELDS else ("resources", step)
                self._wrong(entry, message, *(own_field if step else ()))
        names = (pod.image,) if pod.image is not None else pod.images
        containers = tuple(Container(image, asked if index == 0 else ()) for index, image in enumerate(names))
        first = tuple(Container(image) for image in pod.init)
        requests, ranked = total_requests(containers, first)
        plain = Pod(
            uid=PodUid(pod.name),
            name=pod.name,
            containers=containers,
            init_containers=first,
            requests=requests,
            scoring_requests=ranked,
            priority=pod.priority,
            scheduler_name=pod.scheduler,
            tolerations=tuple(one.toleration() for one in pod.tolerations),
            labels=pod.labels,
            annotations=pod.annotations,
            owner=None if pod.owner is None else Owner(CONTROLLER, pod.owner, pod.owner),
            spread=tuple(one.constraint(pod.labels) for one in pod.spread),
        )
        at, every = units.seconds(pod.at), units.seconds(pod.every)
        duration = None if pod.duration is None else units.seconds(pod.duration)
        for number, name in enumerate(self._names(entry, "pods")):
            # To the nanosecond: 3 times 50 ms is 0.15, not 0.15000000000000002.
            arrives = round(at + number * every, 9)
            copy = msgspec.structs.replace(plain, uid=PodUid(name), name=name, created_at=arrives)
            self.arrivals[name] = Arrival(arrives, copy, duration)

    def _images(self, entry: Entry, pod: PodEntry) -> None:
        if pod.image is not None and pod.images:
            self._wrong(entry, "say image or images, not both", "images")
        elif pod.image is None and not pod.images:
            self._wrong(entry, "say which image the pod runs", "image")
        if pod.image is not None:
            self.catalogue.find(entry, pod.image, "image")
        for field, names in (("images", pod.images), ("init", pod.init)):
            for index, name in enumerate(names):
                self.catalogue.find(entry, name, field, index)

    # -- pods that are drawn -----------------------------------------------------------------------------------------

    def _workload(self, seed: int) -> None:
        """Draw the pods of the workload; that of the including file counts."""
        said = [part for part in self._parts if "workload" in part.document.root.inside]
        if not said or said[-1].document.root.inside["workload"].value is None:
            return
        entry = said[-1].single("workload", WorkloadEntry)
        plan = self._plan(entry) if entry is not None else None
        if entry is None or plan is None:
            # What events name may be pods that would have been drawn.
            self._read["pods"] = False
            return
        fresh = dict.fromkeys(self._fresh(entry, "pods", plan.names()))
        self.arrivals.update((one.pod.name, one) for one in Stream(plan, seed).arrivals() if one.pod.name in fresh)

    def _plan(self, entry: Entry) -> Plan | None:
        if len(self.arrivals) + entry.value.pods > MOST_PODS:
            self._wrong(entry, f"too many: with the pods that are listed, at most {MOST_PODS} are simulated", "pods")
            return None
        planning = Planning(entry, self.catalogue.all_images, complete=self.catalogue.complete)
        plan = None
        if self._read["nodes"] and self.nodes:
            planning.mistakes.extend(planning.lacking(self._room))
            if self.catalogue.complete and not planning.mistakes:
                plan = planning.plan(node.allocatable for node in self.nodes.values())
        self.mistakes.extend(planning.mistakes)
        return plan

    # -- events ------------------------------------------------------------------------------------------------------

    def _event(self, entry: Entry, event: EventEntry) -> None:
        said = [(kind, name) for kind in KINDS if (name := getattr(event, kind)) is not None]
        if len(said) != 1:
            self._wrong(entry, "say exactly one of remove, drop and cordon")
        at = units.seconds(event.at)
        for kind, name in said:
            field = "pods" if kind == "remove" else "nodes"
            known = self._named[field]
            if name not in known and self._read[field]:
                what_to_try = suggest(name, known) if known else f"list it under {field}"
                self._wrong(entry, f"there is no {field[:-1]} {shown(name)}: {what_to_try}", kind)
            arrival = self.arrivals.get(name) if kind == "remove" else None
            if arrival is not None and at < arrival.at:
                self._wrong(entry, f"{shown(name)} is removed at {at:g} s and arrives only at {arrival.at:g} s", "at")
            self.happenings.append(Happening(at, kind, name))
