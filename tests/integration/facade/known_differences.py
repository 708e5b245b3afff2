"""
What the façade does differently from a real API server, with the reason.

Sequences leave out what would differ in every answer after it:

- A bound pod whose own ``terminationGracePeriodSeconds`` is 0 stays until its kubelet has stopped it in virtual time, so
  that schedulers see that it is being deleted. A real server removes the object at once.
- A namespace is gone at once; a real server waits for a controller.
- ``propagationPolicy`` Foreground and Orphan take effect at once; a real server sets a finalizer for the garbage
  collector.
- PodDisruptionBudgets are evaluated at the time of an eviction; a real server uses the status that a controller wrote.
- Pods get the service account ``default``, which an admission plugin sets that the testbed's server does not run.
- Empty parts that Go always writes, such as ``nodeInfo`` with empty texts, may be missing.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from tests.integration.facade.differential_steps import APPLY, STRATEGIC, Step


class KnownDifference(msgspec.Struct, frozen=True):
    """One kind of difference that is accepted."""

    name: str
    reason: str
    applies: Callable[[Step, tuple[str, ...]], bool]
    """Called with the step and the differing fields."""

    def explains(self, step: Step, fields: tuple[str, ...]) -> bool:
        """Return whether this entry explains a difference."""
        return self.applies(step, fields)


KNOWN: Final = (
    KnownDifference(
        "names of disruption budgets",
        "A real server accepts any name for a PodDisruptionBudget; the façade checks it as all other names.",
        lambda step, fields: "poddisruptionbudgets" in step.path and "Not_A_Name" in str(step.body),
    ),
    KnownDifference(
        "scale without a change",
        "A write of scale with the present number of replicas changes the managedFields on a real server, and so the "
        "resource version.",
        lambda step, fields: step.path.endswith("/scale") and all("resourceVersion" in field for field in fields),
    ),
    KnownDifference(
        "owners of zeros",
        "On a real server no client owns a value of 0 that it created, such as the value of a PriorityClass. So an "
        "apply of another value does not conflict there, and is refused for another reason.",
        lambda step, fields: step.content_type == APPLY and "priorityclasses" in step.path and "has 409" in fields[0],
    ),
    KnownDifference(
        "repeated finalizers",
        "A strategic merge patch of a list that has one finalizer twice removes the repetition on a real server.",
        lambda step, fields: step.content_type == STRATEGIC and "finalizers" in fields[0],
    ),
    KnownDifference(
        "managers of the deletion time",
        "A write that repeats or changes the deletionTimestamp changes only the managedFields on a real server, and so "
        "the resource version.",
        lambda step, fields: "deletionTimestamp" in str(step.body) and all("resourceVersion" in one for one in fields),
    ),
)
