"""
JSON patch (RFC 6902) as the API server applies it.

It is more lenient than the RFC: `replace` also adds a missing member of an object, `test` and `copy` read a missing
member as null, and a negative index counts from the end of a list. Only `replace` and `test` accept the path of the
whole document.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.patches.json_values import copy_json, json_equal
from lamina.simulator.facade.patches.patch_error import PatchError

MAX_OPERATIONS: Final = 10_000
"""The API server's limit for one patch."""
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""The API server's limit for the sum of what `copy` operations add, as JSON text."""

_REFUSED: Final = "the server rejected our request due to an error in our request: "


def apply_json_patch(document: KubeObject, operations: Any) -> KubeObject:
    """
    Return a copy of the document after all operations.

    A patch that is not a list of operations is refused with 400, an operation that fails with 422.
    """
    checked = _decoded(operations)
    patched = _PatchedDocument(document)
    for operation in checked:
        patched.apply(operation)
    if not isinstance(patched.root, dict):
        raise PatchError(422, f"{_REFUSED}the patched document is not a JSON object")
    return patched.root


class _Operation(msgspec.Struct, frozen=True):
    """One decoded operation; a missing value reads as null."""

    kind: str
    path: str | None
    source: str | None
    value: Any


class _PatchedDocument:
    """A document while operations change it."""

    def __init__(self, document: KubeObject) -> None:
        self.root: Any = copy_json(document)
        self._copied_bytes = 0
        self._kinds: dict[str, Callable[[_Operation], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def apply(self, operation: _Operation) -> None:
        """Execute one operation."""
        execute = self._kinds.get(operation.kind)
        if execute is None:
            raise _failed(f"Unexpected kind: {operation.kind}")
        if operation.path is None:
            raise _failed(f"{operation.kind} operation failed to decode path: missing value")
        if operation.source is None and operation.kind in ("move", "copy"):
            raise _failed(f"{operation.kind} operation failed to decode from: missing value")
        execute(operation)

    def _add(self, operation: _Operation) -> None:
        place = self._place(operation, operation.path)
        place.insert(copy_json(operation.value, place.depth))

    def _remove(self, operation: _Operation) -> None:
        self._place(operation, operation.path).remove()

    def _replace(self, operation: _Operation) -> None:
        if operation.path == "":
            if not isinstance(operation.value, dict | list):
                raise _failed("replace operation value must be object or array")
            self.root = copy_json(operation.value)
            return
        place = self._place(operation, operation.path)
        place.replace(copy_json(operation.value, place.depth))

    def _move(self, operation: _Operation) -> None:
        source = self._place(operation, operation.source)
        value = source.read()
        source.remove()
        place = self._place(operation, operation.path)
        # Copied for the check of its new depth.
        place.insert(copy_json(value, place.depth))

    def _copy(self, operation: _Operation) -> None:
        value = self._place(operation, operation.source).read()
        place = self._place(operation, operation.path)
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise _failed(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied_bytes}, exceeding the limit {MAX_COPIED_BYTES}"
            )
        place.insert(copy_json(value, place.depth))

    def _test(self, operation: _Operation) -> None:
        found = self.root if operation.path == "" else self._place(operation, operation.path).read()
        if not json_equal(found, operation.value):
            raise _failed(f"testing value {operation.path} failed: test failed")

    def _place(self, operation: _Operation, pointer: str | None) -> "_PointerTarget":
        """Find the container that a pointer ends in."""
        pointer = pointer or ""
        container = self.root
        # A pointer starts with a slash, so the part before the first one is empty.
        first, *names = pointer.split("/")
        for name in names[:-1]:
            container = _child(container, _unescaped(name))
        if first or not names or not isinstance(container, dict | list):
            raise _failed(f'{operation.kind} operation does not apply: doc is missing path: "{pointer}": missing value')
        return _PointerTarget(
            container, _unescaped(names[-1]), len(names), f"error in {operation.kind} for path: '{pointer}'"
        )


class _PointerTarget:
    """A member of an object or an element of a list, which may not exist yet."""

    def __init__(self, container: dict[str, Any] | list[Any], name: str, depth: int, words: str) -> None:
        self.depth = depth
        self._container = container
        self._name = name
        self._words = words

    def read(self) -> Any:
        """Return the value; null for a missing member of an object."""
        if isinstance(self._container, dict):
            return self._container.get(self._name)
        return self._container[self._index(len(self._container))]

    def insert(self, value: Any) -> None:
        """Set a member of an object, or insert before an element of a list; `-` appends."""
        if isinstance(self._container, dict):
            self._container[self._name] = value
        elif self._name == "-":
            self._container.append(value)
        else:
            self._container.insert(self._index(len(self._container) + 1), value)

    def replace(self, value: Any) -> None:
        """Set a member of an object, or an element of a list that exists."""
        if isinstance(self._container, dict):
            self._container[self._name] = value
        else:
            self._container[self._index(len(self._container))] = value

    def remove(self) -> None:
        """Remove a member or an element that exists."""
        if isinstance(self._container, list):
            del self._container[self._index(len(self._container))]
        elif self._name in self._container:
            del self._container[self._name]
        else:
            raise _failed(f"{self._words}: Unable to remove nonexistent key: {self._name}: missing value")

    def _index(self, length: int) -> int:
        index = _integer(self._name)
        if index is None:
            raise _failed(f"{self._words}: value was not a proper array index: '{self._name}'")
        if not -length <= index < length:
            raise _failed(f"{self._words}: Unable to access invalid index: {index}: invalid index referenced")
        return index % length


def _child(container: Any, name: str) -> Any:
    """Return what is under a name or an index; None if it is missing."""
    if isinstance(container, dict):
        return container.get(name)
    if isinstance(container, list):
        index = _integer(name)
        if index is not None and -len(container) <= index < len(container):
            return container[index]
    return None


def _decoded(operations: Any) -> list[_Operation]:
    if not isinstance(operations, list):
        raise PatchError(400, "error decoding patch: a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            413, f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    return [_decoded_operation(index, operation) for index, operation in enumerate(operations)]


def _decoded_operation(index: int, operation: Any) -> _Operation:
    if not isinstance(operation, dict):
        raise PatchError(400, f"error decoding patch: operation {index} must be a JSON object")
    for name in ("op", "path", "from"):
        if not isinstance(operation.get(name), str | None):
            raise PatchError(400, f'error decoding patch: "{name}" of operation {index} must be a string')
    kind = operation.get("op")
    return _Operation(
        "unknown" if kind is None else kind, operation.get("path"), operation.get("from"), operation.get("value")
    )


def _failed(words: str) -> PatchError:
    return PatchError(422, _REFUSED + words)


def _unescaped(name: str) -> str:
    return name.replace("~1", "/").replace("~0", "~")


def _integer(text: str) -> int | None:
    digits = text[1:] if text.startswith(("+", "-")) else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else None
