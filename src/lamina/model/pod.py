"""Pods as the scheduler sees them: identity, resource requests, and constraints on nodes."""

from typing import Final, NewType

import msgspec

from lamina.model import resources
from lamina.model.pod_volumes import PodVolume
from lamina.model.resources import Amounts
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm
from lamina.model.taints import Toleration

PodUid = NewType("PodUid", str)

DEFAULT_SCHEDULER: Final = "default-scheduler"

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"
IGNORE: Final = "Ignore"

ANY_IP: Final = "0.0.0.0"  # noqa: S104 - what a pod asks for; nothing is bound to it here
"""The address that stands for all addresses of a node."""
TCP: Final = "TCP"


_SET: Final = msgspec.structs.force_setattr


class Container(msgspec.Struct, frozen=True, gc=False):
    """One container of a pod."""

    image: str
    requests: Amounts = ()
    name: str = ""
    sidecar: bool = False
    """Whether it is an init container that keeps running (``restartPolicy: Always``)."""
    limits: Amounts = ()
    """Resource limits; resources without a limit are omitted."""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The controller that owns a pod."""

    kind: str
    name: str
    uid: str = ""
    api_version: str = ""
    """Empty for a simulated controller, which has no object."""


class HostPort(msgspec.Struct, frozen=True, gc=False):
    """A port of the node that a container reserves; omitted fields have upstream's defaults."""

    port: int
    protocol: str = TCP
    ip: str = ANY_IP


class PreferredNodes(msgspec.Struct, frozen=True, gc=False):
    """A preferred node affinity term and its weight."""

    weight: int
    term: NodeSelectorTerm


class PodTerm(msgspec.Struct, frozen=True, gc=False):
    """
    A pod affinity term: a set of other pods, and the topology domain within which they count.

    The namespaces are those named and those that *namespace_selector* matches; where neither is given, the namespace of
    the pod that has the term.
    """

    topology_key: str
    selector: LabelSelector | None = None
    """None selects no pod; an empty selector matches every pod."""
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class PreferredPods(msgspec.Struct, frozen=True, gc=False):
    """A preferred pod affinity or anti-affinity term and its weight."""

    weight: int
    term: PodTerm


class SpreadConstraint(msgspec.Struct, frozen=True, gc=False):
    """
    A topology spread constraint: the largest allowed skew of pods over the domains of a topology.

    The domains are the values of the node label *topology_key*; *selector* selects the pods of the namespace to count.
    Omitted fields have the API server's defaults.
    """

    max_skew: int
    topology_key: str
    when_unsatisfiable: str = DO_NOT_SCHEDULE
    """`DO_NOT_SCHEDULE` or `SCHEDULE_ANYWAY`."""
    selector: LabelSelector | None = None
    """None selects no pod; an empty selector matches every pod."""
    min_domains: int | None = None
    """With fewer domains than this, the global minimum is 0 pods."""
    node_affinity_policy: str = HONOR
    """Whether nodes that the pod's node selector and affinity exclude are also excluded from the domains."""
    node_taints_policy: str = IGNORE
    """The same for nodes with taints that the pod does not tolerate."""
    match_label_keys: tuple[str, ...] = ()
    """Only pods with the same values of these labels as the pod itself are counted."""


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """
    A pod.

    Filters use ``requests``, scores use ``scoring_requests``. `total_requests` derives both from the containers once,
    because every cycle needs them. While a pod is being resized, both are what the pod occupies on its node until the
    resize is done. They can then differ from the requests of its containers.

    Times are seconds since 1970 (in a simulation: since its start), and 0 where they are unknown.
    """

    uid: PodUid
    name: str
    namespace: str = "default"
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    image_volumes: tuple[str, ...] = ()
    volumes: tuple[PodVolume, ...] = ()
    """Its claims and disks; other kinds of volumes do not affect scheduling."""
    images: tuple[str, ...] = ()
    """Every image that the pod needs, in the order in which the kubelet pulls them; one entry per use. Derived."""
    requests: Amounts = ()
    scoring_requests: Amounts = ()
    limits: Amounts = ()
    """Resource limits; requests stand in for missing limits (`total_limits`). Empty: the same as the requests."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    priority: int = 0
    preempts: bool = True
    """Whether pods of lower priority can be evicted in its favour (False: ``preemptionPolicy: Never``)."""
    scheduler_name: str = DEFAULT_SCHEDULER
    node_name: str = ""
    nominated_node: str = ""
    node_selector: tuple[tuple[str, str], ...] = ()
    required_nodes: NodeSelector | None = None
    preferred_nodes: tuple[PreferredNodes, ...] = ()
    required_pods: tuple[PodTerm, ...] = ()
    """Required affinity terms: a pod that matches all of them must be in the same domain of each."""
    repels: tuple[PodTerm, ...] = ()
    """Required anti-affinity terms: pods that must not be in the same domain."""
    preferred_pods: tuple[PreferredPods, ...] = ()
    """Preferred affinity terms."""
    avoided_pods: tuple[PreferredPods, ...] = ()
    """Preferred anti-affinity terms."""
    host_ports: tuple[HostPort, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    gates: tuple[str, ...] = ()
    group: str = ""
    """
    Its pod group as the Kubernetes API has it: a PodGroup's name, or workload, group and replica separated by slashes.

    Labels and annotations of other projects are read by `lamina.model.pod_groups`.
    """
    pull_secrets: tuple[str, ...] = ()
    """Secrets of its namespace for pulling its images."""
    required_features: tuple[str, ...] = ()
    """Features that its node must declare (`lamina.model.node_features`)."""
    unmet: tuple[str, ...] = ()
    """Requirements that Lamina does not support yet, in words. Such a pod is not scheduled."""
    ignored: tuple[str, ...] = ()
    """Preferences that Lamina does not support yet, in words. They are ignored."""
    owner: Owner | None = None
    deadline: float | None = None
    """``activeDeadlineSeconds``: seconds from its start until it fails; None: no limit."""
    created_at: float = 0.0
    bound_at: float = 0.0
    """When it was bound, if known."""
    started: bool = False
    """Whether its containers run: every image that it needs is on its node."""
    started_at: float = 0.0
    """For a running pod, when the kubelet accepted it (before it pulled images), if known."""
    ready: bool = False
    """Whether its containers run and pass their readiness probes."""
    ready_at: float = 0.0
    """For a ready pod, since when, if known."""
    finished: bool = False
    """Whether its containers ended and will not run again."""
    failed: bool = False
    """Whether it finished with an error."""
    ended_at: float = 0.0
    """For a finished pod, when its last container ended, if known."""
    deleting: bool = False
    deleting_since: float = 0.0
    """When its deletion began, if known: the deletion deadline minus the grace period."""
    preempted: bool = False
    """Whether a scheduler evicts it in favour of another pod (its condition DisruptionTarget)."""

    @property
    def key(self) -> str:
        """``namespace/name``, as in messages and events."""
        return f"{self.namespace}/{self.name}"

    @property
    def has_pod_terms(self) -> bool:
        """Whether it has affinity or anti-affinity to other pods, required or preferred."""
        return bool(self.repels or self.required_pods or self.preferred_pods or self.avoided_pods)

    def __post_init__(self) -> None:
        """List the images once, because many plugins need them for every pod."""
        images = tuple([container.image for container in self.containers])
        if self.init_containers or self.image_volumes:
            images = (*[container.image for container in self.init_containers], *images, *self.image_volumes)
        _SET(self, "images", images)


def total_requests(
    containers: tuple[Container, ...],
    init_containers: tuple[Container, ...] = (),
    pod_level: Amounts = (),
    overhead: Amounts = (),
) -> tuple[Amounts, Amounts]:
    """Return a pod's requests, and the same with the amounts that upstream assumes for containers without requests."""
    asked = resources.pod_total(
        (container.requests for container in containers),
        ((container.requests, container.sidecar) for container in init_containers),
        pod_level,
        overhead,
    )
    ranked = resources.pod_total(
        (resources.filled(container.requests, resources.DEFAULT_REQUESTS) for container in containers),
        (
            (resources.filled(container.requests, resources.DEFAULT_REQUESTS), container.sidecar)
            for container in init_containers
        ),
        pod_level,
        overhead,
    )
    return asked, ranked


def total_limits(
    containers: tuple[Container, ...],
    init_containers: tuple[Container, ...] = (),
    pod_level: Amounts = (),
    overhead: Amounts = (),
) -> Amounts:
    """Return a pod's limits: never below its requests, which stand in for missing limits."""
    return resources.pod_total(
        (resources.at_least(container.requests, container.limits) for container in containers),
        (
            (resources.at_least(container.requests, container.limits), container.sidecar)
            for container in init_containers
        ),
        pod_level,
        overhead,
    )
