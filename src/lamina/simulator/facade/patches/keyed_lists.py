"""Lists whose elements are found by a key: for each mapping the value of one field, and for a scalar itself."""

from collections.abc import Hashable
from typing import Any

from lamina.simulator.facade.patches.patch_error import PatchError


class KeyedList:
    """A list with an index of its elements; of two elements with one key, the index finds the first."""

    def __init__(self, elements: list[Any], key: str) -> None:
        """Index a copy of *elements*; an empty *key* is for lists of scalars."""
        self.elements = list(elements)
        self._key = key
        self._index: dict[Hashable, int] = {}
        for position, element in enumerate(elements):
            self._index.setdefault(identity_of(element, key), position)

    def find(self, element: Any) -> Any | None:
        """Return the element with the same key; None if there is none."""
        position = self._index.get(identity_of(element, self._key))
        return None if position is None else self.elements[position]

    def position(self, element: Any) -> int | None:
        """Return where the element with the same key is; None if there is none."""
        return self._index.get(identity_of(element, self._key))

    def put(self, element: Any, value: Any) -> None:
        """Set *value* in place of the element with the same key as *element*, or append it."""
        position = self._index.setdefault(identity_of(element, self._key), len(self.elements))
        if position == len(self.elements):
            self.elements.append(value)
        else:
            self.elements[position] = value

    def identities(self) -> list[Hashable]:
        """Return the keys of all elements, in their order."""
        return [identity_of(element, self._key) for element in self.elements]


def identity_of(element: Any, key: str) -> Hashable:
    """Return what distinguishes an element; unlike in Python, `true` differs from 1."""
    if key:
        if not isinstance(element, dict):
            raise PatchError(422, f"an element of a list with merge key {key} is no mapping: {element!r}")
        if key not in element:
            raise PatchError(422, f"map: {element!r} does not contain declared merge key: {key}")
        element = element[key]
    if isinstance(element, dict | list):
        where = f"the merge key {key}" if key else "a list of scalars"
        raise PatchError(422, f"{where} has the value {element!r}, which is no scalar")
    return (isinstance(element, bool), element)


def arranged(elements: list[Any], order: list[Any], live_order: list[Any], key: str) -> list[Any]:
    """
    Return elements in the order of a merged list.

    Elements in *order* follow it. All others keep their relative order, and come before the first element of *order*
    that they preceded in *live_order*.
    """
    wanted, live = KeyedList(order, key), KeyedList(live_order, key)
    ordered: list[tuple[int, Any]] = []
    others: list[tuple[int, Any]] = []
    for element in elements:
        place = wanted.position(element)
        if place is None:
            others.append((live.position(element) or 0, element))
        else:
            ordered.append((place, element))
    ordered.sort(key=_place)
    others.sort(key=_place)
    merged: list[Any] = []
    taken = 0
    for _, element in ordered:
        place = live.position(element)
        while place is not None and taken < len(others) and others[taken][0] < place:
            merged.append(others[taken][1])
            taken += 1
        merged.append(element)
    merged.extend(element for _, element in others[taken:])
    return merged


def _place(placed: tuple[int, Any]) -> int:
    return placed[0]
