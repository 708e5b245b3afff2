"""
Secrets, as far as pull secrets need them: their type and their data.

No message of this module quotes a secret.
"""

from typing import Final

import msgspec

from lamina.wire.errors import WireError


class Secret(msgspec.Struct, frozen=True, gc=False):
    """A secret, as far as it is looked at. Nothing prints it: its data stay where they are."""

    type: str = ""
    data: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        return f"Secret(type={self.type!r:.80})"


_SECRET: Final = msgspec.json.Decoder(Secret)


def decode_secret(data: bytes) -> Secret:
    """Read a secret; raise `WireError`, which says nothing of its content."""
    try:
        return _SECRET.decode(data)
    except (ValueError, RecursionError):
        # Not with the decoder's own words: they may quote.
        raise WireError("Secret", "it is no secret") from None
