"""
What a pod's spread constraints come to: which pods they count, and whether the pod itself is one of them.

A pod without constraints of its own gets the default ones. Upstream gives those the selectors of the Services,
ReplicaSets and StatefulSets that match the pod. Those objects are not known here: default constraints count the pods of
the same controller, and a pod without a controller has none.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from lamina.model.pod import DO_NOT_SCHEDULE, HONOR, IGNORE, SCHEDULE_ANYWAY, Pod, SpreadConstraint
from lamina.model.selectors import LabelSelector, is_label_key
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.state.pod_counts import OwnerKey, owner_key

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

SYSTEM: Final = (
    SpreadConstraint(3, HOSTNAME, SCHEDULE_ANYWAY),
    SpreadConstraint(5, ZONE, SCHEDULE_ANYWAY),
)
"""Upstream's defaults for everybody."""

# Controllers whose rules are kept; beyond this many the list starts anew.
MOST_KNOWN: Final = 4096

Policy = Literal["Honor", "Ignore"]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class DefaultConstraint(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A constraint for pods that have none."""

    max_skew: Positive
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    # Any: whatever it says, it must not be there.
    label_selector: Any = None
    min_domains: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    node_affinity_policy: Policy | None = None
    node_taints_policy: Policy | None = None
    match_label_keys: tuple[str, ...] | None = None
    """Accepted and without effect, as upstream has it: which pods count follows from the pod's controller."""

    def __post_init__(self) -> None:
        """Refuse what upstream refuses."""
        if self.label_selector is not None:
            raise ValueError("labelSelector is not allowed here: which pods count follows from each pod's controller")
        if not is_label_key(self.topology_key):
            raise ValueError(f"topologyKey {self.topology_key!r} is not the name of a label")

    @property
    def constraint(self) -> SpreadConstraint:
        """The same as a pod would have it."""
        return SpreadConstraint(
            self.max_skew,
            self.topology_key,
            self.when_unsatisfiable,
            min_domains=self.min_domains,
            node_affinity_policy=self.node_affinity_policy or HONOR,
            node_taints_policy=self.node_taints_policy or IGNORE,
        )


class SpreadArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of PodTopologySpread."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"

    def __post_init__(self) -> None:
        """Refuse what upstream refuses."""
        if self.default_constraints and self.defaulting_type == "System":
            raise ValueError("defaultConstraints need defaultingType List; set it, or remove them")
        topics = [(one.topology_key, one.when_unsatisfiable) for one in self.default_constraints]
        for key, action in topics:
            if topics.count((key, action)) > 1:
                raise ValueError(f"defaultConstraints has {key!r} with {action} twice; keep one of them")


class SpreadRule(msgspec.Struct, frozen=True):
    """A constraint as it applies to one pod."""

    key: str
    max_skew: int
    counted: LabelSelector | OwnerKey | None
    """The pods that count: by labels, or of a controller. None: none does."""
    own: int
    """1 if the pod itself will count, 0 if not."""
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    def counts(self, pod: Pod) -> bool:
        """Say whether this counts *pod*, which is in the right namespace."""
        if isinstance(self.counted, LabelSelector):
            return self.counted.matches(pod.labels)
        return self.counted is not None and self.counted == owner_key(pod)


class SpreadRules:
    """Finds the rules for a pod."""

    def __init__(self, args: SpreadArgs) -> None:
        """Fall back on the constraints *args* name."""
        self._defaulted_by_system = args.defaulting_type == "System"
        listed = tuple(one.constraint for one in args.default_constraints)
        self.defaults = SYSTEM if self._defaulted_by_system else listed
        self._known: dict[tuple[OwnerKey, str], tuple[SpreadRule, ...]] = {}
        """The default rules for controllers that were asked about: they are the same for each of their pods."""

    def hard(self, pod: Pod) -> tuple[SpreadRule, ...]:
        """List the rules a node must keep."""
        return self._rules(pod, DO_NOT_SCHEDULE)

    def soft(self, pod: Pod) -> tuple[SpreadRule, ...]:
        """List the rules a node is ranked by."""
        return self._rules(pod, SCHEDULE_ANYWAY)

    def strict(self, pod: Pod) -> bool:
        """Say whether nodes that lack one of the labels are left out; the system's defaults put up with them."""
        return bool(pod.spread) or not self._defaulted_by_system

    def _rules(self, pod: Pod, action: str) -> tuple[SpreadRule, ...]:
        if pod.spread:
            return tuple(_own_rule(pod, one) for one in pod.spread if one.when_unsatisfiable == action)
        owner = owner_key(pod)
        if owner is None:
            return ()
        known = self._known.get((owner, action))
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = tuple(_rule(one, owner, 1) for one in self.defaults if one.when_unsatisfiable == action)
            self._known[owner, action] = known
        return known


def _own_rule(pod: Pod, constraint: SpreadConstraint) -> SpreadRule:
    selector = constraint.selector
    if selector is None:
        return _rule(constraint, None, 0)
    same = tuple((key, pod.labels[key]) for key in constraint.match_label_keys if key in pod.labels)
    if same:
        selector = LabelSelector((*same, *selector.match_labels), selector.expressions)
    # Upstream counts no pod where nothing is asked of one; the pod itself still meets it.
    empty = not selector.match_labels and not selector.expressions
    return _rule(constraint, None if empty else selector, int(selector.matches(pod.labels)))


def _rule(constraint: SpreadConstraint, counted: LabelSelector | OwnerKey | None, own: int) -> SpreadRule:
    return SpreadRule(
        constraint.topology_key,
        constraint.max_skew,
        counted,
        own,
        1 if constraint.min_domains is None else constraint.min_domains,
        constraint.node_affinity_policy == HONOR,
        constraint.node_taints_policy == HONOR,
    )
