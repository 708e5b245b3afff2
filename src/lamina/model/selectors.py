"""
Selectors: conditions on the labels of an object, and for nodes also on the name.

A requirement that the API server would reject never matches: an unknown operator, ``In`` without values, a value that
no label can have. Upstream also treats such a term as not matching. Callers use None for "no selector given", which
matches nothing, while an empty `LabelSelector` matches everything.
"""

import string
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GT: Final = "Gt"
LT: Final = "Lt"

NAME_FIELD: Final = "metadata.name"
"""The only node field that a selector can use."""

_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_LOWER_ALPHANUMERIC: Final = string.ascii_lowercase + string.digits
# The API's limits for a label value or the last part of a key, and for the prefix of a key.
_MAX_LABEL: Final = 63
_MAX_PREFIX: Final = 253


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """One condition on one label (or, in a node selector's fields, on the node's name)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether *labels* meet the condition; ``NotIn`` and ``DoesNotExist`` are met by a missing label."""
        held = labels.get(self.key)
        if self.operator == IN:
            met = held in self.values
        elif self.operator == NOT_IN:
            met = held not in self.values
        elif self.operator == EXISTS:
            met = held is not None
        elif self.operator == DOES_NOT_EXIST:
            met = held is None
        else:
            met = held is not None and self._compares(held)
        # Checked last, because most requirements are well-formed and most labels do not match.
        return met and _well_formed(self)

    def _compares(self, held: str) -> bool:
        if len(self.values) != 1 or self.operator not in (GT, LT):
            return False
        number, bound = _integer(held), _integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == GT else number < bound


class LabelSelector(msgspec.Struct, frozen=True, gc=False):
    """Labels and expressions that must all match; without any, everything matches."""

    match_labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with *labels* is selected; ``Gt`` and ``Lt``, which are for nodes, select none."""
        return all(labels.get(key) == value for key, value in self.match_labels) and all(
            requirement.operator not in (GT, LT) and requirement.matches(labels) for requirement in self.expressions
        )


class NodeSelectorTerm(msgspec.Struct, frozen=True, gc=False):
    """Expressions on a node's labels and fields that must all match; without any, nothing matches."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str], node_name: str = "") -> bool:
        """Return whether the node *node_name* with *labels* meets the whole term."""
        if not self.expressions and not self.fields:
            return False
        return all(requirement.matches(labels) for requirement in self.expressions) and all(
            _field_matches(requirement, node_name) for requirement in self.fields
        )

    def malformed(self) -> Requirement | None:
        """Return the first requirement that the API server would reject, or None."""
        for requirement in self.expressions:
            if not _well_formed(requirement) or not _comparable(requirement):
                return requirement
        return next((one for one in self.fields if not _field_well_formed(one)), None)


class NodeSelector(msgspec.Struct, frozen=True, gc=False):
    """Terms of which one must match; without any, nothing matches."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], node_name: str = "") -> bool:
        """Return whether the node *node_name* with *labels* is selected."""
        return any(term.matches(labels, node_name) for term in self.terms)


def _field_well_formed(requirement: Requirement) -> bool:
    return requirement.operator in (IN, NOT_IN) and len(requirement.values) == 1


def _comparable(requirement: Requirement) -> bool:
    return requirement.operator not in (GT, LT) or _integer(requirement.values[0]) is not None


def _field_matches(requirement: Requirement, node_name: str) -> bool:
    if not _field_well_formed(requirement):
        return False
    # Upstream ignores fields for a node that has no name yet.
    if not node_name:
        return True
    # As in upstream, a field that cannot be selected reads as empty text.
    held = node_name if requirement.key == NAME_FIELD else ""
    return (held == requirement.values[0]) == (requirement.operator == IN)


# Cached, because the requirements of one pod are checked against thousands of nodes.
@lru_cache(maxsize=4096)
def _well_formed(requirement: Requirement) -> bool:
    """Return whether the API server would accept this as a condition on labels."""
    counts = {
        IN: len(requirement.values) > 0,
        NOT_IN: len(requirement.values) > 0,
        EXISTS: not requirement.values,
        DOES_NOT_EXIST: not requirement.values,
        GT: len(requirement.values) == 1,
        LT: len(requirement.values) == 1,
    }
    return (
        counts.get(requirement.operator, False)
        and is_label_key(requirement.key)
        and all(not value or _is_label_word(value) for value in requirement.values)
    )


def is_label_key(key: str) -> bool:
    """Return whether the API server accepts this label key."""
    prefix, slash, name = key.rpartition("/")
    return _is_label_word(name) and (not slash or _is_subdomain(prefix))


def _is_label_word(text: str) -> bool:
    if not text or len(text) > _MAX_LABEL or text.strip(_ALPHANUMERIC + "-_."):
        return False
    return text[0] in _ALPHANUMERIC and text[-1] in _ALPHANUMERIC


def _is_subdomain(text: str) -> bool:
    return len(text) <= _MAX_PREFIX and all(
        label
        and not label.strip(_LOWER_ALPHANUMERIC + "-")
        and label[0] in _LOWER_ALPHANUMERIC
        and label[-1] in _LOWER_ALPHANUMERIC
        for label in text.split(".")
    )


def _integer(text: str) -> int | None:
    """Parse a 64-bit decimal integer; return None for anything else."""
    digits = text[1:] if text.startswith(("+", "-")) else text
    if not digits or len(digits) > _MAX_LABEL or digits.strip(string.digits):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
