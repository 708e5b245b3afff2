"""
Barriers: changes that the façade makes only to learn from the scheduler's log how far it has read its watches.

    pod     a pod with a scheduling gate comes or goes; no scheduler tries to place it
    bound   a pod on a node that does not exist is changed; for schedulers that handle bound pods apart (up to 1.35)
    node    the heartbeat of a node is renewed, which no scheduler reacts to

A scheduler handles the events of one watch in order, so the line about a barrier means that all earlier events of that
watch are handled, and that their consequences are logged. The line about a node may come before the work on that same
update, but after the work on all earlier ones.

Other updates of the node that serves as a barrier write the same line. So a node is chosen that did not change, or
else one more renewal is sent than there were other updates: then at least one line is about a renewal.
"""

from lamina.apiserver.settling.pending_pods import BARRIER, BOUND_BARRIER, PendingPods, pod_key
from lamina.apiserver.settling.scheduler_log import SchedulerLog
from lamina.simulator.facade.api_state import ApiState, rfc3339
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName
from lamina.simulator.facade.object_store import StoreEvent

GATE = "lamina.dev/barrier"
NO_NODE = "lamina-barrier"
"""Node of the bound barrier; no node has this name."""


class WatchBarriers:
    """Sends barriers to one scheduler, and knows when all lines about them were read."""

    def __init__(
        self, state: ApiState, pods: PendingPods, log: SchedulerLog, scheduler: str, *, bound: bool = False
    ) -> None:
        """Look for the barriers in *log*; *bound*: the scheduler handles bound pods apart."""
        self._state = state
        self._pods = pods
        self._log = log
        self._lines = log.barriers
        self._scheduler = scheduler
        self._bound = bound
        self._number = 0
        self._wanted: dict[str, int] = {}
        self._node_changes = -1
        """Number of changes of nodes before the last node barrier that was passed."""
        self._sent_at = (-1, -1)
        self._connecting = False
        """Whether the last `send` waits for the first line about any node: before it, an update may be no event."""
        self._updates: dict[str, int] = {}
        """Number of updates of each node since the last node barrier that was passed."""
        state.store.table("", "nodes").listeners[self._node_changed] = None

    def send(self) -> None:
        """Send the barriers that are needed after what has changed."""
        self._wanted = {}
        self._connecting = False
        self._sent_at = (self._pods.changes, self._pods.node_changes)
        self._want(pod_key(BARRIER), 1)
        self._toggle_pod()
        if self._bound:
            self._touch_bound_pod()
        if self._pods.node_changes != self._node_changes:
            self._send_to_node()

    @property
    def passed(self) -> bool:
        """Whether the log named all barriers of the last `send`."""
        if self._connecting and not self._log.nodes_added:
            return False
        return all(self._lines[name] >= count for name, count in self._wanted.items())

    @property
    def late(self) -> bool:
        """Whether a node changed since the last `send`, so that its node barrier may be gone."""
        return self._pods.node_changes != self._sent_at[1]

    def confirm(self) -> bool:
        """Note that the barriers are passed; return whether nothing changed since they were sent."""
        if self._connecting:
            return False
        if not self.late:
            self._node_changes = self._pods.node_changes
            self._updates.clear()
        return self._sent_at == (self._pods.changes, self._pods.node_changes)

    def _want(self, name: str, count: int) -> None:
        self._wanted[name] = self._lines.setdefault(name, 0) + count

    # -- pods --------------------------------------------------------------------------------------------------------

    def _toggle_pod(self) -> None:
        """Add the barrier pod, or delete it if it is there."""
        store = self._state.store
        table = store.table("", "pods")
        if table.get(BARRIER) is None:
            spec: KubeObject = {"schedulerName": self._scheduler, "schedulingGates": [{"name": GATE}]}
            store.put(table, BARRIER, self._pod(BARRIER, spec, "Pending"))
        else:
            store.delete(table, BARRIER)

    def _touch_bound_pod(self) -> None:
        """Add the bound barrier, or change an annotation of it."""
        self._want(pod_key(BOUND_BARRIER), 1)
        store = self._state.store
        table = store.table("", "pods")
        stored = table.get(BOUND_BARRIER)
        if stored is None:
            spec: KubeObject = {"schedulerName": self._scheduler, "nodeName": NO_NODE}
            store.put(table, BOUND_BARRIER, self._pod(BOUND_BARRIER, spec, "Running"))
            return
        self._number += 1
        metadata = {**stored.object["metadata"], "annotations": {GATE: str(self._number)}}
        store.put(table, BOUND_BARRIER, {**stored.object, "metadata": metadata})

    def _pod(self, key: NamespacedName, spec: KubeObject, phase: str) -> KubeObject:
        self._number += 1
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "uid": f"{key.name}-{self._number}",
                "creationTimestamp": self._state.timestamp(),
            },
            "spec": {**spec, "containers": [{"name": "barrier", "image": "none", "resources": {}}]},
            "status": {"phase": phase},
        }

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _node_changed(self, event: StoreEvent) -> None:
        if event.type == "MODIFIED":
            name = event.new.key.name
            self._updates[name] = self._updates.get(name, 0) + 1

    def _send_to_node(self) -> None:
        keys = self._state.store.table("", "nodes").keys()
        if keys and not self._log.nodes_added:
            self._connecting = True
            return
        updates = self._updates
        key = next((one for one in keys if one.name not in updates), None)
        if key is None and keys:
            key = min(keys, key=lambda one: updates[one.name])
        if key is None:
            return
        before = updates.get(key.name, 0)
        self._want(key.name, before + 1)
        for _ in range(before + 1):
            self._touch_node(key)

    def _touch_node(self, key: NamespacedName) -> None:
        """Renew the heartbeat of a node."""
        state = self._state
        table = state.store.table("", "nodes")
        stored = table.get(key)
        if stored is None:
            return
        self._number += 1
        status = dict(stored.object.get("status") or {})
        beat = rfc3339(state.epoch + self._number)
        conditions = status.get("conditions") or [{"type": "Ready", "status": "True"}]
        status["conditions"] = [{**one, "lastHeartbeatTime": beat} for one in conditions]
        state.store.put(table, key, {**stored.object, "status": status})
        self._pods.ignore_node_change()
