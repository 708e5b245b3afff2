"""
Sets of field paths, as managedFields record them.

An element of a path is text in the notation of FieldsV1: `f:name` for a field, `k:{"name":"x"}` for an element of a
list with keys, `v:"x"` for an element of a list of scalars, `i:3` for one that only its position identifies.
"""

import json
from collections.abc import Iterator
from typing import Any

from lamina.simulator.facade.patches.json_values import require_depth

_ITSELF = "."


class FieldSet:
    """A set of paths: the elements that end one, and for longer ones the sets below each element."""

    __slots__ = ("children", "members")

    def __init__(self, members: set[str] | None = None, children: "dict[str, FieldSet] | None" = None) -> None:
        """Take over both collections; a set is not changed once other code can see it."""
        self.members = members if members is not None else set()
        self.children = children if children is not None else {}

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def insert(self, path: tuple[str, ...]) -> None:
        """Add one path, while the set is being built."""
        node = self
        for element in path[:-1]:
            node = node.children.setdefault(element, FieldSet())
        if path:
            node.members.add(path[-1])

    def below(self, element: str) -> "FieldSet":
        """Return the paths that start with an element, without it."""
        return self.children.get(element) or FieldSet()

    def __or__(self, other: "FieldSet") -> "FieldSet":
        children = dict(self.children)
        for element, below in other.children.items():
            children[element] = children[element] | below if element in children else below
        return FieldSet(self.members | other.members, children)

    def __sub__(self, other: "FieldSet") -> "FieldSet":
        children = {element: below - other.below(element) for element, below in self.children.items()}
        return FieldSet(self.members - other.members, _nonempty(children))

    def __and__(self, other: "FieldSet") -> "FieldSet":
        children = {
            element: below & other.children[element]
            for element, below in self.children.items()
            if element in other.children
        }
        return FieldSet(self.members & other.members, _nonempty(children))

    def with_holders(self) -> "FieldSet":
        """Return a set that also has the fields on the way to each path, but not the elements of lists."""
        children = {element: below.with_holders() for element, below in self.children.items()}
        return FieldSet(self.members | {element for element in children if element.startswith("f:")}, children)

    def paths(self) -> Iterator[tuple[str, ...]]:
        """Yield all paths in a stable order."""
        for element in sorted(self.members | self.children.keys()):
            if element in self.members:
                yield (element,)
            for rest in self.below(element).paths():
                yield (element, *rest)


def _nonempty(children: dict[str, FieldSet]) -> dict[str, FieldSet]:
    return {element: below for element, below in children.items() if below}


def field_set_from_json(fields: Any, depth: int = 0) -> FieldSet:
    """Read FieldsV1; parts that are no mappings are ignored."""
    require_depth(depth)
    found = FieldSet()
    for element, below in fields.items() if isinstance(fields, dict) else ():
        if element == _ITSELF or not isinstance(below, dict):
            continue
        if not below or _ITSELF in below:
            found.members.add(element)
        if inner := field_set_from_json(below, depth + 1):
            found.children[element] = inner
    return found


def field_set_to_json(fields: FieldSet) -> dict[str, Any]:
    """Return FieldsV1, with the elements in a stable order."""
    found: dict[str, Any] = {}
    for element in sorted(fields.members | fields.children.keys()):
        below = field_set_to_json(fields.below(element))
        found[element] = {_ITSELF: {}, **below} if below and element in fields.members else below
    return found


def path_text(path: tuple[str, ...]) -> str:
    """Return a path as people read it: `.spec.containers[name="web"].image`."""
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    kind, _, content = element.partition(":")
    if kind == "f":
        return f".{content}"
    if kind == "k":
        keys = json.loads(content)
        return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in sorted(keys.items())) + "]"
    return f"[={content}]" if kind == "v" else f"[{content}]"
