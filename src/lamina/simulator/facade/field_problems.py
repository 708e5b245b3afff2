"""
Problems with the fields of an object, in the words of the API server; one error 422 reports all of them.

    problems = FieldProblems()
    problems.required("spec.containers")
    problems.raise_for(type_, name)          # Pod "p" is invalid: spec.containers: Required value
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from lamina.simulator.facade.api_errors import invalid
from lamina.simulator.facade.label_rules import label_key_problems, label_value_problems
from lamina.simulator.facade.resource_type import ResourceType

MAX_PROBLEMS: Final = 64
"""Problems of one object that are reported; more are left out."""
MAX_SHOWN: Final = 4096
"""Characters of a value that a message shows."""


class FieldProblems:
    """Collects what is wrong with an object."""

    def __init__(self) -> None:
        """Start without problems."""
        self._found: list[tuple[str, str, str]] = []

    def __bool__(self) -> bool:
        """Return whether there are problems."""
        return bool(self._found)

    def required(self, field: str, detail: str = "") -> None:
        """Report that a field has no value."""
        self._add("FieldValueRequired", "Required value", field, detail)

    def invalid(self, field: str, value: Any, detail: str) -> None:
        """Report that a field has a value of a wrong form."""
        self._add("FieldValueInvalid", f"Invalid value: {shown_value(value)}", field, detail)

    def unsupported(self, field: str, value: Any, supported: Iterable[str]) -> None:
        """Report that a field has none of the possible values."""
        listed = ", ".join(f'"{each}"' for each in supported)
        words = f"Unsupported value: {shown_value(value)}: supported values: {listed}"
        self._add("FieldValueNotSupported", words, field)

    def duplicate(self, field: str, value: Any) -> None:
        """Report that a field has a value that must occur once only."""
        self._add("FieldValueDuplicate", f"Duplicate value: {shown_value(value)}", field)

    def forbidden(self, field: str, detail: str) -> None:
        """Report that a field may not be set or changed."""
        self._add("FieldValueForbidden", "Forbidden", field, detail)

    def not_found(self, field: str, value: Any) -> None:
        """Report that a field refers to something that does not exist."""
        self._add("FieldValueNotFound", f"Not found: {shown_value(value)}", field)

    def immutable(self, field: str, value: Any) -> None:
        """Report that a field may never change."""
        self.invalid(field, value, "field is immutable")

    def check_labels(self, field: str, labels: dict[str, Any]) -> None:
        """Report keys and values that no label may have."""
        for key, value in labels.items():
            for problem in label_key_problems(key):
                self.invalid(field, key, problem)
            for problem in label_value_problems(str(value)):
                self.invalid(field, value, problem)

    def check_supported(self, field: str, value: Any, supported: Iterable[str]) -> None:
        """Report *value* if it is set and not one of the possible values."""
        if value is not None and value not in (listed := tuple(supported)):
            self.unsupported(field, value, listed)

    def check_not_negative(self, field: str, value: Any) -> None:
        """Report a number below 0."""
        if isinstance(value, int) and value < 0:
            self.invalid(field, value, "must be greater than or equal to 0")

    def raise_for(self, type_: ResourceType, name: str) -> None:
        """Raise `StatusError` 422 with all problems; return if there are none."""
        if self._found:
            raise invalid(type_.kind, type_.group, name, self._found)

    def _add(self, reason: str, words: str, field: str, detail: str = "") -> None:
        problem = (reason, f"{words}: {detail}" if detail else words, field)
        if problem not in self._found and len(self._found) < MAX_PROBLEMS:
            self._found.append(problem)


def shown_value(value: Any) -> str:
    """Return a value as a message shows it: as JSON, cut if it is long."""
    return msgspec.json.encode(value).decode()[:MAX_SHOWN]
