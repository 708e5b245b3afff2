"""
Cache for repeated parts of JSON: each distinct text is decoded once.

Thousands of pods have the same requests, tolerations and owner, and thousands of nodes the same images. The first pass
leaves such parts undecoded (``msgspec.Raw``), and this cache looks them up. A lookup is faster than decoding, and equal
parts share one object.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

NULL: Final = msgspec.Raw(b"null")
"""The value of a missing field."""

# Together they bound the memory of one cache to 16 MiB of text.
ENTRIES: Final = 8192
LONGEST: Final = 2048


def memoized(field: str, read: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """
    Return *read* with a cache; its results must be immutable.

    Errors are not cached. *field* is the prefix of error messages.
    """

    def read_field(text: bytes) -> T:
        try:
            return read(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{field}: {error}") from error

    known = lru_cache(ENTRIES)(read_field)
    nothing: list[T] = []

    def recall(text: bytes) -> T:
        if text is NULL:
            # Fast path for missing fields, without a dictionary lookup.
            if not nothing:
                nothing.append(read_field(bytes(NULL)))
            return nothing[0]
        # Raw is a view of the whole received message: a copy can be a key and does not keep the message alive.
        text = bytes(text)
        return known(text) if len(text) <= LONGEST else read_field(text)

    return recall
