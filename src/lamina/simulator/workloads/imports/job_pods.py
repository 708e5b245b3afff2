"""
Pods of batch jobs: one for each resource that a job asks for, or as few as fill whole nodes (`wholeNodes`).

The pods of a job have one owner, and an annotation that says which job they are. Imports of Batsim and SWF workloads
share this.
"""

import math
from collections.abc import Iterator

import msgspec

from lamina.model.pod import Owner
from lamina.model.pod_groups import gang_annotations
from lamina.model.resources import PODS, Amounts
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.imports import pod_drafts
from lamina.simulator.workloads.imports.batsim_job import BatsimJob
from lamina.simulator.workloads.imports.pod_drafts import PodDraft


class JobShape(msgspec.Struct, frozen=True):
    """The pods of a job: what each requests, and how many they are."""

    asked: Amounts
    count: int


class JobPods:
    """Makes the pods of the jobs of one file."""

    def __init__(self, source: str, nodes: tuple[VirtualNodeSpec, ...], *, whole_nodes: bool) -> None:
        """Make pods for *nodes*; with *whole_nodes*, a pod fills the smallest of them."""
        self._source = source
        self._nodes = nodes
        self._whole_nodes = whole_nodes
        self._names = pod_drafts.UniqueNames()
        self._room: dict[Amounts, int] = {}
        self._made = 0

    def shape(self, each: Amounts, res: int) -> JobShape:
        """
        Return the pods of a job with *res* resources of which each requests *each*.

        Raises ValueError if all nodes together cannot hold them at once. A pod that fits on no node at all is not
        reported here, but by `check_room`, with the missing resource.
        """
        asked, count = self._filled(each, res) if self._whole_nodes else (each, res)
        if asked not in self._room:
            self._room[asked] = sum(_times(dict(node.allocatable), asked) for node in self._nodes)
        if count > (room := self._room[asked]) > 0:
            raise ValueError(f"the job needs {count} pods at once, and all nodes together have room for {room}")
        return JobShape(asked, count)

    def drafts(
        self, job: BatsimJob, shape: JobShape, at: float, life: PodLifecycle, application: str, line: int
    ) -> Iterator[PodDraft]:
        """Yield the pods of a job that comes at *at*. Raises InputError for more pods than a run can hold."""
        self._made += shape.count
        pod_drafts.check_count(self._source, self._made, line)
        name = self._names.fresh(f"{job.workload}-{job.job}")
        owner, annotations = Owner("Job", name, name), job.written()
        if shape.count > 1:
            # The pods of a job run at the same time, for schedulers that know gangs.
            annotations |= gang_annotations(name, shape.count)
        labels = {"app": pod_drafts.plain_name(application)}
        for number in range(1, shape.count + 1):
            yield PodDraft(
                at=at,
                application=application,
                name=name if shape.count == 1 else self._names.fresh(f"{name}-{number}"),
                owner=owner,
                asked=shape.asked,
                life=life,
                labels=labels,
                annotations=annotations,
                line=line,
            )

    def _filled(self, each: Amounts, res: int) -> tuple[Amounts, int]:
        """Return the requests of pods that fill the smallest node, and how many of them make up *res* resources."""
        full = max(1, min(_times(dict(node.allocatable), each) for node in self._nodes))
        return tuple((name, amount * full) for name, amount in each), math.ceil(res / full)


def _times(has: dict[str, int], asked: Amounts) -> int:
    """Return how many pods with these requests fit."""
    return min((has.get(name, 0) // amount for name, amount in (*asked, (PODS, 1)) if amount > 0), default=0)
