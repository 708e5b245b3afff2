"""
Errors of decoding external data.

    LaminaError
    └── WireError             an object that cannot be decoded
        └── NothingSaidError  an object that can be decoded and has no content yet

One invalid object is no reason to stop: readers of a stream count it, log it and continue with the next.
"""

from lamina.model.errors import LaminaError


class WireError(LaminaError):
    """An external object is not a valid object of this *kind*."""

    def __init__(self, kind: str, problem: str, name: str = "") -> None:
        super().__init__(kind, problem, name)
        self.kind, self.problem, self.name = kind, problem, name

    def __str__(self) -> str:
        which = f"{self.kind} {self.name}" if self.name else self.kind
        message = f"cannot read {which}: {self.problem}"
        # Quoted parts are untrusted: the message must stay on one line and must not contain terminal control
        # characters.
        return " ".join("".join(letter if letter.isprintable() else " " for letter in message).split())


class NothingSaidError(WireError):
    """
    An object that exists and has not been filled in yet.

    It is no fault; callers treat the object as missing.
    """
