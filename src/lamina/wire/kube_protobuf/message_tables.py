"""
Tables of Kubernetes' protobuf messages: field numbers, JSON names and types.

    @v1                                                    the API version of the following messages
    Pod 1:metadata:meta.k8s.io/v1.ObjectMeta 2:spec:PodSpec    a message, and its fields: number, JSON name, type

Types: ``s`` string, ``b`` bool, ``i`` int32, ``l`` int64, ``y`` bytes, ``!Name`` one of `json_forms`, else a message.
Marks before a type: ``*`` list, ``%`` map from text, ``^`` a message whose fields belong to the outer object. The mark
``?`` after a type: the zero value is missing in JSON, because the Go field is ``omitempty`` and no pointer. A message
with one list without a name is that list in JSON.

``scripts/protobuf_tables.py`` writes the file. Messages are parsed when they are first used.
"""

from functools import cache, cached_property
from importlib import resources
from typing import Final, NamedTuple

from lamina.wire.kube_protobuf.json_forms import FORMS, JsonForm
from lamina.wire.kube_protobuf.protobuf_reader import BYTES, VARINT

FILE: Final = "message_tables.txt"
NUMBERS: Final = frozenset("bil")
"""Scalar types that are varints."""
SCALARS: Final = frozenset("sy") | NUMBERS

ONE: Final = 0
LIST: Final = 1
MAP: Final = 2
INLINE: Final = 3
_MARKS: Final = {"*": LIST, "%": MAP, "^": INLINE}

_META: Final = "meta.k8s.io/v1"
_CORE: Final = "v1"


class ProtobufField(NamedTuple):
    """One field of a message."""

    name: str
    shape: int
    """`ONE`, `LIST`, `MAP` or `INLINE`."""
    scalar: str
    """Letter of a scalar type; empty for a message."""
    drops_zero: bool
    form: JsonForm | None
    message: "ProtobufMessage | None"


class ProtobufMessage:
    """A message: its fields by number."""

    def __init__(self, version: str, name: str, text: str) -> None:
        """Keep the text; `fields` parses it."""
        self.version, self.name, self._text = version, name, text

    @cached_property
    def fields(self) -> dict[int, ProtobufField]:
        """All fields."""
        return dict(self._parsed(one) for one in self._text.split())

    @cached_property
    def by_key(self) -> dict[int, ProtobufField]:
        """All fields, by the key that stands before a value of the expected wire type."""
        return {number << 3 | _wire_type(one): one for number, one in self.fields.items()}

    @cached_property
    def is_list(self) -> bool:
        """Whether its JSON form is a list: its only field has no name."""
        return [(one.name, one.shape) for one in self.fields.values()] == [("", LIST)]

    def _parsed(self, text: str) -> tuple[int, ProtobufField]:
        number, name, kind = text.split(":", 2)
        shape = _MARKS.get(kind[0], ONE)
        if shape:
            kind = kind[1:]
        drops_zero = kind.endswith("?")
        kind = kind.removesuffix("?")
        if kind in SCALARS:
            return int(number), ProtobufField(name, shape, kind, drops_zero, None, None)
        if kind.startswith("!"):
            return int(number), ProtobufField(name, shape, "", False, FORMS[kind[1:]], None)
        version, _, message = kind.rpartition(".")
        return int(number), ProtobufField(name, shape, "", False, None, _messages()[version or self.version][message])


def _wire_type(field: ProtobufField) -> int:
    return VARINT if field.scalar in NUMBERS and field.shape != MAP else BYTES


def find_message(version: str, kind: str) -> ProtobufMessage | None:
    """
    Return the message of a kind, or None.

    Some kinds belong to every API version, such as DeleteOptions. If *version* does not have the kind, the order is:
    other versions of its group, common kinds, core kinds, all others.
    """
    messages = _messages()
    own = messages.get(version, {}).get(kind)
    if own is not None:
        return own
    group = version.rpartition("/")[0]
    related = [one for one in messages if group and one.startswith(f"{group}/")]
    return next((messages[one][kind] for one in (*related, _META, _CORE, *messages) if kind in messages[one]), None)


@cache
def _messages() -> dict[str, dict[str, ProtobufMessage]]:
    """Return all messages, by API version and name."""
    text = resources.files("lamina.wire.kube_protobuf").joinpath(FILE).read_text(encoding="utf-8")
    messages: dict[str, dict[str, ProtobufMessage]] = {}
    version = ""
    for line in text.splitlines():
        if line.startswith("@"):
            version = line[1:]
            messages[version] = {}
        else:
            name, _, fields = line.partition(" ")
            messages[version][name] = ProtobufMessage(version, name, fields)
    return messages
