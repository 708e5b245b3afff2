"""
Lamina's answer to a parity case: the same Kubernetes objects, decoded, become events of a loop.

    case --wire/kube decoders--> events --> Loop with the profile kube-default --> Decision, Nominate, Evict

Nothing of the loop is replaced. The decision has every node's verdict, because the loop runs with full detail.
"""

import functools
from typing import Final

import msgspec

from lamina.model.decision import Decision
from lamina.model.events import Event, NamespaceSeen, NodeSeen, ObjectSeen, PodSeen, WorkDone
from lamina.model.pod import Pod
from lamina.scheduling.config.loader import Configuration
from lamina.scheduling.config.named_profiles import KUBE_DEFAULT, named
from lamina.scheduling.contract.commands import Bind, DoWork, Evict, Nominate, ReportUnschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.services.informers.watched_resources import OBJECTS
from lamina.wire.kube.codec import decode_node, decode_pod
from lamina.wire.kube.namespace import decode_namespace
from tests.parity.case_files import ParityCase
from tests.parity.case_objects import KubeJson

SETTINGS: Final = LoopSettings(detail="full")
DECODERS: Final = {one.resource.path.rpartition("/")[2]: one.decode for one in OBJECTS.values()}
"""Resource → decoder of its objects."""


class LaminaAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What Lamina decided."""

    unmet: tuple[str, ...]
    """Requirements of the pod that Lamina does not implement; such a pod is refused at once."""
    ignored: tuple[str, ...]
    """Preferences of the pod that Lamina does not implement."""
    feasible: frozenset[str]
    scores: dict[str, dict[str, int]]
    """Plugin → node → normalised and weighted score."""
    totals: dict[str, int]
    chosen: str
    message: str
    refused_by: frozenset[str]
    """Plugins that refused at least one node."""
    nominated: str
    victims: list[str]
    preempts: bool
    """Whether the profile has a plugin that makes room."""


@functools.cache
def configuration() -> Configuration:
    """Return the profile that stands for kube-scheduler's defaults."""
    return named(KUBE_DEFAULT, registry(entry_points=False))


def lamina_answer(case: ParityCase, fixtures: dict[str, list[KubeJson]]) -> LaminaAnswer:
    """Let a new loop decide the case; *fixtures* are the objects of all cases, by resource."""
    loop = Loop(configuration().profiles, lambda _: 0, SETTINGS)
    pod = _pod(case.pod)
    loop.feed(*_objects(fixtures), *_objects(case.objects), *_cluster(case))
    commands = loop.feed(PodSeen(pod))
    for work in [one for one in commands if isinstance(one, DoWork)]:
        commands += loop.feed(WorkDone(pod.uid, work.plugin, work.attempt))
    decision = next(one.decision for one in commands if isinstance(one, Bind | ReportUnschedulable))
    assert decision is not None, "the loop runs with full detail"
    return LaminaAnswer(
        unmet=pod.unmet,
        ignored=pod.ignored,
        feasible=frozenset(one.node for one in decision.verdicts if one.refusal is None),
        scores=_scores(decision),
        totals={one.node: one.total for one in decision.verdicts if one.total is not None},
        chosen="" if decision.chosen is None else decision.chosen.node,
        message=decision.message,
        refused_by=frozenset(one.refusal.plugin for one in decision.verdicts if one.refusal is not None),
        nominated=next((one.node for one in commands if isinstance(one, Nominate)), ""),
        victims=sorted(one.pod.name for one in commands if isinstance(one, Evict)),
        preempts=any(profile.post_filter for profile in loop.profiles.values()),
    )


def _objects(objects: dict[str, list[KubeJson]]) -> list[Event]:
    found: list[Event] = [_namespace(one) for one in objects.get("namespaces", ())]
    for resource, decode in DECODERS.items():
        found += [ObjectSeen(decode(msgspec.json.encode(one))) for one in objects.get(resource, ())]
    return found


def _cluster(case: ParityCase) -> list[Event]:
    found: list[Event] = [NodeSeen(decode_node(msgspec.json.encode(one))) for one in case.nodes]
    found += [PodSeen(_pod(one)) for one in case.placed]
    return found


def _pod(found: KubeJson) -> Pod:
    return decode_pod(msgspec.json.encode(found))


def _namespace(found: KubeJson) -> NamespaceSeen:
    one = decode_namespace(msgspec.json.encode(found))
    return NamespaceSeen(one.name, one.annotations, one.labels)


def _scores(decision: Decision) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for verdict in decision.verdicts:
        for one in verdict.scores:
            found.setdefault(one.plugin, {})[verdict.node] = one.points
    return found
