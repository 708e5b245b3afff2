"""
The chain of extenders of other vendors: which of them are called for a pod, and in which order.

The configuration builds it, and the loop and the host share it. Nothing here calls an extender: the loop returns
`AskExtenders`, and the host answers. Order and interest are kube-scheduler's: extenders whose failures are ignored come
last, and an extender that manages resources is called only for pods that name one of them.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from lamina.model.pod import Pod
from lamina.scheduling.contract.points import MAX_SCORE

NAME: Final = "Extender"
"""The plugin name of refusals by extenders, as in kube-scheduler. No plugin has it, so that any change retries a pod."""
HIGHEST: Final = 10
"""Highest score on the extenders' scale."""
GRACE: Final = 30.0
"""Seconds beyond all timeouts after which the loop stops waiting for the host's answer."""


class CalledExtender(msgspec.Struct, frozen=True, kw_only=True):
    """One extender, without what is needed to reach it."""

    name: str
    """Its URL, and a number if several extenders have the same URL."""
    filters: bool = False
    prioritizes: bool = False
    preempts: bool = False
    binds: bool = False
    weight: int = 0
    ignorable: bool = False
    """Whether failures of filter, preempt and bind are skipped; failures of prioritize always are."""
    managed: frozenset[str] = frozenset()
    """Names of the resources that it manages; empty: it is called for every pod."""
    timeout: float = 5.0
    """Seconds for one call."""

    @property
    def scale(self) -> int:
        """The factor of its scores."""
        return self.weight * (MAX_SCORE // HIGHEST)

    def interested(self, pod: Pod) -> bool:
        """Return whether the extender is called for a pod."""
        return not self.managed or any(
            name in self.managed
            for container in (*pod.containers, *pod.init_containers)
            for name, _ in (*container.requests, *container.limits)
        )


class ExtenderChain:
    """All extenders of a configuration."""

    def __init__(self, extenders: Sequence[CalledExtender] = ()) -> None:
        """Put the extenders in order; those that are ignorable come last."""
        self.extenders = tuple(sorted(extenders, key=lambda one: one.ignorable))
        self.timeout = (
            sum(one.timeout for one in self.extenders if one.filters)
            + max((one.timeout for one in self.extenders if one.prioritizes), default=0.0)
            + GRACE
        )
        """Longest time in seconds until the host has an answer about nodes."""
        self.preempt_timeout = sum(one.timeout for one in self.extenders if one.preempts) + GRACE
        """The same for an answer about victims."""

    def asked(self, pod: Pod, nodes: int) -> tuple[str, ...]:
        """Return the names of the extenders to ask about this number of feasible nodes."""
        if not self.extenders or nodes == 0:
            return ()
        found = [one for one in self.extenders if (one.filters or one.prioritizes) and one.interested(pod)]
        if nodes == 1 and not any(one.filters for one in found):
            # As upstream: nothing is scored if there is no choice.
            return ()
        return tuple(one.name for one in found)

    def preempting(self, pod: Pod) -> tuple[str, ...]:
        """Return the names of the extenders to ask about victims for a pod."""
        return tuple(one.name for one in self.extenders if one.preempts and one.interested(pod))

    def binder(self, pod: Pod) -> str:
        """Return the name of the extender that binds a pod; empty if none does."""
        return next((one.name for one in self.extenders if one.binds and one.interested(pod)), "")
