"""Pods and nodes from what a file says: names that fit, templates that are shared, and whether there is room at all."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from lamina.model import resources
from lamina.model.errors import InputError, Mistake
from lamina.model.pod import Container, Owner, Pod, PodUid, total_requests
from lamina.model.resources import CPU, MEMORY, PODS, Amounts
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads import units
from lamina.simulator.workloads.imports.import_context import MOST_PODS, ImportContext
from lamina.simulator.workloads.imports.import_schema import ImportEntry, NodesEntry
from lamina.simulator.workloads.node_capacity import NodeCapacityCheck
from lamina.simulator.workloads.scenario import PodArrival

DECIMALS: Final = 6
"""Times are kept to the microsecond."""
LONGEST_NAME: Final = 120
USUAL_PODS: Final = 110

_STRANGE: Final = re.compile(r"[^a-z0-9.]+")


class UniqueNames:
    """Gives things names that pods can have, no two alike."""

    def __init__(self) -> None:
        """Start with none taken."""
        self._taken: set[str] = set()

    def fresh(self, text: str, other: str = "") -> str:
        """Return a name as near to *text* as can be; *other* is tried before numbers are."""
        plain = plain_name(text)
        name, number = plain, 2
        if name in self._taken and other:
            name = plain = plain_name(other)
        while name in self._taken:
            name, number = f"{plain}-{number}", number + 1
        self._taken.add(name)
        return name


def plain_name(text: str) -> str:
    """Spell a text so that a pod or node can be called by it."""
    return _STRANGE.sub("-", text.lower()[:LONGEST_NAME]).strip("-.") or "x"


class PodDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A pod to be: what a row or job says of it."""

    at: float
    application: str
    name: str
    owner: Owner
    asked: Amounts
    life: PodLifecycle
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    line: int = 0
    """Where its file says it."""


class TraceWindow:
    """Which part of a trace is taken, and when that is in the scenario."""

    def __init__(self, entry: ImportEntry) -> None:
        """Take what the entry says."""
        self._start = 0.0 if entry.start is None else units.seconds(entry.start)
        self._until = None if entry.until is None else units.seconds(entry.until)
        self._at = units.seconds(entry.at)

    def place(self, at: float, seconds: float | None) -> tuple[float, float | None] | None:
        """Say when a pod comes and how long it still runs; None when it is outside."""
        if self._until is not None and at >= self._until:
            return None
        if at < self._start:
            # What was there before the window opened is there from the start, with what was left of its life.
            if seconds is not None and at + seconds <= self._start:
                return None
            seconds = None if seconds is None else round(at + seconds - self._start, DECIMALS)
            at = self._start
        return round(at - self._start + self._at, DECIMALS), seconds


def arrivals(drafts: Iterable[PodDraft], images: dict[str, str], entry: ImportEntry) -> tuple[PodArrival, ...]:
    """Make pods from drafts, in the order they come; what is equal about them is made once."""
    built: dict[tuple[str, Amounts], Pod] = {}
    found: list[PodArrival] = []
    for draft in select_drafts(drafts, entry):
        image = images[draft.application]
        if (plain := built.get((image, draft.asked))) is None:
            containers = (Container(image, draft.asked),)
            requests, ranked = total_requests(containers)
            plain = built[image, draft.asked] = Pod(
                uid=PodUid(""),
                name="",
                containers=containers,
                requests=requests,
                scoring_requests=ranked,
                scheduler_name=entry.scheduler,
            )
        pod = msgspec.structs.replace(
            plain,
            uid=PodUid(draft.name),
            name=draft.name,
            owner=draft.owner,
            labels=draft.labels,
            annotations=draft.annotations,
            created_at=draft.at,
        )
        found.append(PodArrival(draft.at, pod, draft.life))
    return tuple(found)


def select_drafts(drafts: Iterable[PodDraft], entry: ImportEntry) -> list[PodDraft]:
    """List the pods that are taken, in the order they come."""
    ordered = sorted(drafts, key=lambda draft: draft.at)
    return ordered if entry.limit is None else ordered[: entry.limit]


def applications(drafts: Iterable[PodDraft]) -> dict[str, int]:
    """Count the pods of each application."""
    counts: dict[str, int] = {}
    for draft in drafts:
        counts[draft.application] = counts.get(draft.application, 0) + 1
    return counts


def equal_nodes(entry: ImportEntry, context: ImportContext) -> tuple[VirtualNodeSpec, ...]:
    """Make the nodes that the entry asks for by number."""
    if entry.nodes is None:
        return ()
    asked = entry.nodes
    if isinstance(asked, int):
        # One host for each resource, as Batsim has it: large enough for what a resource asks for.
        asked = NodesEntry(count=asked, cpu=entry.cpu or 1, memory=entry.memory or "4Gi")
    own = {CPU: asked.cpu, MEMORY: asked.memory, PODS: asked.pods}
    bandwidth = context.like.bandwidth if asked.bandwidth is None else float(units.bandwidth(asked.bandwidth))
    spec = msgspec.structs.replace(
        context.like, allocatable=resources.amounts({**asked.resources, **own}), bandwidth=bandwidth
    )
    return tuple(
        msgspec.structs.replace(spec, name=f"{asked.name}{number}" if asked.count > 1 else asked.name)
        for number in range(1, asked.count + 1)
    )


def check_room(
    source: str, drafts: Iterable[PodDraft], own: tuple[VirtualNodeSpec, ...], context: ImportContext, what: str = "pod"
) -> None:
    """Refuse pods that fit on no node; without any node known, nobody can say."""
    nodes = (*context.nodes, *own)
    if nodes:
        mistakes = list(_without_room(source, drafts, NodeCapacityCheck(nodes), what))
        if mistakes:
            raise InputError(mistakes)


def _without_room(source: str, drafts: Iterable[PodDraft], room: NodeCapacityCheck, what: str) -> Iterator[Mistake]:
    """Tell for each resource the pod that lacks most of it: thousands of pods may lack the same."""
    looked: set[Amounts] = set()
    worst: dict[str, tuple[int, PodDraft, str]] = {}
    for draft in drafts:
        if draft.asked not in looked:
            looked.add(draft.asked)
            for name, message in room.lacking(draft.asked):
                amount = dict(draft.asked).get(name, 0)
                if name not in worst or amount > worst[name][0]:
                    worst[name] = (amount, draft, message)
    for _, draft, message in worst.values():
        yield Mistake(source, f"{message}; take larger nodes, or leave this {what} out", line=draft.line)


def check_count(source: str, count: int, line: int = 0, hint: str = "say limit, or split the file") -> None:
    """Refuse more pods than a run can hold."""
    if count > MOST_PODS:
        raise InputError.one(source, f"more than {MOST_PODS} pods; {hint}", line=line)
