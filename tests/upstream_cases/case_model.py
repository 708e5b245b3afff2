"""
Cases of kube-scheduler's own integration tests, retold: objects of a cluster, and what has to become of which pod.

A case begins with objects that the scheduler knows already. Each of its stages shows and hides objects, and then says
what has to hold. `lamina_cluster` gives a case to Lamina, the end-to-end story `upstream-cases` to kube-scheduler.

    on_nodes("a", "b")        bound to one of these nodes
    REFUSED                  unschedulable, without a nomination
    preempts(a={"low"})       nominated to node a, where exactly these pods are evicted; more nodes: one of them
"""

from collections.abc import Iterable

import msgspec

from tests.parity.case_objects import KubeJson


class Observation(msgspec.Struct, frozen=True):
    """What became of a pod."""

    node: str = ""
    nominated: str = ""
    victims: frozenset[str] = frozenset()
    """Names of all pods that are being deleted; only given for a nominated pod."""


class Expectation(msgspec.Struct, frozen=True):
    """What has to become of a pod; by default it is refused."""

    nodes: frozenset[str] = frozenset()
    victims: dict[str, frozenset[str]] = {}
    """Nominated node → names of the evicted pods."""

    def allows(self, found: Observation) -> bool:
        """Return whether an observation is as expected."""
        if found.node:
            return found.node in self.nodes
        if found.nominated:
            return self.victims.get(found.nominated) == found.victims
        return not self.nodes and not self.victims


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of the cluster, and what has to hold after them."""

    expect: dict[str, Expectation]
    """Pod name → expectation."""
    show: tuple[KubeJson, ...] = ()
    """Objects that are created or replaced."""
    hide: tuple[KubeJson, ...] = ()
    """Objects that are deleted, before the others are shown."""


class UpstreamCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case."""

    source: str
    """File below ``test/integration``, and test function."""
    case: str
    """Begin of the case's name in upstream's table; empty if the function has only one case."""
    before: tuple[KubeJson, ...]
    """Objects that exist before the scheduler starts."""
    stages: tuple[Stage, ...]

    @property
    def id(self) -> str:
        """Identify the case."""
        return f"{self.source}: {self.case}" if self.case else self.source


REFUSED = Expectation()


def on_nodes(*names: str) -> Expectation:
    """Expect the pod on one of these nodes."""
    return Expectation(frozenset(names))


def preempts(**victims: Iterable[str]) -> Expectation:
    """Expect the pod nominated to one of these nodes, with its victims; ``_`` stands for ``-`` in names of nodes."""
    return Expectation(victims={node.replace("_", "-"): frozenset(pods) for node, pods in victims.items()})


def differences(case: UpstreamCase, found: list[dict[str, Observation]]) -> list[str]:
    """Return one line for each pod that is not as expected; *found* has the observations of each stage."""
    return [
        f"{case.id}, stage {number}: {name} is {found[number].get(name)}, expected {expected}"
        for number, stage in enumerate(case.stages)
        for name, expected in stage.expect.items()
        if name not in found[number] or not expected.allows(found[number][name])
    ]
