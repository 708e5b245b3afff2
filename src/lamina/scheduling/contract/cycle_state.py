"""Data that plugins pass from one extension point to the next, for one pod or one shape of pods."""

import math
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class StateKey(msgspec.Struct, Generic[T], frozen=True):
    """
    Typed key of a CycleState entry.

    Annotate the variable, not the call: ``REQUESTED: Final[StateKey[int]] = StateKey("fit/requested")``. Prefix the name
    with the plugin's name, so that keys of two plugins never collide.
    """

    name: str


class CycleState:
    """
    Values that plugins stored, by typed key.

    Until a node is chosen, the state belongs to the pod's *shape* and all pods of that shape share it. `reserve` and
    later points receive a copy for the pod alone.
    """

    __slots__ = ("_data", "now", "written")

    def __init__(self) -> None:
        """Start empty."""
        self.now = math.nan
        """
        Time of the call in seconds: in post_filter, reserve, permit, pre_bind, bind, post_bind and unreserve.

        NaN in earlier points: results of filters and scorers are cached, so they must not depend on time.
        """
        self.written = 0
        """How many times a plugin has stored a value."""
        # Any: the key carries the type, the dictionary cannot.
        self._data: dict[str, Any] = {}

    def __setitem__(self, key: StateKey[T], value: T) -> None:
        """Store *value*."""
        self.written += 1
        self._data[key.name] = value

    def __getitem__(self, key: StateKey[T]) -> T:
        """Return the stored value. A KeyError means that the plugin reads a key before it stored it."""
        value: T = self._data[key.name]
        return value

    def get(self, key: StateKey[T]) -> T | None:
        """Return the stored value, or None."""
        value: T | None = self._data.get(key.name)
        return value

    def copy(self) -> "CycleState":
        """Return a shallow copy."""
        twin = CycleState()
        twin._data = dict(self._data)
        return twin
