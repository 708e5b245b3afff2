"""
Objects of built-in kinds as the API server reads them: with the fields of their type only, each of the right type.

    unknown field               dropped; refused if the client asks for strict validation
    null                        dropped
    zero of an optional field   dropped, as Go does when it writes the object
    value of another type       400

The types are those of the tables for protobuf bodies. Objects of custom resources do not pass here.
"""

from functools import cache
from typing import Any, Final

from lamina.simulator.facade.api_errors import StatusError, bad_request
from lamina.simulator.facade.canonical_quantities import QuantityFormError, canonical_quantity
from lamina.simulator.facade.kube_object import KubeObject
from lamina.wire.kube_protobuf.json_forms import FORMS
from lamina.wire.kube_protobuf.message_tables import INLINE, LIST, MAP, ProtobufField, ProtobufMessage, find_message

MOST_UNKNOWN: Final = 32
"""Most unknown fields that a refusal names."""

_NAMES: Final = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
_GO: Final = {"s": "string", "b": "bool", "i": "int32", "l": "int64", "y": "[]uint8"}
_LARGEST: Final = {"i": 2**31 - 1, "l": 2**63 - 1}
_QUANTITY, _INT_OR_STRING, _JSON = FORMS["Quantity"], FORMS["IntOrString"], FORMS["Json"]


class _FieldTypeError(Exception):
    """A value of the wrong type; the text is the API server's."""


class TypedReader:
    """Reads one object."""

    def __init__(self) -> None:
        """Start without unknown fields."""
        self.unknown: list[str] = []
        """Paths of fields that the type does not have."""

    def read(self, message: ProtobufMessage, value: Any, path: str) -> Any:
        """Return *value*, a message in JSON form, as its type has it."""
        if message.is_list:
            (element,) = message.fields.values()
            return self._list(element, value, path)
        if not isinstance(value, dict):
            raise _mismatch(value, path, f"v1.{message.name}")
        fields, found = _by_name(message), {}
        for name, inner in value.items():
            field = fields.get(name)
            where = f"{path}.{name}" if path else name
            if field is None:
                if path or name not in {"apiVersion", "kind"}:
                    self.unknown.append(where)
                continue
            if inner is None:
                continue
            read = self._field(field, inner, where)
            if not (field.drops_zero and not read):
                found[name] = read
        if message.name == "PodCondition":
            # Go writes this time even if it is not set.
            found.setdefault("lastProbeTime", None)
        return {name: inner for name, inner in found.items() if not _is_empty(inner, fields[name])}

    def _field(self, field: ProtobufField, value: Any, path: str) -> Any:
        if field.shape == LIST:
            return self._list(field, value, path)
        if field.shape == MAP:
            if not isinstance(value, dict):
                raise _mismatch(value, path, "map")
            return {
                name: self._value(field, inner, path)
                for name, inner in value.items()
                if inner is not None or field.scalar
            }
        return self._value(field, value, path)

    def _list(self, field: ProtobufField, value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise _mismatch(value, path, "[]" + (_GO.get(field.scalar) or "struct"))
        return [self._value(field, inner, f"{path}[{index}]") for index, inner in enumerate(value)]

    def _value(self, field: ProtobufField, value: Any, path: str) -> Any:
        if field.message is not None:
            return self.read(field.message, {} if value is None else value, path)
        if field.form is not None:
            return _in_form(field, value, path)
        return _scalar(field.scalar, value, path)


def _in_form(field: ProtobufField, value: Any, path: str) -> Any:
    form = field.form
    if form is _QUANTITY:
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            raise _FieldTypeError(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            )
        return canonical_quantity(value)
    if form is _INT_OR_STRING:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise _mismatch(value, path, "string")
        return value
    if form is _JSON:
        return value
    if not isinstance(value, str):
        raise _mismatch(value, path, "string")
    return value


def _scalar(scalar: str, value: Any, path: str) -> Any:
    if value is None:
        return {"s": "", "b": False, "y": ""}.get(scalar, 0)
    wanted: Any = {"s": str, "y": str, "b": bool}.get(scalar, int)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise _mismatch(value, path, _GO[scalar])
    if wanted is int and not -_LARGEST[scalar] - 1 <= value <= _LARGEST[scalar]:
        raise _FieldTypeError(
            f"json: cannot unmarshal number {value} into Go struct field {path} of type {_GO[scalar]}"
        )
    return value


def _is_empty(value: Any, field: ProtobufField) -> bool:
    """Return whether Go omits a list or map because it is empty."""
    return field.shape in {LIST, MAP} and not value


def _mismatch(value: Any, path: str, wanted: str) -> _FieldTypeError:
    found = _NAMES.get(type(value), "null")
    return _FieldTypeError(f"json: cannot unmarshal {found} into Go struct field {path} of type {wanted}")


@cache
def _by_name(message: ProtobufMessage) -> dict[str, ProtobufField]:
    """Return the fields of a message by their names in JSON; cached for the types of the API, whose number is fixed."""
    found: dict[str, ProtobufField] = {}
    for field in message.fields.values():
        if field.shape == INLINE and field.message is not None:
            found.update(_by_name(field.message))
        else:
            found[field.name] = field
    return found


def typed_object(found: KubeObject, api_version: str, kind: str, *, strict: bool = False) -> KubeObject:
    """
    Return an object of a built-in kind as its type has it; one of a kind without a type as it is.

    Raises StatusError 400 for a value of the wrong type, and if *strict* for an unknown field.
    """
    message = find_message(api_version, kind)
    if message is None or message.version != api_version:
        return found
    reader = TypedReader()
    version = api_version.rpartition("/")[2]
    try:
        read: KubeObject = reader.read(message, found, "")
    except (_FieldTypeError, QuantityFormError) as error:
        raise _refusal(kind, version, str(error)) from error
    if strict and reader.unknown:
        words = ", ".join(f'unknown field "{path}"' for path in reader.unknown[:MOST_UNKNOWN])
        raise _refusal(kind, version, f"strict decoding error: {words}")
    for name in ("spec", "status"):
        # Go writes these parts even if they are empty.
        if name in _by_name(message):
            read.setdefault(name, {})
    return {"kind": kind, "apiVersion": api_version, **read}


def unknown_fields(found: KubeObject, api_version: str, kind: str) -> list[str]:
    """Return the paths of fields that a built-in kind does not have; empty if the object cannot be read at all."""
    message = find_message(api_version, kind)
    if message is None or message.version != api_version:
        return []
    reader = TypedReader()
    try:
        reader.read(message, found, "")
    except (_FieldTypeError, QuantityFormError):
        return []
    return reader.unknown


def _refusal(kind: str, version: str, words: str) -> StatusError:
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {words}')
