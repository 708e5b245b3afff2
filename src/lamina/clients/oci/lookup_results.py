"""
What a look-up can end with: images, or one of a few reasons why there are none.

    Found       the images a reference stands for, one for each platform
    NotFound    an expected "no": a reason that programs compare, and one line for a person

`RegistryError` carries a "no" through the modules of this room; nobody outside sees it. No line here ever holds a user
name, a password, a token or the query of an address: what strangers said goes through `without_secrets`.
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.model.errors import LaminaError
from lamina.model.image import Image

NOT_ALLOWED: Final = "NotAllowed"
"""The rules forbid to ask, or what would have to be asked lies where they forbid to go."""
UNREACHABLE: Final = "Unreachable"
"""No answer, or none that makes sense; also while a registry in trouble is left alone."""
REFUSED: Final = "Refused"
"""The registry wants credentials, or does not take those it was given."""
NO_SUCH_IMAGE: Final = "NoSuchImage"
NOT_USABLE: Final = "NotUsable"
"""There is something, and it is no image that can be used."""
TOO_SLOW: Final = "TooSlow"
"""The time for one look-up is over."""
BUSY: Final = "Busy"
"""Too much is asked already, by everybody or by this namespace; ask again later."""

REASONS: Final = (NOT_ALLOWED, UNREACHABLE, REFUSED, NO_SUCH_IMAGE, NOT_USABLE, TOO_SLOW, BUSY)

LONGEST: Final = 300
"""Characters of a line for a person."""
HIDDEN: Final = "[...]"
_UNSHOWN: Final = re.compile(r"[^\x20-\x7e]+")
_LONG_WORD: Final = re.compile(r"[^\s;,'\"]{24,}")
_DIGEST: Final = re.compile(r"sha(256|512):[0-9a-f]{64,128}:?")
_SHORTEST_SECRET: Final = 4
"""Shorter ones would take words apart, and are no secrets."""


class ResolvedImages(msgspec.Struct, frozen=True):
    """The images that a reference stands for."""

    images: tuple[Image, ...]
    """One for each platform that was asked for and is there; their name is the reference as it was asked."""
    good_for: float
    """Seconds until it is worth asking again; infinite for a digest."""


class ImageNotFound(msgspec.Struct, frozen=True):
    """No images, and why."""

    reason: str
    """One of `REASONS`."""
    detail: str
    """One line for a person."""


class RegistryError(LaminaError):
    """A "no" on its way up; *pause* is how long the registry asked to be left alone, in seconds."""

    def __init__(self, reason: str, detail: str, pause: float = 0.0) -> None:
        super().__init__(reason, detail, pause)
        self.reason, self.detail, self.pause = reason, detail, pause

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


def one_line(text: str) -> str:
    """Make any words fit for a line of ours."""
    return " ".join(_UNSHOWN.sub(" ", text).split())[:LONGEST]


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """
    Make a line of words of which some are a registry's, and a registry may say what it was shown.

    Secrets are taken out, and long words as well: they may be what a message has kept of a secret. Digests stay.
    """
    for secret in sorted((one for one in secrets if len(one) >= _SHORTEST_SECRET), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return one_line(_LONG_WORD.sub(lambda word: word[0] if _DIGEST.fullmatch(word[0]) else HIDDEN, text))
