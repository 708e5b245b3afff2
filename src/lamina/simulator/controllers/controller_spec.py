"""Settings of a controller."""

from typing import Literal

import msgspec

from lamina.model.pod import Pod
from lamina.model.volumes import PersistentVolumeClaim
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, PodLifecycle

ControllerKind = Literal["Deployment", "StatefulSet", "DaemonSet", "Job"]


class ClaimTemplate(msgspec.Struct, frozen=True):
    """A claim that each pod of a StatefulSet gets; it is called after both and stays when the pod is gone."""

    name: str
    size: int
    """Bytes."""
    class_name: str = ""
    access_modes: tuple[str, ...] = ("ReadWriteOnce",)

    def claim_of(self, namespace: str, pod: str) -> PersistentVolumeClaim:
        """Return the claim of one pod."""
        return PersistentVolumeClaim(
            namespace=namespace,
            name=f"{self.name}-{pod}",
            access_modes=self.access_modes,
            class_name=self.class_name,
            size=self.size,
        )


class ControllerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """
    Desired state of one controller.

    Its pods are named name-1, name-2 and so on, in the order of their creation. Pods of a StatefulSet are named name-0,
    name-1 and so on, and a replacement has the same name.
    """

    kind: ControllerKind
    name: str
    at: float = 0.0
    """When it is created."""
    template: Pod
    """Pod template; name, uid, owner and creation time are set for each pod."""
    version: str = ""
    """Version of a Deployment's template, the last part of its ReplicaSet's name; empty: versions are numbered."""
    life: PodLifecycle = RUNS_FOREVER
    replicas: int = 1
    """Number of pods of a Deployment or StatefulSet, or completions of a Job; may be 0."""
    parallelism: int = 1
    """Number of parallel pods of a Job."""
    claims: tuple[ClaimTemplate, ...] = ()
    """Claims of each pod of a StatefulSet."""
    surge: int | float = 0.25
    """``maxSurge`` of a Deployment: a number, or a share of the replicas (rounded up)."""
    unavailable: int | float = 0.25
    """``maxUnavailable`` of a rollout: a number, or a share (rounded down; for a DaemonSet rounded up)."""
    min_ready: float = 0.0
    """``minReadySeconds``: seconds a Deployment's pod must run before it is available."""
    backoff_limit: int = 6
    """``backoffLimit``: the Job fails when more of its pods have failed."""
    ignore_disruptions: bool = False
    """Whether a Job replaces preempted and evicted pods at once and does not count them as failed."""
