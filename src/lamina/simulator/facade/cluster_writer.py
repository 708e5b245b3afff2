"""
From the API to the cluster: what clients write becomes input of the simulation.

A binding is a decision, so it becomes a `Bind` command of the decider; the host then applies decision latency and counts
the attempt. Everything else acts on the cluster directly. Every input is also a line of the decision log
(`decision_log`), from which the run can be repeated without the scheduler.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from lamina.model.decision import Decision
from lamina.model.errors import InputError
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable
from lamina.simulator.cluster import VirtualCluster, VirtualNodeSpec
from lamina.simulator.controllers import ControllerManager
from lamina.simulator.engine import Environment
from lamina.simulator.facade.api_errors import bad_request
from lamina.simulator.facade.kube_object import KubeObject, controller_of, uid_of
from lamina.simulator.facade.workload_objects import controller_name, controller_spec
from lamina.simulator.workloads.imports.manifest_objects import ManifestObject
from lamina.simulator.workloads.imports.manifests import manifest_lifecycle_of
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_node, decode_pod

AFTER_DECIDING: Final = 20
"""Event priority of deletions: after the decider, which must see that the pod is being deleted."""
BANDWIDTH: Final = 125e6
"""Download rate in bytes per second of nodes that clients create: 1 Gbit/s."""


class ClusterInput(msgspec.Struct, frozen=True, omit_defaults=True):
    """One input of a client, as in the decision log."""

    op: str
    subject: str = ""
    """Uid of a pod, or name of a node."""
    target: str = ""
    """Node of a binding, or message of a refusal."""
    seconds: float = 0.0
    """Grace of a deletion; for a decision whose time is measured, the seconds since its feed."""
    object: dict[str, Any] | None = None


class ClusterWriter:
    """Passes the writes of clients to one cluster. Implements `ClusterInputs`."""

    def __init__(
        self,
        environment: Environment,
        cluster: VirtualCluster,
        controllers: Callable[[], ControllerManager],
        profile: str,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """
        Act on *cluster*; *controllers* returns the manager of workloads; *profile* names the scheduler.

        With a *clock*, the real time of each decision is measured.
        """
        self._environment = environment
        self._cluster = cluster
        self._controllers = controllers
        self._profile = profile
        self._clock = clock
        self._began = 0.0
        self._commands: list[Command] = []
        self._elapsed: list[float] = []
        self.elapsed: Sequence[float] = ()
        """Seconds from the begin of the feed to each command that `take` returned last; 0 if they are not measured."""
        self._attempts: dict[PodUid, int] = {}
        self.inputs: list[ClusterInput] = []
        """Inputs since the last `take`, in order."""

    def begin_feed(self) -> None:
        """Measure the times of the following decisions from now on."""
        if self._clock is not None:
            self._began = self._clock()

    def take(self) -> tuple[list[Command], list[ClusterInput]]:
        """Return the commands and inputs since the last call."""
        commands, inputs, self.elapsed = self._commands, self.inputs, self._elapsed
        self._commands, self.inputs, self._elapsed = [], [], []
        return commands, inputs

    def repeat(self, found: ClusterInput) -> None:
        """Perform an input of a decision log again."""
        match found.op:
            case "bind":
                self._bind(found.subject, found.target, found.seconds)
            case "refuse":
                self._refuse(found.subject, found.target, found.seconds)
            case "delete":
                self._delete(found.subject, found.seconds)
            case "remove":
                self._remove(found.subject)
            case "create":
                self.pod_created(found.object or {})
            case "node":
                self.node_written(found.object or {})
            case "drop":
                self.node_deleted(found.subject)
            case "workload":
                self.workload_written(found.object or {})
            case "unload":
                self.workload_deleted(found.object or {})

    # -- pods --------------------------------------------------------------------------------------------------------

    def pod_created(self, pod: KubeObject) -> None:
        """Submit a pod. Raises StatusError 400 if the simulator cannot read it."""
        data = msgspec.json.encode(pod)
        try:
            decoded = decode_pod(data)
            life = manifest_lifecycle_of(ManifestObject("pod", 1, "Pod", data), "")
        except (WireError, InputError) as error:
            raise bad_request(f"the pod cannot be simulated: {error}") from error
        created = msgspec.structs.replace(decoded, created_at=self._environment.now, bound_at=0.0)
        self._cluster.submit(created, life)
        self.inputs.append(ClusterInput("create", uid_of(pod), object=pod))

    def pod_bound(self, pod: KubeObject, node: str) -> None:
        """Return a Bind command with the next `take`."""
        self._bind(uid_of(pod), node, self._since_feed())

    def _bind(self, uid: str, node: str, seconds: float) -> None:
        pod = self._pod(uid)
        if pod is not None:
            self._decide(Bind(pod, node), seconds)
            self._attempts.pop(pod.uid, None)
        self.inputs.append(ClusterInput("bind", uid, node, seconds))

    def pod_refused(self, pod: KubeObject, message: str) -> None:
        """Report with the next `take` why a pod was not placed."""
        self._refuse(uid_of(pod), message, self._since_feed())

    def _refuse(self, uid: str, message: str, seconds: float) -> None:
        pod = self._pod(uid)
        if pod is not None and not pod.node_name:
            attempt = self._attempts[pod.uid] = self._attempts.get(pod.uid, 0) + 1
            decision = Decision(
                pod=pod.key,
                uid=uid,
                at=self._environment.now,
                attempt=attempt,
                profile=self._profile,
                outcome="unschedulable",
                nodes=len(self._cluster.nodes),
                feasible=0,
                message=message,
            )
            self._decide(ReportUnschedulable(pod, decision), seconds)
        self.inputs.append(ClusterInput("refuse", uid, message, seconds))

    def _decide(self, command: Command, seconds: float) -> None:
        self._commands.append(command)
        self._elapsed.append(seconds)

    def _since_feed(self) -> float:
        return 0.0 if self._clock is None else max(0.0, self._clock() - self._began)

    def pod_deleted(self, pod: KubeObject, grace: float) -> None:
        """Stop a bound pod after all schedulers have seen that it is being deleted."""
        self._delete(uid_of(pod), grace)

    def _delete(self, uid: str, grace: float) -> None:
        self._environment.after(0.0, self._cluster.remove, PodUid(uid), grace, priority=AFTER_DECIDING)
        self.inputs.append(ClusterInput("delete", uid, seconds=grace))

    def pod_removed(self, pod: KubeObject) -> None:
        """Remove a pod whose object is gone."""
        self._remove(uid_of(pod))

    def _remove(self, uid: str) -> None:
        self._cluster.remove(PodUid(uid), 0.0)
        self._attempts.pop(PodUid(uid), None)
        self.inputs.append(ClusterInput("remove", uid))

    def _pod(self, uid: str) -> Pod | None:
        found = self._cluster.pods.get(PodUid(uid))
        return None if found is None else found.pod

    # -- nodes -------------------------------------------------------------------------------------------------------

    def node_written(self, node: KubeObject) -> None:
        """Let a new node join, or change a known one. Raises StatusError 400 if the simulator cannot read it."""
        try:
            decoded = decode_node(msgspec.json.encode(node))
        except WireError as error:
            raise bad_request(f"the node cannot be simulated: {error}") from error
        name = decoded.name
        present = self._cluster.nodes.get(name)
        if present is None:
            spec = VirtualNodeSpec(
                name=name,
                allocatable=decoded.allocatable,
                bandwidth=BANDWIDTH,
                labels=decoded.labels,
                annotations=decoded.annotations,
                taints=decoded.taints,
            )
            self._cluster.join(spec)
        else:
            self._cluster.change(name, decoded.labels, decoded.taints, decoded.allocatable)
        if decoded.unschedulable:
            self._cluster.cordon(name)
        else:
            self._cluster.uncordon(name)
        self.inputs.append(ClusterInput("node", name, object=node))

    def node_deleted(self, name: str) -> None:
        """Let a node leave; its pods are removed."""
        self._cluster.drop(name)
        self.inputs.append(ClusterInput("drop", name))

    # -- workloads -----------------------------------------------------------------------------------------------------

    def workload_written(self, found: KubeObject) -> None:
        """Create a controller, or change the scale or image of a known one."""
        if controller_of(found):
            # A ReplicaSet of a Deployment: the simulator's Deployment manages its pods.
            return
        name, manager = controller_name(found), self._controllers()
        try:
            spec = controller_spec(found)
        except (WireError, InputError) as error:
            raise bad_request(f"the {found.get('kind')} cannot be simulated: {error}") from error
        if name not in manager:
            manager.add(msgspec.structs.replace(spec, at=self._environment.now))
        else:
            if spec.kind != "DaemonSet":
                manager.scale(name, spec.parallelism if spec.kind == "Job" else spec.replicas)
            if spec.version:
                manager.replace(name, spec.template, spec.version)
            elif spec.kind != "Job":
                # The template of a Job cannot change.
                manager.update(name, spec.template.containers[0].image)
        self.inputs.append(ClusterInput("workload", name, object=found))

    def workload_deleted(self, found: KubeObject) -> None:
        """Remove a controller and its pods."""
        self._controllers().remove(controller_name(found))
        self.inputs.append(ClusterInput("unload", controller_name(found), object=found))
