"""
Common parts of extender request bodies: size limits, and keys in any spelling.

Only the neighbouring modules use it. kube-scheduler's extender types have no JSON names, so it writes ``NodeNames``;
until 1.17 it wrote ``nodenames``. It reads any mixture of cases, and users who call an extender by hand send any of
them. A decoder that knew one spelling would find nothing in the others, and "nothing" here means "no node". So every
common spelling is decoded, in one pass, and a key that occurs in two spellings is rejected.
"""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from lamina.wire.decode_cache import NULL
from lamina.wire.errors import WireError

Body = bytes | bytearray | memoryview
"""A received body. Decoded views refer to it, so it must not be modified while they are in use."""

SMALL: Final = 4 * 1024**2
"""Largest body with node names, in bytes."""
OBJECT: Final = 1536 * 1024
"""Largest pod or decoded node in bytes: etcd's default limit."""
LARGE: Final = 96 * 1024**2
"""Largest body with whole nodes or whole victims, in bytes. 5,000 nodes with fifty images each have 56 million."""
MOST_NODES: Final = 20_000
MOST_VICTIMS: Final = 200_000
MOST_CONTAINERS: Final = 1_000


class AnyCaseObject:
    """
    A JSON object whose keys may have any common spelling.

    *kinds* maps each key in its usual spelling to its type: Raw, or a type with None. *made* is called for each decoded
    object; a ValueError from it rejects the body.
    """

    def __init__(self, kinds: Mapping[str, Any], made: Callable[[], None] | None = None) -> None:
        self._keys = tuple(kinds)
        # The usual spellings come first: in most bodies the rest is empty, which takes one comparison to see.
        self._others = [(key, other) for key in kinds for other in other_spellings(key)]
        self._nothing = (None,) * len(self._others)
        fields = [(spelling, kinds[key]) for key, spelling in [*((key, key) for key in kinds), *self._others]]
        self.type: Any = msgspec.defstruct(
            "Keys",
            [
                (f"key{number}", kind, msgspec.field(default=None, name=spelling))
                for number, (spelling, kind) in enumerate(fields)
            ],
            namespace={"__post_init__": lambda _: made()} if made else None,
            frozen=True,
            gc=False,
        )
        """The struct type to decode to."""
        self._decoder = msgspec.json.Decoder(self.type)

    def read(self, text: Body | msgspec.Raw) -> list[Any]:
        """Decode one object and return its values."""
        return self.values(self._decoder.decode(text))

    def values(self, decoded: Any) -> list[Any]:
        """Return the value of each key, in the order of *kinds*; None for null and for a missing key."""
        found = astuple(decoded)
        count = len(self._keys)
        values = [None if value == NULL else value for value in found[:count]]
        if found[count:] != self._nothing:
            self._add(values, found[count:])
        return values

    def _add(self, values: list[Any], found: Sequence[Any]) -> None:
        """Add the values *found* under other spellings to *values*."""
        for (key, spelling), value in zip(self._others, found, strict=True):
            if value is None or value == NULL:
                continue
            place = self._keys.index(key)
            if values[place] is not None:
                raise ValueError(f"it has {key} twice, once as {spelling}; send one of them")
            values[place] = value


WORDS: Final = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def other_spellings(key: str) -> list[str]:
    """Return other common spellings of a key: ``numPDBViolations``, ``NumPdbViolations``, ``numpdbviolations``."""
    first, *rest = WORDS.findall(key)
    titled = "".join(word.title() for word in rest)
    usual = "".join([first, *rest])
    spellings = (
        f"{first[0].upper()}{usual[1:]}",
        f"{first.lower()}{usual[len(first) :]}",
        f"{first.title()}{titled}",
        f"{first.lower()}{titled}",
        key.lower(),
        key.upper(),
        key.capitalize(),
    )
    return [spelling for spelling in dict.fromkeys(spellings) if spelling != key]


class DecodeBudget(threading.local):
    """
    Counts objects while a body is decoded, so that decoding stops at the limit and not after it.

    The decoder checks the length of a list only when the list is complete. By then, a body of small entries would take
    many times its size in memory.
    """

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Reset the counts for another body."""
        self.nodes = self.victims = self.containers = 0

    def node(self) -> None:
        """Count a node. Raises ValueError beyond the limit."""
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise ValueError(too_many(MOST_NODES, "nodes"))

    def victim(self) -> None:
        """Count a victim. Raises ValueError beyond the limit."""
        self.victims += 1
        if self.victims > MOST_VICTIMS:
            raise ValueError(too_many(MOST_VICTIMS, "victims"))

    def container(self) -> None:
        """Count a container. Raises ValueError beyond the limit."""
        self.containers += 1
        if self.containers > MOST_CONTAINERS:
            raise ValueError(f"more than {MOST_CONTAINERS} containers")


TALLY: Final = DecodeBudget()


def too_many(most: int, what: str) -> str:
    """Return the message for a body with too many entries."""
    return f"more than {most} {what} in one request; lower percentageOfNodesToScore"


def check_size(kind: str, size: int, most: int, what: str) -> None:
    """Reject data that is larger than *most* bytes. Raises WireError."""
    if size > most:
        raise WireError(kind, f"{what} has {size} bytes, the limit is {most}; {_SMALLER[most]}")


_SMALLER: Final = {
    OBJECT: "the API server stores no larger object, check which client sent it",
    SMALL: "check that kube-scheduler sent it",
    LARGE: "set nodeCacheCapable to true, so that names are sent and not whole objects",
}


def unread(kind: str, error: object) -> WireError:
    """Return the error for a body that cannot be decoded."""
    return WireError(kind, f"{error}; check that kube-scheduler sent it")
