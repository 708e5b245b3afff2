"""
Reading what repeats: each distinct text once.

Thousands of pods have the same requests, tolerations and owner, thousands of nodes the same images. Their JSON is
therefore left as it is by the first pass (``msgspec.Raw``) and looked up here: what was read before is not only found
again faster than it could be read, it is also shared by everything that says the same.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

NULL: Final = msgspec.Raw(b"null")
"""What a field that was left out counts as."""

# Together they bound what one memory can hold: 16 MiB of text at most, whatever is sent.
ENTRIES: Final = 8192
LONGEST: Final = 2048


def memoized(field: str, read: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """
    Return *read* with a memory; what it returns must be immutable.

    Errors are not remembered. *field* is the place that they name.
    """

    def explained(text: bytes) -> T:
        try:
            return read(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{field}: {error}") from error

    known = lru_cache(ENTRIES)(explained)
    nothing: list[T] = []

    def recall(text: bytes) -> T:
        if text is NULL:
            # What most objects leave out is found without making a key.
            if not nothing:
                nothing.append(explained(bytes(NULL)))
            return nothing[0]
        # Raw text is only a view of all that was received: the copy can be a key, and lets go of the rest.
        text = bytes(text)
        return known(text) if len(text) <= LONGEST else explained(text)

    return recall
