"""
Decoder of secrets, restricted to type and data, for image pull secrets.

No message of this module quotes a secret.
"""

from typing import Final

import msgspec

from lamina.wire.errors import WireError


class Secret(msgspec.Struct, frozen=True, gc=False):
    """Type and data of a secret. Its repr omits the data."""

    type: str = ""
    data: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        return f"Secret(type={self.type!r:.80})"


_SECRET: Final = msgspec.json.Decoder(Secret)


def decode_secret(data: bytes) -> Secret:
    """Return a decoded secret. Raises WireError, whose message has none of the content."""
    try:
        return _SECRET.decode(data)
    except (ValueError, RecursionError):
        # The decoder's message is not used, because it may quote the content.
        raise WireError("Secret", "it is not a valid secret") from None
