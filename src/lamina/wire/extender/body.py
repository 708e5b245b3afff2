"""
What all bodies have in common that kube-scheduler sends to an extender: bounds, and keys in anybody's spelling.

Used by the neighbouring modules only. kube-scheduler's types for extenders carry no JSON names, so it writes ``NodeNames``;
until 1.17 it wrote ``nodenames``; it reads any mixture of cases, and so people who call an extender by hand send what
they like. A decoder that knew one spelling would find nothing in the others, and "nothing" here means "no node": so
every spelling that is in use is looked for, in one pass, and a key that is written in two of them is refused.
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
"""What was received. What is read from it without a copy refers to it: it must not be changed while that is in use."""

SMALL: Final = 4 * 1024**2
"""Bytes of a body that names nodes."""
OBJECT: Final = 1536 * 1024
"""Bytes of a pod, or of a node that is read: what etcd takes, unless it is told to take more."""
LARGE: Final = 96 * 1024**2
"""Bytes of a body with whole nodes or whole victims: 5,000 nodes with fifty images each have 56 million."""
MOST_NODES: Final = 20_000
MOST_VICTIMS: Final = 200_000
MOST_CONTAINERS: Final = 1_000


class AnyCaseObject:
    """
    An object of which each key may be written in any way that people write it.

    Made of keys in their usual spelling, each with the type of what stands under it: Raw, or one with None.
    *made*, if there is any, is called for each such object that is decoded; a ValueError from it refuses the body.
    """

    def __init__(self, kinds: Mapping[str, Any], made: Callable[[], None] | None = None) -> None:
        self._keys = tuple(kinds)
        # The usual spellings come first: most bodies have no others, which one look at the rest then tells.
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
        """What a decoder is told to decode."""
        self._decoder = msgspec.json.Decoder(self.type)

    def read(self, text: Body | msgspec.Raw) -> list[Any]:
        """Decode one such object and return what it says."""
        return self.said(self._decoder.decode(text))

    def said(self, decoded: Any) -> list[Any]:
        """Return what stands under each key, in the order in which they were named; None for null and for nothing."""
        found = astuple(decoded)
        count = len(self._keys)
        said = [None if value == NULL else value for value in found[:count]]
        if found[count:] != self._nothing:
            self._add(said, found[count:])
        return said

    def _add(self, said: list[Any], found: Sequence[Any]) -> None:
        """Add to what was *said* what was found in other spellings."""
        for (key, spelling), value in zip(self._others, found, strict=True):
            if value is None or value == NULL:
                continue
            place = self._keys.index(key)
            if said[place] is not None:
                raise ValueError(f"it says {key} twice, once as {spelling}; send one of them")
            said[place] = value


WORDS: Final = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def other_spellings(key: str) -> list[str]:
    """List how else people write a key: ``numPDBViolations``, ``NumPdbViolations``, ``numpdbviolations`` and so on."""
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
    Counts what is built while a body is decoded, so that decoding stops at the bound and not after it.

    The decoder checks the length of a list when it has all of it; by then a body of small entries is in memory many
    times over.
    """

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin with another body."""
        self.nodes = self.victims = self.containers = 0

    def node(self) -> None:
        """Count a node; one too many is a ValueError."""
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise ValueError(too_many(MOST_NODES, "nodes"))

    def victim(self) -> None:
        """Count a victim; one too many is a ValueError."""
        self.victims += 1
        if self.victims > MOST_VICTIMS:
            raise ValueError(too_many(MOST_VICTIMS, "victims"))

    def container(self) -> None:
        """Count a container; one too many is a ValueError."""
        self.containers += 1
        if self.containers > MOST_CONTAINERS:
            raise ValueError(f"more than {MOST_CONTAINERS} containers")


TALLY: Final = DecodeBudget()


def too_many(most: int, what: str) -> str:
    """Say that a body goes on for too long."""
    return f"more than {most} {what} in one call: lower percentageOfNodesToScore"


def check_size(kind: str, size: int, most: int, what: str) -> None:
    """Refuse what is larger than it may be."""
    if size > most:
        raise WireError(kind, f"{what} has {size} bytes, and {most} is the most: {_SMALLER[most]}")


_SMALLER: Final = {
    OBJECT: "the API server stores none that is larger, check who sent it",
    SMALL: "check that kube-scheduler sent it",
    LARGE: "set nodeCacheCapable to true, so that names are sent and not whole objects",
}


def unread(kind: str, error: object) -> WireError:
    """Say that a body cannot be read, in the decoder's words."""
    return WireError(kind, f"{error}; check that kube-scheduler sent it")
