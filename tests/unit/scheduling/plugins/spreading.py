"""Small clusters for the tests of PodTopologySpread: four nodes in two zones, and pods that are told by a label."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from lamina.model.node import Node
from lamina.model.pod import Owner, Pod, SpreadConstraint
from lamina.model.selectors import LabelSelector, Requirement
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import Code
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import HOSTNAME, ZONE, SpreadArgs
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused

NAME = "PodTopologySpread"
FOO = LabelSelector((), (Requirement("foo", "Exists"),))
BAR = LabelSelector((), (Requirement("bar", "Exists"),))
WEB = Owner("ReplicaSet", "web", "u1")


def node(name: str, zone: str | None = None, **more: Any) -> Node:
    """Build a node that has its name as host name."""
    labels = {HOSTNAME: name, **({} if zone is None else {ZONE: zone}), **more.pop("labels", {})}
    return a_node(name, labels=labels, **more)


def four() -> list[Node]:
    """Two nodes in each of two zones."""
    return [node("a", "z1"), node("b", "z1"), node("x", "z2"), node("y", "z2")]


def labelled(*labels: str, **changes: Any) -> Pod:
    """Build a pod that has these labels, and differs from others in *changes*."""
    return msgspec.structs.replace(a_pod(labels=dict.fromkeys(labels, "")), **changes)


def hard(key: str, selector: LabelSelector | None = FOO, skew: int = 1, **more: Any) -> SpreadConstraint:
    return SpreadConstraint(skew, key, "DoNotSchedule", selector, **more)


def soft(key: str, selector: LabelSelector | None = FOO, skew: int = 1, **more: Any) -> SpreadConstraint:
    return SpreadConstraint(skew, key, "ScheduleAnyway", selector, **more)


def bench(nodes: list[Node], counts: Mapping[str, int], pod: Pod | None = None) -> Bench:
    """Put so many pods (with the label foo, if nothing else is said) on nodes."""
    made = Bench(*nodes)
    for name, count in counts.items():
        made.place(name, *[labelled("foo") if pod is None else pod] * count)
    return made


def passes(on: Bench, pod: Pod, args: SpreadArgs | None = None) -> str:
    """Name the nodes that pass; those that never could in capitals."""
    no = refused(on, on.make(NAME, args), pod)
    return "".join(
        name.upper() if name in no and no[name].final else name
        for name in on.columns.rows
        if name not in no or no[name].final
    )


def scores(on: Bench, pod: Pod, among: str = "", args: SpreadArgs | None = None) -> dict[str, int] | None:
    """Return the points of those nodes that are feasible (all, if nothing is said); None when nothing is ranked."""
    plugin, state, nodes = on.make(NAME, args), CycleState(), on.view
    answer = plugin.pre_score(state, pod, nodes)
    if answer is not None:
        assert answer.code is Code.SKIP
        return None
    names = list(among) or list(on.columns.rows)
    feasible = np.zeros(len(nodes), dtype=np.bool_)
    feasible[[on.columns.rows[name] for name in names]] = True
    raw = plugin.score(state, pod, nodes)
    assert {-1} == set(raw.tolist())
    made = on.by_name(plugin.normalize(state, pod, raw, feasible).tolist())
    assert {0} >= {points for name, points in made.items() if name not in names}
    return {name: made[name] for name in names}
