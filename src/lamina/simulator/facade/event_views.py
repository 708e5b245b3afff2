"""
Events in both API groups, and a limit on their number.

The real server stores an event once and shows it in the core group and in events.k8s.io. Schedulers write the newer
form, kubectl reads the older one. Here an event of events.k8s.io also gets an object in the core group. The reverse view
is left out, because no known client needs it.

Real events expire after an hour. Here the oldest are deleted when there are too many.
"""

from collections import deque
from typing import Final

from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, part
from lamina.simulator.facade.object_store import ResourceTable, StoreEvent

MOST_EVENTS: Final = 20_000
"""Most events in each group."""

# Field of events.k8s.io and its name in the core group.
_RENAMED: Final = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
_KEPT: Final = ("metadata", "reason", "type", "eventTime", "series", "action", "related", "reportingInstance")


class EventViews:
    """Keeps the events of one façade: listens to both tables."""

    def __init__(self, state: ApiState, most: int = MOST_EVENTS) -> None:
        """Keep at most *most* events in each group."""
        self._store = state.store
        self._core = state.store.table("", "events")
        self._newer = state.store.table("events.k8s.io", "events")
        self._most = most
        self._oldest: dict[int, deque[NamespacedName]] = {id(self._core): deque(), id(self._newer): deque()}
        self._core.listeners[self._core_changed] = None
        self._newer.listeners[self._newer_changed] = None

    def _core_changed(self, event: StoreEvent) -> None:
        self._limit(self._core, event)

    def _newer_changed(self, event: StoreEvent) -> None:
        key = event.new.key
        if event.type == "DELETED":
            self._store.delete(self._core, key)
        else:
            self._store.put(self._core, key, core_event(event.new.object))
        self._limit(self._newer, event)

    def _limit(self, table: ResourceTable, event: StoreEvent) -> None:
        if event.type != "ADDED":
            return
        oldest = self._oldest[id(table)]
        oldest.append(event.new.key)
        while len(oldest) > self._most:
            # A client may have deleted it already; deleting it again does nothing.
            self._store.delete(table, oldest.popleft())


def core_event(found: KubeObject) -> KubeObject:
    """Return an event of events.k8s.io in the form of the core group."""
    shown: KubeObject = {"apiVersion": "v1", "kind": "Event"}
    shown.update({name: found[name] for name in _KEPT if name in found})
    shown.update({older: found[newer] for newer, older in _RENAMED if newer in found})
    source = part(shown, "source") or {"component": shown.get("reportingComponent", "")}
    return {**shown, "source": source}
