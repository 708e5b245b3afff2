"""
Spread rules: a pod's constraints with the pods they count, and whether the pod itself is counted.

Pods without constraints get the default ones, which count the pods that `default_selector` finds.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from lamina.model.pod import DO_NOT_SCHEDULE, HONOR, IGNORE, SCHEDULE_ANYWAY, Pod, SpreadConstraint
from lamina.model.selectors import LabelSelector, is_label_key
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.plugins.upstream.pod_topology_spread.default_selector import Counted, DefaultSelector
from lamina.scheduling.state.pod_counts import owner_key

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

SYSTEM: Final = (
    SpreadConstraint(3, HOSTNAME, SCHEDULE_ANYWAY),
    SpreadConstraint(5, ZONE, SCHEDULE_ANYWAY),
)
"""Upstream's default constraints."""

# Maximum number of cached default rules; the cache is cleared when full.
MOST_KNOWN: Final = 4096

Policy = Literal["Honor", "Ignore"]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class DefaultConstraint(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A constraint for pods without constraints."""

    max_skew: Positive
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    # Any: it is rejected, whatever its type.
    label_selector: Any = None
    min_domains: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    node_affinity_policy: Policy | None = None
    node_taints_policy: Policy | None = None
    match_label_keys: tuple[str, ...] | None = None
    """Accepted without effect, as upstream: Services and the controller determine which pods are counted."""

    def __post_init__(self) -> None:
        """Reject what upstream rejects."""
        if self.label_selector is not None:
            raise ValueError("labelSelector is not allowed here: Services and controllers determine the counted pods")
        if not is_label_key(self.topology_key):
            raise ValueError(f"topologyKey {self.topology_key!r} is not a valid label key")

    @property
    def constraint(self) -> SpreadConstraint:
        """The constraint in the format of pods."""
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
        """Reject what upstream rejects."""
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
    counted: Counted
    own: int
    """1 if the pod itself is counted, else 0."""
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    def counts(self, pod: Pod) -> bool:
        """Return whether the rule counts *pod*; the caller checks the namespace."""
        if isinstance(self.counted, LabelSelector):
            return self.counted.matches(pod.labels)
        return self.counted is not None and self.counted == owner_key(pod)


class SpreadRules:
    """Resolves the spread rules of pods."""

    def __init__(self, args: SpreadArgs, selector: DefaultSelector) -> None:
        """Use the default constraints of *args*, for the pods that *selector* finds."""
        self._defaulted_by_system = args.defaulting_type == "System"
        listed = tuple(one.constraint for one in args.default_constraints)
        self.defaults = SYSTEM if self._defaulted_by_system else listed
        self._selector = selector
        self._known: dict[tuple[Counted, int, str], tuple[SpreadRule, ...]] = {}
        """Default rules by counted pods, by whether the pod itself is counted, and by action."""

    def counted(self, pod: Pod) -> tuple[Counted, int]:
        """Return the pods that default constraints count for *pod*, and 1 if it is one of them, else 0."""
        if not self.defaults:
            return None, 0
        counted = self._selector.counted(pod)
        own = counted.matches(pod.labels) if isinstance(counted, LabelSelector) else counted is not None
        return counted, int(own)

    def hard(self, pod: Pod) -> tuple[SpreadRule, ...]:
        """Return the rules that a node must satisfy."""
        return self._rules(pod, DO_NOT_SCHEDULE)

    def soft(self, pod: Pod) -> tuple[SpreadRule, ...]:
        """Return the rules by which nodes are scored."""
        return self._rules(pod, SCHEDULE_ANYWAY)

    def strict(self, pod: Pod) -> bool:
        """Return whether nodes without one of the labels are left out; system defaults include them."""
        return bool(pod.spread) or not self._defaulted_by_system

    def _rules(self, pod: Pod, action: str) -> tuple[SpreadRule, ...]:
        if pod.spread:
            return tuple(_own_rule(pod, one) for one in pod.spread if one.when_unsatisfiable == action)
        if not any(one.when_unsatisfiable == action for one in self.defaults):
            return ()
        counted, own = self.counted(pod)
        if counted is None:
            return ()
        known = self._known.get((counted, own, action))
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = tuple(_rule(one, counted, own) for one in self.defaults if one.when_unsatisfiable == action)
            self._known[counted, own, action] = known
        return known


def _own_rule(pod: Pod, constraint: SpreadConstraint) -> SpreadRule:
    selector = constraint.selector
    if selector is None:
        return _rule(constraint, None, 0)
    same = tuple((key, pod.labels[key]) for key in constraint.match_label_keys if key in pod.labels)
    if same:
        selector = LabelSelector((*same, *selector.match_labels), selector.expressions)
    # As upstream: an empty selector counts no pods, but the pod itself still matches it.
    empty = not selector.match_labels and not selector.expressions
    return _rule(constraint, None if empty else selector, int(selector.matches(pod.labels)))


def _rule(constraint: SpreadConstraint, counted: Counted, own: int) -> SpreadRule:
    return SpreadRule(
        constraint.topology_key,
        constraint.max_skew,
        counted,
        own,
        1 if constraint.min_domains is None else constraint.min_domains,
        constraint.node_affinity_policy == HONOR,
        constraint.node_taints_policy == HONOR,
    )
