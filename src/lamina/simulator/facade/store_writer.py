"""
From the cluster to the API: events of the simulation become objects in the store.

    PodSeen     a new pod is encoded; a known one gets its new state, everything else stays as the client sent it
    NodeSeen    likewise: only what the cluster changed since the last event is written
    PodGone, NodeGone    the object is deleted

Pods that have ended stay until there are too many of them, as with the pod garbage collector of a real cluster.
"""

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Final

from lamina.model.cluster_objects import ClusterObject
from lamina.model.events import Event, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodSeen
from lamina.model.node import Node
from lamina.model.pod import Pod, PodUid
from lamina.model.selecting_objects import ReplicaSet, StatefulSet
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.controllers.deployment import HASH_LABEL
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.cluster_object_writer import ClusterObjectWriter
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, controller_of, part, uid_of
from lamina.simulator.facade.node_objects import internal_address, remove_lease, with_addresses, write_lease
from lamina.simulator.facade.object_store import StoreEvent
from lamina.simulator.facade.pod_status import with_state
from lamina.simulator.facade.replica_sets import ReplicaSets
from lamina.simulator.facade.system_objects import ensure_namespace, ensure_priority_classes
from lamina.simulator.facade.workload_objects import controller_name, workload_status
from lamina.simulator.facade.write_verbs import WORKLOADS
from lamina.wire.kube.node_encoder import encode_node
from lamina.wire.kube.pod_encoder import encode_pod
from lamina.wire.kube.pod_status_encoder import PodDetails

MOST_ENDED: Final = 12_500
"""Most ended pods that stay in the store, as ``--terminated-pod-gc-threshold`` of the controller manager."""


class StoreWriter:
    """Writes the events of one cluster to one store."""

    def __init__(self, state: ApiState, cluster: VirtualCluster, most_ended: int = MOST_ENDED) -> None:
        """Write to *state*; *cluster* says why a pod failed."""
        self._state = state
        self._cluster = cluster
        self._most_ended = most_ended
        self.objects: ClusterObjectWriter | None = None
        """Writes objects besides pods and nodes; None: they are not written."""
        self._pods = state.store.table("", "pods")
        self._nodes = state.store.table("", "nodes")
        self._keys: dict[str, NamespacedName] = {}
        self._seen: dict[str, Node] = {}
        self._joined = 0
        """Number of nodes that have joined."""
        self._ended: deque[str] = deque()
        self._owners: dict[str, tuple[str, str, NamespacedName]] = {}
        """Group, resource and key of each workload, by the name of its controller."""
        self._owned: dict[str, dict[NamespacedName, None]] = {}
        self._replica_sets = ReplicaSets(state)
        self._renewed: dict[NamespacedName, None] = {}
        """Deployments that changed since their ReplicaSets were compared with them."""
        self._stale: dict[str, None] = {}
        """Controllers whose pods changed since their status was written."""
        ensure_priority_classes(state)
        self._pods.listeners[self._indexed] = None
        for group, resource in (
            ("apps", "deployments"),
            ("apps", "replicasets"),
            ("apps", "statefulsets"),
            ("apps", "daemonsets"),
            ("batch", "jobs"),
        ):
            state.store.table(group, resource).listeners[partial(self._workload_changed, group, resource)] = None

    def apply(self, events: Iterable[Event]) -> None:
        """Write the consequences of events to the store."""
        self._renew_replica_sets()
        for event in events:
            match event:
                case PodSeen(pod):
                    self._pod_seen(pod)
                case PodGone(uid):
                    self._pod_gone(uid)
                case NodeSeen(node):
                    self._node_seen(node)
                case NodeGone(name):
                    self._seen.pop(name, None)
                    self._state.store.delete(self._nodes, NamespacedName("", name))
                    remove_lease(self._state, name)
                case ObjectSeen(found) if self.objects is not None and not self._of_client(found):
                    self.objects.seen(found)
                case ObjectGone(key) if self.objects is not None:
                    self.objects.gone(key)
                case _:
                    continue
        self._write_statuses()

    # -- pods --------------------------------------------------------------------------------------------------------

    def _pod_seen(self, pod: Pod) -> None:
        state, key = self._state, self._keys.get(pod.uid)
        if key is None:
            self._new_pod(pod)
            return
        stored = self._pods.get(key)
        if stored is None:
            return
        virtual = self._cluster.pods.get(pod.uid)
        reason = "" if virtual is None else virtual.reason
        found = with_state(stored.object, pod, state.timestamp(), reason, self._host_address(pod.node_name))
        if pod.deleting and not found["metadata"].get("deletionTimestamp"):
            grace = 0.0 if virtual is None or virtual.grace is None else virtual.grace
            found = _deleting(found, state.timestamp(grace), int(grace))
        if state.store.put(self._pods, key, found) is not stored and pod.finished:
            self._collect(pod.uid)

    def _host_address(self, node: str) -> str:
        stored = self._nodes.get(NamespacedName("", node)) if node else None
        return "" if stored is None else internal_address(stored.object)

    def _new_pod(self, pod: Pod) -> None:
        state, key = self._state, NamespacedName(pod.namespace, pod.name)
        virtual = self._cluster.pods.get(pod.uid)
        if virtual is None or virtual.phase == "removed":
            # Its deletion came before the event: a client removed it at once.
            return
        if self._pods.get(key) is not None:
            # An ended pod of the same name, which its controller replaces.
            state.store.delete(self._pods, key)
        self.ensure_namespace(pod.namespace)
        life = virtual.life
        found = encode_pod(pod, state.epoch, PodDetails(grace=int(life.grace), restart_policy=life.restart))
        name = "" if pod.owner is None else pod.owner.name
        # The ReplicaSets of a Deployment are named after its controller.
        for controller in (name, name.rpartition("-")[0]):
            if controller in self._owners:
                found = self._owned_by(found, controller, self._owners[controller])
        state.store.put(self._pods, key, found)

    def _pod_gone(self, uid: PodUid) -> None:
        key = self._keys.get(uid)
        stored = None if key is None else self._pods.get(key)
        if stored is None:
            return
        if stored.object["metadata"].get("finalizers"):
            # The kubelet has stopped it; the object stays until a client removes the last finalizer.
            self._state.store.put(self._pods, stored.key, _deleting(stored.object, self._state.timestamp(), 0))
        else:
            self._state.store.delete(self._pods, stored.key)

    def _collect(self, uid: str) -> None:
        """Count an ended pod; delete the oldest ones if there are too many."""
        self._ended.append(uid)
        while len(self._ended) > self._most_ended:
            self._pod_gone(PodUid(self._ended.popleft()))

    def _indexed(self, event: StoreEvent) -> None:
        """Keep the index of uids, whichever way a pod came and went."""
        uid = uid_of(event.new.object)
        if event.type == "DELETED":
            self._keys.pop(uid, None)
        else:
            self._keys[uid] = event.new.key
        name = self._controller_of(event.new.object)
        if name:
            owned = self._owned.setdefault(name, {})
            if event.type == "DELETED":
                owned.pop(event.new.key, None)
            else:
                owned[event.new.key] = None
            self._stale[name] = None

    def ensure_namespace(self, name: str) -> None:
        """Create a namespace that pods of the scenario use, if it does not exist."""
        ensure_namespace(self._state, name)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _node_seen(self, node: Node) -> None:
        state, key = self._state, NamespacedName("", node.name)
        before, self._seen[node.name] = self._seen.get(node.name), node
        encoded = encode_node(node, state.epoch, created_at=state.now - state.epoch)
        if before is None:
            self._joined += 1
            encoded = with_addresses(encoded, self._joined)
        stored = self._nodes.get(key)
        if stored is None:
            write_lease(state, state.store.put(self._nodes, key, encoded).object)
            return
        found = stored.object
        spec, status = dict(part(found, "spec")), dict(part(found, "status"))
        if before is None or before.images != node.images:
            status["images"] = part(encoded, "status").get("images", [])
        if before is None or before.taints != node.taints or before.unschedulable != node.unschedulable:
            for name in ("taints", "unschedulable"):
                if name in encoded["spec"]:
                    spec[name] = encoded["spec"][name]
                else:
                    spec.pop(name, None)
            status["conditions"] = encoded["status"]["conditions"]
        if before is None:
            status = {**encoded["status"], **{name: value for name, value in status.items() if value}}
        metadata = found["metadata"]
        if before is not None and before.labels != node.labels:
            metadata = {**metadata, "labels": encoded["metadata"].get("labels", {})}
        if before is not None and before.allocatable != node.allocatable:
            for name in ("allocatable", "capacity"):
                status[name] = encoded["status"][name]
        state.store.put(self._nodes, key, {**found, "metadata": metadata, "spec": spec, "status": status})
        if before is None:
            write_lease(state, found)

    # -- objects ---------------------------------------------------------------------------------------------------------

    def _of_client(self, found: ClusterObject) -> bool:
        """Return whether an object belongs to a controller of a client's workload, which the store has already."""
        if not isinstance(found, ReplicaSet | StatefulSet):
            return False
        return found.name in self._owners or found.name.rpartition("-")[0] in self._owners

    # -- workloads -----------------------------------------------------------------------------------------------------

    def _workload_changed(self, group: str, resource: str, event: StoreEvent) -> None:
        """Keep the index of controllers."""
        if controller_of(event.new.object):
            # A ReplicaSet of a Deployment, which has the pods itself.
            return
        name = controller_name(event.new.object)
        if resource == "deployments":
            self._renewed[event.new.key] = None
        if event.type == "DELETED":
            self._owners.pop(name, None)
            self._owned.pop(name, None)
        else:
            self._owners[name] = (group, resource, event.new.key)
            self._stale[name] = None

    def _controller_of(self, pod: KubeObject) -> str:
        return str((pod["metadata"].get("annotations") or {}).get(CONTROLLER, ""))

    def _renew_replica_sets(self) -> None:
        """Give changed Deployments a ReplicaSet for their template."""
        table = self._state.store.table("apps", "deployments")
        changed, self._renewed = self._renewed, {}
        for key in changed:
            stored = table.get(key)
            if stored is not None:
                self._replica_sets.renew(stored)
        # Writing a revision marks its Deployment again.
        self._renewed = {}

    def _owned_by(self, pod: KubeObject, name: str, owner: tuple[str, str, NamespacedName]) -> KubeObject:
        group, resource, key = owner
        stored = self._state.store.table(group, resource).get(key)
        if stored is None:
            return pod
        if resource == "deployments":
            version = part(pod["metadata"], "labels").get(HASH_LABEL, "")
            stored = self._replica_sets.find(stored.object, version) or stored
        reference = {
            "apiVersion": stored.object["apiVersion"],
            "kind": stored.object["kind"],
            "name": stored.key.name,
            "uid": uid_of(stored.object),
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {
            **pod["metadata"],
            "ownerReferences": [reference],
            "annotations": {**(pod["metadata"].get("annotations") or {}), CONTROLLER: name},
        }
        return {**pod, "metadata": metadata}

    def _write_statuses(self) -> None:
        """Write the status of workloads whose pods changed."""
        stale, self._stale = self._stale, {}
        for name in stale:
            owner = self._owners.get(name)
            if owner is None:
                continue
            group, resource, key = owner
            table = self._state.store.table(group, resource)
            stored = table.get(key)
            if stored is None or stored.object["kind"] not in WORKLOADS:
                continue
            pods = [one.object for pod in self._owned.get(name, ()) if (one := self._pods.get(pod)) is not None]
            status = workload_status(stored.object, pods, self._state.timestamp())
            self._state.store.put(table, key, {**stored.object, "status": status})
            if resource == "deployments":
                self._replica_sets.write_statuses(stored.object, pods)
        # Writing a status marks its workload again.
        self._stale = {}


CONTROLLER: Final = "lamina.dev/controller"
"""Annotation of pods whose workload a client created: the name of the controller in the run."""


def _deleting(found: KubeObject, at: str, grace: int) -> KubeObject:
    metadata = {**found["metadata"], "deletionTimestamp": at, "deletionGracePeriodSeconds": grace}
    return {**found, "metadata": metadata}
