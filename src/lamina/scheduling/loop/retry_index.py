"""
Index of waiting pods by the changes that may help them.

Groups refused by the same plugins of the same profile share a bucket. One check then shows whether a kind of change
concerns any of them. If a plugin refused for lack of amounts (`AmountHintPlugin`), the bucket looks up the groups whose
needs the changed node offers. It calls the plugin only for these; otherwise it calls the plugin for each group. Room
that is held for nominated pods helps only pods that go before them. Gated pods are indexed by the plugin that holds them; a change that the plugin does not list costs nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from lamina.model.pod import Pod, PodUid
from lamina.model.resources import PODS
from lamina.scheduling.loop.amount_index import AmountIndex
from lamina.scheduling.loop.queued_pod import QueuedGroup, QueuedPodInfo
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange

OfferedAmounts: TypeAlias = dict[tuple[str, str], Mapping[str, int] | None]
"""Amounts that the changed node offers, by profile and plugin; computed once for all buckets."""


class RetryBucket:
    """Groups refused by the same plugins of a profile."""

    __slots__ = ("_exact", "_goes_first", "_indexes", "_interested", "_unknown", "groups", "profile", "refused_by")

    def __init__(self, profile: Profile, refused_by: frozenset[str]) -> None:
        """Start empty."""
        self.profile = profile
        self._goes_first = profile.goes_first
        self.refused_by = refused_by
        self.groups: dict[int, QueuedGroup] = {}
        self._indexes = {plugin: AmountIndex() for plugin in sorted(refused_by) if profile.hints_by_amounts(plugin)}
        self._exact = frozenset(plugin for plugin in self._indexes if profile.amounts_suffice(plugin))
        """Plugins for which a nominated pod takes what it requests."""
        self._unknown: dict[str, dict[int, QueuedGroup]] = {plugin: {} for plugin in self._indexes}
        """Groups without known needs, by plugin; the plugin is called for each of them."""
        self._interested: dict[ChangeKind, tuple[str, ...] | None] = {}

    def add(self, group: QueuedGroup) -> None:
        """Add a group."""
        self.groups[group.number] = group
        for plugin, index in self._indexes.items():
            needs = self.profile.needs(plugin, group.sample.pod)
            if needs:
                index.add(group.number, needs)
            else:
                self._unknown[plugin][group.number] = group

    def remove(self, group: QueuedGroup) -> None:
        """Remove a group."""
        del self.groups[group.number]
        for plugin, index in self._indexes.items():
            if self._unknown[plugin].pop(group.number, None) is None:
                index.remove(group.number)

    def helped(self, change: ClusterChange, offered: OfferedAmounts, held: Sequence[Pod]) -> Iterable[QueuedGroup]:
        """Return the groups that a change may help; *held* pods are nominated for the changed node."""
        if change.kind not in self._interested:
            self._interested[change.kind] = self._interested_in(change.kind)
        plugins = self._interested[change.kind]
        if plugins is None:
            return self.groups.values()
        found: dict[int, QueuedGroup] = {}
        for plugin in plugins:
            for group in self._candidates(plugin, change, offered):
                if group.number in found or (held and self._taken(plugin, group, offered, held)):
                    continue
                if self.profile.worth_retrying(plugin, group.sample.pod, change):
                    found[group.number] = group
        return found.values()

    def _taken(self, plugin: str, group: QueuedGroup, offered: OfferedAmounts, held: Sequence[Pod]) -> bool:
        """
        Return whether the changed node lacks amounts for a pod that waits alone, beside the *held* pods that go first.

        If one of them gives up its nomination, that is another change. Only one pod of a larger group is woken, and its
        pods can have several priorities.
        """
        if len(group.pods) > 1:
            return False
        pod = group.sample.pod
        amounts = offered.get((self.profile.name, plugin)) if plugin in self._exact else None
        ahead = [one for one in held if one.uid != pod.uid and self._goes_first(one, pod)]
        if amounts is None or not ahead:
            return False
        left = dict(amounts)
        for one in ahead:
            for name, amount in (*one.requests, (PODS, 1)):
                left[name] = left.get(name, 0) - amount
        needs = self.profile.needs(plugin, pod) or {}
        return any(left.get(name, 0) < amount for name, amount in needs.items())

    def _interested_in(self, kind: ChangeKind) -> tuple[str, ...] | None:
        """Return the plugins to call after a change of this kind; None if it may help every group."""
        if not self.refused_by:
            # No plugin refused (the cluster had no nodes): any change may help.
            return None
        interested = tuple(plugin for plugin in sorted(self.refused_by) if self.profile.listens(plugin, kind))
        return interested if all(self.profile.hints(plugin) for plugin in interested) else None

    def _candidates(self, plugin: str, change: ClusterChange, offered: OfferedAmounts) -> Iterable[QueuedGroup]:
        index = self._indexes.get(plugin)
        if index is None or change.row < 0:
            return self.groups.values()
        asked = (self.profile.name, plugin)
        if asked not in offered:
            offered[asked] = self.profile.offers(plugin, change.row)
        amounts = offered[asked]
        if amounts is None:
            return self.groups.values()
        return [*(self.groups[number] for number in index.within(amounts)), *self._unknown[plugin].values()]


class RetryIndex:
    """All groups and gated pods that wait for a change."""

    def __init__(self) -> None:
        """Start empty."""
        self._buckets: dict[tuple[Profile, frozenset[str]], RetryBucket] = {}
        self._gated: dict[tuple[Profile, str], dict[PodUid, QueuedPodInfo]] = {}

    def put(self, group: QueuedGroup, refused_by: frozenset[str]) -> None:
        """Index a non-empty group by the plugins that refused it last."""
        if group.refused_by == refused_by:
            return
        if group.refused_by is not None:
            self.remove(group)
        group.refused_by = refused_by
        key = (group.key[1], refused_by)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = RetryBucket(*key)
        bucket.add(group)

    def remove(self, group: QueuedGroup) -> None:
        """Remove a group."""
        assert group.refused_by is not None, "the group was filed"
        key = (group.key[1], group.refused_by)
        bucket = self._buckets[key]
        bucket.remove(group)
        if not bucket.groups:
            del self._buckets[key]

    def gate(self, queued: QueuedPodInfo, plugin: str) -> None:
        """Add a pod that a pre_enqueue plugin holds."""
        self._gated.setdefault((queued.profile, plugin), {})[queued.pod.uid] = queued

    def ungate(self, queued: QueuedPodInfo, plugin: str) -> None:
        """Remove a pod that a pre_enqueue plugin held."""
        pods = self._gated[queued.profile, plugin]
        del pods[queued.pod.uid]
        if not pods:
            del self._gated[queued.profile, plugin]

    def helped(self, change: ClusterChange, held: Sequence[Pod]) -> list[QueuedGroup | QueuedPodInfo]:
        """
        List the groups and gated pods that a change may help, in the order in which they began to wait.

        *held* pods are nominated for the changed node.
        """
        found: list[tuple[int, QueuedGroup | QueuedPodInfo]] = []
        offered: OfferedAmounts = {}
        for bucket in self._buckets.values():
            found.extend((group.number, group) for group in bucket.helped(change, offered, held))
        found.extend((queued.gated_as, queued) for queued in self._opened(change))
        return _in_order(found)

    def refused_by(self, plugin: str) -> list[QueuedGroup | QueuedPodInfo]:
        """List the groups and gated pods that *plugin* refused, in the same order."""
        found: list[tuple[int, QueuedGroup | QueuedPodInfo]] = []
        for bucket in self._buckets.values():
            if plugin in bucket.refused_by:
                found.extend(bucket.groups.items())
        for (_, gate), pods in self._gated.items():
            if gate == plugin:
                found.extend((queued.gated_as, queued) for queued in pods.values())
        return _in_order(found)

    def _opened(self, change: ClusterChange) -> Iterator[QueuedPodInfo]:
        for (profile, plugin), pods in self._gated.items():
            if profile.listens(plugin, change.kind):
                for queued in pods.values():
                    if profile.worth_retrying(plugin, queued.pod, change):
                        yield queued


def _in_order(found: list[tuple[int, QueuedGroup | QueuedPodInfo]]) -> list[QueuedGroup | QueuedPodInfo]:
    found.sort(key=lambda one: one[0])
    return [one for _, one in found]
