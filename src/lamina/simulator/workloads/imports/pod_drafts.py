"""
Pods and nodes made from imported rows and jobs: valid names, shared templates, room on nodes, and the image to run.

No trace names images, so popularity decides which image an application runs:

    applications   ranked by how many pods they have, ties by name
    images         the newest of each repository, ranked by given weights, or in an order drawn from the seed

The first application runs the first image, the second application the second image, and so on: an application that is
popular in the trace runs an image that is popular in the registry. If there are more applications than images, each
remaining application draws an image by weight; without given weights by Zipf's law, where rank r has weight r to the
power of -s. The same seed, catalog and trace give the same images.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from lamina.layers.catalog import folded, pinned
from lamina.model import resources
from lamina.model.digest import Digest
from lamina.model.errors import InputError, Mistake
from lamina.model.image import Image
from lamina.model.plain import shown
from lamina.model.pod import Container, Owner, Pod, PodUid, total_requests
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.model.resources import CPU, MEMORY, PODS, Amounts
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.capacity import NodeCapacityCheck
from lamina.simulator.workloads.catalog_statistics import repository_of
from lamina.simulator.workloads.imports import import_files
from lamina.simulator.workloads.imports.import_schema import (
    MOST_PODS,
    ImportContext,
    ImportEntry,
    ImportPopularityEntry,
    NodesEntry,
)
from lamina.simulator.workloads.scenario import PodArrival
from lamina.simulator.workloads.scenario_catalog import suggest_image

DECIMALS: Final = 6
"""Times are rounded to microseconds."""
LONGEST_NAME: Final = 120
USUAL_PODS: Final = 110

_STRANGE: Final = re.compile(r"[^a-z0-9.]+")


class UniqueNames:
    """Gives out unique names that are valid for pods and nodes."""

    def __init__(self) -> None:
        """Start without taken names."""
        self._taken: set[str] = set()

    def fresh(self, text: str, other: str = "") -> str:
        """Return a free name similar to *text*; if that is taken, try *other*, then append numbers."""
        plain = plain_name(text)
        name, number = plain, 2
        if name in self._taken and other:
            name = plain = plain_name(other)
        while name in self._taken:
            name, number = f"{plain}-{number}", number + 1
        self._taken.add(name)
        return name


def plain_name(text: str) -> str:
    """Return a text as a valid name of a pod or node."""
    return _STRANGE.sub("-", text.lower()[:LONGEST_NAME]).strip("-.") or "x"


class PodDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A pod described by a row or job, before it has an image."""

    at: float
    application: str
    name: str
    owner: Owner
    asked: Amounts
    life: PodLifecycle
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    line: int = 0
    """Line in its file."""


class TraceWindow:
    """The part of a trace that is imported, and its offset in the scenario."""

    def __init__(self, entry: ImportEntry) -> None:
        """Take `from`, `until` and `at` from the entry."""
        self._start = 0.0 if entry.start is None else entry.start
        self._until = entry.until
        self._at = entry.at

    def place(self, at: float, seconds: float | None) -> tuple[float, float | None] | None:
        """Return arrival and remaining duration of a pod, in seconds; None if it is outside the window."""
        if self._until is not None and at >= self._until:
            return None
        if at < self._start:
            # A pod that was running when the window opens arrives at its start, with its remaining duration.
            if seconds is not None and at + seconds <= self._start:
                return None
            seconds = None if seconds is None else round(at + seconds - self._start, DECIMALS)
            at = self._start
        return round(at - self._start + self._at, DECIMALS), seconds


def arrivals(drafts: Iterable[PodDraft], images: dict[str, str], entry: ImportEntry) -> tuple[PodArrival, ...]:
    """Return pods made from drafts, in order of arrival; pods with equal image and requests share a template."""
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
    """Return the first drafts in order of arrival, up to the limit of the entry."""
    ordered = sorted(drafts, key=lambda draft: draft.at)
    return ordered if entry.limit is None else ordered[: entry.limit]


def applications(drafts: Iterable[PodDraft]) -> dict[str, int]:
    """Return the number of pods of each application."""
    counts: dict[str, int] = {}
    for draft in drafts:
        counts[draft.application] = counts.get(draft.application, 0) + 1
    return counts


def equal_nodes(entry: ImportEntry, context: ImportContext) -> tuple[VirtualNodeSpec, ...]:
    """Return the equal nodes that the entry sets with `nodes`."""
    if entry.nodes is None:
        return ()
    asked = entry.nodes
    if isinstance(asked, int):
        # As in Batsim, one host per resource, large enough for the requests of one resource.
        asked = NodesEntry(count=asked, cpu=entry.cpu or 1, memory=entry.memory or "4Gi")
    own = {CPU: asked.cpu, MEMORY: asked.memory, PODS: asked.pods}
    bandwidth = context.like.bandwidth if asked.bandwidth is None else asked.bandwidth
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
    """Raise InputError if pods fit on no node; without nodes, nothing is checked."""
    nodes = (*context.nodes, *own)
    if nodes:
        mistakes = list(_without_room(source, drafts, NodeCapacityCheck(nodes), what))
        if mistakes:
            raise InputError(mistakes)


def _without_room(source: str, drafts: Iterable[PodDraft], room: NodeCapacityCheck, what: str) -> Iterator[Mistake]:
    """Yield one mistake per missing resource, for the pod that requests most of it; thousands may miss the same."""
    looked: set[Amounts] = set()
    worst: dict[str, tuple[int, PodDraft, str]] = {}
    for draft in drafts:
        if draft.asked not in looked:
            looked.add(draft.asked)
            for name, message in room.missing_resources(draft.asked):
                amount = dict(draft.asked).get(name, 0)
                if name not in worst or amount > worst[name][0]:
                    worst[name] = (amount, draft, message)
    for _, draft, message in worst.values():
        yield Mistake(source, f"{message}; take larger nodes, or leave this {what} out", line=draft.line)


def check_count(source: str, count: int, line: int = 0, hint: str = "say limit, or split the file") -> None:
    """Raise InputError for more pods than a run can hold."""
    if count > MOST_PODS:
        raise InputError.one(source, f"more than {MOST_PODS} pods; {hint}", line=line)


class ImageChooser:
    """Finds images of a scenario by name, and chooses images for applications by popularity."""

    def __init__(self, entry: ImportEntry, folder: Path, context: ImportContext) -> None:
        """Index the images of *context* by name, digest and repository."""
        self._entry, self._folder, self._context = entry, folder, context
        self._named: dict[str, Image] = {folded(name): one for one in context.images for name in one.names}
        self._digests: dict[Digest, Image] = {image.digest: image for image in context.images}
        self._newest: dict[str, Image] = {repository_of(image): image for image in context.images if image.names}

    def find(self, name: str) -> Image | None:
        """Return the image with this name or digest; None if there is none."""
        return self._named.get(folded(name)) or self._digests.get(pinned(name) or Digest(""))

    def what_to_try(self, name: str) -> str:
        """Return a hint for a name that no image has."""
        names = [image.names[0] for image in self._digests.values() if image.names]
        return suggest_image(name, names) if names else "name a catalog, or list it under images"

    def choose(self, applications: Mapping[str, int]) -> dict[str, str]:
        """Return an image for every application; *applications* has the number of pods of each."""
        image = self._entry.image
        if image is not None:
            if self.find(image) is None:
                message = f"there is no image {shown(image)}; {self.what_to_try(image)}"
                raise InputError([self._context.entry.mistake(message, "image")])
            return dict.fromkeys(applications, image)
        ranked = self._ranked(self._entry.popularity or ImportPopularityEntry())
        names = [name for name, _ in ranked]
        weights = list(itertools.accumulate(weight for _, weight in ranked))
        rng = Random(f"imported images {self._context.seed}")
        order = sorted(applications, key=lambda one: (-applications[one], one))
        return {
            application: names[rank] if rank < len(names) else rng.choices(names, cum_weights=weights)[0]
            for rank, application in enumerate(order)
        }

    def _ranked(self, popularity: ImportPopularityEntry) -> list[tuple[str, float]]:
        """Return images with their weights, the most popular first."""
        if not self._newest:
            message = "there is no image to run; name a catalog, list images, or say image"
            raise InputError([self._context.entry.mistake(message)])
        if popularity.file is None and popularity.column is not None:
            raise InputError([self._context.entry.mistake("say file as well", "popularity", "column")])
        if popularity.file is None and not popularity.weights:
            names = [image.names[0] for image in self._newest.values()]
            Random(f"imported ranks {self._context.seed}").shuffle(names)
            return [(name, rank**-popularity.zipf) for rank, name in enumerate(names, 1)]
        found: dict[str, float] = {}
        for name, weight in {**self._table(popularity), **popularity.weights}.items():
            image = self._meant(name)
            if image is not None:
                found[image.names[0]] = found.get(image.names[0], 0.0) + weight
            elif name in popularity.weights:
                message = f"there is no image or repository {shown(name)}; {self.what_to_try(name)}"
                raise InputError([self._context.entry.mistake(message, "popularity", "weights", name)])
        if not found:
            message = "none of its images is in the catalog; name another table, or leave it out"
            raise InputError([self._context.entry.mistake(message, "popularity", "file")])
        return sorted(found.items(), key=lambda one: (-one[1], one[0]))

    def _meant(self, name: str) -> Image | None:
        """Return the image with this name, or else the newest image of this repository."""
        try:
            return self.find(name) or self._newest.get(parse_reference(name).name)
        except ReferenceFormatError:
            return None

    def _table(self, popularity: ImportPopularityEntry) -> dict[str, float]:
        weights: dict[str, float] = {}
        if popularity.file is None:
            return weights

        def take(row: import_files.TableRow) -> None:
            names = list(row.columns)
            column = popularity.column or names[min(1, len(names) - 1)]
            if column not in names:
                raise row.wrong(column, f"there is no such column; choose from {', '.join(names[:12])}")
            if (weight := row.number(column)) > 0:
                name = row.text(names[0])
                weights[name] = weights.get(name, 0.0) + weight

        path = import_files.located(self._context, self._folder, popularity.file, "popularity", "file")
        import_files.each(import_files.rows(path, (), open_ended=True), take)
        return weights
