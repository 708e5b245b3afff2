"""Arguments of NodeAffinity: affinity that a configuration adds to every pod, in upstream's format."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec

from lamina.model.pod import PreferredNodes
from lamina.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from lamina.scheduling.contract.plugin_registry import PluginArgs

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class AddedRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on a label or on the node's name."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class AddedTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Conditions that must all be met."""

    match_expressions: tuple[AddedRequirement, ...] = ()
    match_fields: tuple[AddedRequirement, ...] = ()

    def __post_init__(self) -> None:
        """Reject what upstream rejects."""
        wrong = self.term.malformed()
        if wrong is not None:
            raise ValueError(
                f"{wrong.key!r} {wrong.operator} {list(wrong.values)} is not a valid node selector requirement; "
                "check key, operator and values"
            )

    @property
    def term(self) -> NodeSelectorTerm:
        """The term in the format of pods."""
        return NodeSelectorTerm(_requirements(self.match_expressions), _requirements(self.match_fields))


class AddedTerms(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Terms of which at least one must match."""

    node_selector_terms: tuple[AddedTerm, ...]


class AddedPreference(msgspec.Struct, frozen=True, kw_only=True):
    """Preferred nodes, with their weight."""

    weight: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    preference: AddedTerm


class AddedAffinity(msgspec.Struct, frozen=True, kw_only=True):
    """A node affinity."""

    required: AddedTerms | None = msgspec.field(default=None, name=REQUIRED)
    preferred: tuple[AddedPreference, ...] = msgspec.field(default=(), name=PREFERRED)


class NodeAffinityArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of NodeAffinity."""

    added_affinity: AddedAffinity | None = None

    @property
    def required(self) -> NodeSelector | None:
        """Node selector that every pod must match; None without one."""
        if self.added_affinity is None or self.added_affinity.required is None:
            return None
        return NodeSelector(tuple(one.term for one in self.added_affinity.required.node_selector_terms))

    @property
    def preferred(self) -> tuple[PreferredNodes, ...]:
        """Preferences that apply to every pod."""
        added = self.added_affinity
        return (
            () if added is None else tuple(PreferredNodes(one.weight, one.preference.term) for one in added.preferred)
        )


def _requirements(added: Iterable[AddedRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(one.key, one.operator, one.values) for one in added)
