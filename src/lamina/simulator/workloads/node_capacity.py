"""Whether a pod has room on any node at all, and if not, what is lacking."""

from collections.abc import Iterable, Iterator

from lamina.model import quantity, resources
from lamina.model.resources import CPU, MEMORY, PODS, Amounts
from lamina.simulator.cluster import VirtualNodeSpec


class NodeCapacityCheck:
    """What the nodes of a scenario have when they are empty."""

    def __init__(self, nodes: Iterable[VirtualNodeSpec]) -> None:
        """Look at these nodes."""
        # Many nodes are alike; one of each kind is enough.
        self._kinds: dict[Amounts, str] = {}
        self._largest: dict[str, tuple[int, str]] = {}
        for node in nodes:
            if node.allocatable not in self._kinds:
                self._kinds[node.allocatable] = node.name
                for name, amount in node.allocatable:
                    if amount > self._largest.get(name, (0, ""))[0]:
                        self._largest[name] = (amount, node.name)

    def lacking(self, asked: Amounts) -> Iterator[tuple[str, str]]:
        """Yield resource and words for each amount no node has; one without a resource if only the mix fits nowhere."""
        alone = True
        for name, amount in asked:
            most, node = self._largest.get(name, (0, ""))
            if amount > most:
                alone = False
                has = f"the largest node, {node}, has {shown(name, most)}" if node else "no node has any"
                yield name, f"the pod asks for {shown(name, amount)} {name}, but {has}"
        needed = resources.add(asked, ((PODS, 1),))
        if alone and not any(_covers(dict(kind), needed) for kind in self._kinds):
            mix = " and ".join(f"{name} {shown(name, amount)}" for name, amount in needed if amount)
            yield "", f"the pod fits on no node: none has {mix} together"


def _covers(has: dict[str, int], needed: Amounts) -> bool:
    return all(amount <= has.get(name, 0) for name, amount in needed)


def shown(resource: str, amount: int) -> str:
    """Write an amount as Kubernetes does."""
    if resource == CPU:
        return quantity.format_milli(amount)
    return quantity.format_bytes(amount) if resource == MEMORY else str(amount)
