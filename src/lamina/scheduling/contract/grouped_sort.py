"""queueSort plugins that order groups of pods, such as those of one controller, so that a long queue stays cheap."""

from collections.abc import Hashable
from typing import Protocol, runtime_checkable

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.points import QueueSortPlugin


@runtime_checkable
class GroupedSortPlugin(QueueSortPlugin, Protocol):
    """Orders groups of pods, such as those of one controller. It is called for one pod of each group."""

    group_parts: int
    """Leading parts of a key that are equal for all pods of a group. The other parts never change."""
    order_edition: int
    """Increases whenever keys may have changed for another reason than time."""

    def sort_group(self, uid: PodUid) -> Hashable:
        """Return the group of a pod."""
        ...


@runtime_checkable
class PrecedencePlugin(QueueSortPlugin, Protocol):
    """Decides for which nominated pods room is kept; without it, for those of equal or higher priority."""

    def goes_first(self, nominated: Pod, pod: Pod) -> bool:
        """Return whether *pod* must leave the room of a *nominated* pod alone."""
        ...
