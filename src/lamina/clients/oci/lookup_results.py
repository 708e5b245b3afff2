"""
Results of a look-up: images, or a reason why there are none.

    ResolvedImages   the images of a reference, one for each platform
    ImageNotFound    an expected failure: a fixed reason, and one line of detail for the user

Inside this package a failure is raised as `RegistryError`; the resolver converts it. No detail contains a user name, a
password, a token or the query of a URL: text from a registry is filtered by `without_secrets`.
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.model.errors import LaminaError
from lamina.model.image import Image

NOT_ALLOWED: Final = "NotAllowed"
"""The registry configuration forbids the host or the address."""
UNREACHABLE: Final = "Unreachable"
"""No response or a server error; also while the circuit breaker of the registry is open."""
REFUSED: Final = "Refused"
"""The registry requires credentials, or rejects the ones it got."""
NO_SUCH_IMAGE: Final = "NoSuchImage"
NOT_USABLE: Final = "NotUsable"
"""The content exists and is not a usable image."""
TOO_SLOW: Final = "TooSlow"
"""The look-up exceeded its time limit."""
BUSY: Final = "Busy"
"""Too many look-ups in all or for this namespace; retry later."""

REASONS: Final = (NOT_ALLOWED, UNREACHABLE, REFUSED, NO_SUCH_IMAGE, NOT_USABLE, TOO_SLOW, BUSY)

LONGEST: Final = 300
"""Characters of a detail line."""
HIDDEN: Final = "[...]"
_UNSHOWN: Final = re.compile(r"[^\x20-\x7e]+")
_LONG_WORD: Final = re.compile(r"[^\s;,'\"]{24,}")
_DIGEST: Final = re.compile(r"sha(256|512):[0-9a-f]{64,128}:?")
_SHORTEST_SECRET: Final = 4
"""Shorter strings are not replaced: they are no secrets, and would match parts of words."""


class ResolvedImages(msgspec.Struct, frozen=True):
    """The images of a reference."""

    images: tuple[Image, ...]
    """One for each requested platform that exists; their name is the reference as requested."""
    good_for: float
    """Seconds until a new look-up is useful; infinite for a digest."""


class ImageNotFound(msgspec.Struct, frozen=True):
    """The reason why there are no images."""

    reason: str
    """One of `REASONS`."""
    detail: str
    """One line for the user."""


class RegistryError(LaminaError):
    """A failed look-up; *pause* is the registry's Retry-After in seconds."""

    def __init__(self, reason: str, detail: str, pause: float = 0.0) -> None:
        super().__init__(reason, detail, pause)
        self.reason, self.detail, self.pause = reason, detail, pause

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


def one_line(text: str) -> str:
    """Return text as one line of printable ASCII, at most `LONGEST` characters."""
    return " ".join(_UNSHOWN.sub(" ", text).split())[:LONGEST]


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """
    Return text that is partly a registry's as one line without secrets; a registry may repeat what it received.

    Words of 24 characters or more are replaced too, because they may be parts of a secret. Digests stay.
    """
    for secret in sorted((one for one in secrets if len(one) >= _SHORTEST_SECRET), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return one_line(_LONG_WORD.sub(lambda word: word[0] if _DIGEST.fullmatch(word[0]) else HIDDEN, text))
