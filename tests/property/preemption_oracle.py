"""Preemption by brute force: upstream's rules in plain Python, for pods that only cpu, memory and pod counts keep out."""

from collections.abc import Sequence

from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.node import Node
from lamina.model.pod import Pod

LATE = 10.0**12


def start(pod: Pod) -> float:
    return pod.started_at or pod.bound_at or LATE


def fits(node: Node, pods: Sequence[Pod], pod: Pod) -> bool:
    capacity = dict(node.allocatable)
    if len(pods) + 1 > capacity.get("pods", 0):
        return False
    for name, amount in pod.requests:
        used = sum(dict(one.requests).get(name, 0) for one in pods)
        if amount and used + amount > capacity.get(name, 0):
            return False
    return True


def violates(pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]) -> list[bool]:
    left = {one.name: one.disruptions_allowed for one in budgets}
    flags = []
    for pod in pods:
        flag = False
        for one in budgets:
            if one.namespace != pod.namespace or one.selector is None or not one.selector.match_labels:
                continue
            if one.selector.matches(pod.labels) and pod.name not in one.disrupted_pods:
                left[one.name] -= 1
                flag = flag or left[one.name] < 0
        flags.append(flag)
    return flags


def victims_on(
    node: Node, pods: Sequence[Pod], pod: Pod, budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[Pod], int] | None:
    """The victims on a node and how many of them violate a budget; None if evicting does not help."""
    gone = sorted((one for one in pods if one.priority < pod.priority), key=lambda one: (-one.priority, start(one)))
    there = [one for one in pods if one.priority >= pod.priority]
    if not gone or not fits(node, there, pod):
        return None
    flags = violates(gone, budgets)
    order = [one for one, flag in zip(gone, flags, strict=True) if flag]
    violating = len(order)
    order += [one for one, flag in zip(gone, flags, strict=True) if not flag]
    victims, violations = [], 0
    for number, one in enumerate(order):
        if fits(node, [*there, one], pod):
            there.append(one)
        else:
            victims.append(one)
            violations += number < violating
    return sorted(victims, key=lambda one: (-one.priority, start(one))), violations


def cost(victims: Sequence[Pod], violations: int) -> tuple[float, ...]:
    highest = max(one.priority for one in victims)
    total = sum(one.priority + 2**31 for one in victims)
    earliest = min(start(one) for one in victims if one.priority == highest)
    return violations, highest, total, len(victims), -earliest


def candidates(
    nodes: Sequence[Node], placed: dict[str, list[Pod]], pod: Pod, budgets: Sequence[PodDisruptionBudget]
) -> dict[str, tuple[list[Pod], tuple[float, ...]]]:
    """Node → victims and cost, for every node where evicting helps."""
    found = {}
    for node in nodes:
        result = victims_on(node, placed.get(node.name, []), pod, budgets)
        if result is not None and result[0]:
            found[node.name] = (result[0], cost(*result))
    return found
