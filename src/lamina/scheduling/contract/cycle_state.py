"""Scratch data that plugins carry from one extension point to the next, for one pod or one shape of pods."""

import math
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class StateKey(msgspec.Struct, Generic[T], frozen=True):
    """
    A typed key. Annotate the variable, not the call: ``ASKED: Final[StateKey[int]] = StateKey("fit/asked")``.

    Prefix the name with the plugin's, so that two plugins never meet.
    """

    name: str


class CycleState:
    """
    What plugins wrote down.

    What is written before a node is chosen belongs to the pod's *shape* and is shared by all pods of that shape; the
    state handed to reserve and later points is a copy of the pod's own.
    """

    __slots__ = ("_data", "now", "written")

    def __init__(self) -> None:
        """Start empty."""
        self.now = math.nan
        """
        The time of the call, in post_filter, reserve, permit, pre_bind, bind, post_bind and unreserve.

        Not a number before a node is chosen: answers of filters and scorers are kept, so they must not depend on time.
        """
        self.written = 0
        """How often something was written down."""
        # Any: the key carries the type, the dictionary cannot.
        self._data: dict[str, Any] = {}

    def __setitem__(self, key: StateKey[T], value: T) -> None:
        """Write *value* down."""
        self.written += 1
        self._data[key.name] = value

    def __getitem__(self, key: StateKey[T]) -> T:
        """Read what was written; a KeyError names a plugin that reads before it wrote."""
        value: T = self._data[key.name]
        return value

    def get(self, key: StateKey[T]) -> T | None:
        """Read what was written, or None."""
        value: T | None = self._data.get(key.name)
        return value

    def copy(self) -> "CycleState":
        """Copy the notes (not what they point to)."""
        twin = CycleState()
        twin._data = dict(self._data)
        return twin
