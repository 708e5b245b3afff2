"""Pods as the scheduler sees them: who they are, what they ask for, where they may go."""

from typing import Final, NewType

import msgspec

from lamina.model import resources
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
    """An init container that keeps running (``restartPolicy: Always``)."""
    limits: Amounts = ()
    """What it may use at most, of what it says so."""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The controller a pod belongs to."""

    kind: str
    name: str
    uid: str = ""


class HostPort(msgspec.Struct, frozen=True, gc=False):
    """A port of the node that a container wants for itself; what is left out has upstream's defaults."""

    port: int
    protocol: str = TCP
    ip: str = ANY_IP


class PreferredNodes(msgspec.Struct, frozen=True, gc=False):
    """Nodes a pod would rather have, and how much that is worth to it."""

    weight: int
    term: NodeSelectorTerm


class PodTerm(msgspec.Struct, frozen=True, gc=False):
    """
    Other pods, and how near they are meant: within one domain of a topology.

    Which namespaces they are in: those named and those *namespace_selector* matches; where neither is given, that of the
    pod whose term it is.
    """

    topology_key: str
    selector: LabelSelector | None = None
    """None selects no pod, an empty selector matches every one."""
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class SpreadConstraint(msgspec.Struct, frozen=True, gc=False):
    """
    How unevenly pods may be spread over the domains of a topology.

    The domains are the values of the label *topology_key* of nodes, and *selector* says which pods of the namespace are
    counted. What is left out has the API server's defaults.
    """

    max_skew: int
    topology_key: str
    when_unsatisfiable: str = DO_NOT_SCHEDULE
    """`DO_NOT_SCHEDULE` or `SCHEDULE_ANYWAY`."""
    selector: LabelSelector | None = None
    """None selects no pod, an empty selector matches every one."""
    min_domains: int | None = None
    """With fewer domains than this, the emptiest one counts as having no pod."""
    node_affinity_policy: str = HONOR
    """Whether nodes that the pod's node selector and affinity leave out are left out of the domains as well."""
    node_taints_policy: str = IGNORE
    """The same for nodes with taints the pod does not tolerate."""
    match_label_keys: tuple[str, ...] = ()
    """Only pods with the same values of these labels as the pod itself are counted."""


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """
    A pod.

    ``requests`` is what filters count and ``scoring_requests`` what rankings count; both are derived from the
    containers once, by `total_requests`, because every cycle needs them. For a pod that is being resized they are what it
    takes of its node until the resize is done, and can differ from what its containers ask for.

    Times are seconds since 1970 (in a simulation: since its start), and 0 where they are not known.
    """

    uid: PodUid
    name: str
    namespace: str = "default"
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    image_volumes: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    """Every image the pod needs, in the order a kubelet meets them; one entry for each use. Derived."""
    requests: Amounts = ()
    scoring_requests: Amounts = ()
    limits: Amounts = ()
    """What it may use at most, requests standing in for limits that nobody set (`total_limits`); none: its requests."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    priority: int = 0
    scheduler_name: str = DEFAULT_SCHEDULER
    node_name: str = ""
    nominated_node: str = ""
    node_selector: tuple[tuple[str, str], ...] = ()
    required_nodes: NodeSelector | None = None
    preferred_nodes: tuple[PreferredNodes, ...] = ()
    repels: tuple[PodTerm, ...] = ()
    """Pods that must not come near it: its required anti-affinity."""
    host_ports: tuple[HostPort, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    gates: tuple[str, ...] = ()
    pull_secrets: tuple[str, ...] = ()
    """Secrets of its namespace with which its images are pulled."""
    unmet: tuple[str, ...] = ()
    """What it asks for and Lamina cannot do yet, in words; it is not placed as if it had not asked."""
    ignored: tuple[str, ...] = ()
    """What it would like and Lamina pays no attention to yet, in words."""
    owner: Owner | None = None
    created_at: float = 0.0
    bound_at: float = 0.0
    """When it got its node, if that is known."""
    started: bool = False
    """Its containers run: every image it needs is on its node."""
    started_at: float = 0.0
    """Since when, if it runs and somebody says so: when its node took it on, before its images were pulled."""
    ready: bool = False
    """Its containers run and pass their readiness probes."""
    ready_at: float = 0.0
    """Since when, if it is ready and that is known."""
    finished: bool = False
    """Its containers ended and do not run again."""
    failed: bool = False
    """It finished, and badly."""
    ended_at: float = 0.0
    """When its last container ended, if it finished and that is known."""
    deleting: bool = False
    deleting_since: float = 0.0
    """When its deletion began, if that is known: a grace period before the time by which it has to be gone."""

    @property
    def key(self) -> str:
        """``namespace/name``, as people and events call it."""
        return f"{self.namespace}/{self.name}"

    def __post_init__(self) -> None:
        """List the images once: every plugin that looks at them would have to do it again for every pod."""
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
    """Return what a pod requests, and the same with the amounts upstream assumes for containers that ask nothing."""
    asked = resources.pod_total(
        (container.requests for container in containers),
        ((container.requests, container.sidecar) for container in init_containers),
        pod_level,
        overhead,
    )
    ranked = resources.pod_total(
        (resources.filled(container.requests, resources.UNASKED) for container in containers),
        ((resources.filled(container.requests, resources.UNASKED), container.sidecar) for container in init_containers),
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
    """Return what a pod may use at most: no less than its requests, which stand in for limits that nobody set."""
    return resources.pod_total(
        (resources.at_least(container.requests, container.limits) for container in containers),
        (
            (resources.at_least(container.requests, container.limits), container.sidecar)
            for container in init_containers
        ),
        pod_level,
        overhead,
    )
