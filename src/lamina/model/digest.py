"""
Digests of content: the identifiers of layers, manifests and images.

A `Digest` is text that was validated once, on input; all other code compares and hashes it as plain text. Only the two
algorithms that registries and runtimes use are accepted, so that one content has one name.
"""

import hashlib
import reprlib
from collections.abc import Sequence
from typing import Final, NewType

from lamina.model.errors import LaminaError

Digest = NewType("Digest", str)
"""``sha256:`` and 64, or ``sha512:`` and 128 lower-case hexadecimal digits."""

_HEX: Final = "0123456789abcdef"
_HEX_LENGTHS: Final = {"sha256": 64, "sha512": 128}
_MAX_LENGTH: Final = len("sha512:") + 128

_QUOTE: Final = reprlib.Repr()
_QUOTE.maxstring = 80


class DigestError(ValueError, LaminaError):
    """Text that is not a digest; *problem* gives the reason."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(text, problem)
        self.text, self.problem = text, problem

    def __str__(self) -> str:
        return (
            f"{_QUOTE.repr(self.text)} is not a digest: {self.problem}; "
            "write sha256: and 64 lower-case hexadecimal digits"
        )


def parse_digest(text: str) -> Digest:
    """Validate *text* and return it as a digest. Raises DigestError."""
    if len(text) > _MAX_LENGTH:
        raise DigestError(text, f"it is longer than {_MAX_LENGTH} characters")
    algorithm, colon, encoded = text.partition(":")
    if not colon:
        raise DigestError(text, "the algorithm is missing")
    length = _HEX_LENGTHS.get(algorithm)
    if length is None:
        raise DigestError(text, f"the algorithm {_QUOTE.repr(algorithm)} is not supported")
    if encoded.strip(_HEX):
        raise DigestError(text, "only 0-9 and lower-case a-f may follow the colon")
    if len(encoded) != length:
        raise DigestError(text, f"{algorithm} has {length} digits, not {len(encoded)}")
    return Digest(text)


def digest_of(data: bytes) -> Digest:
    """Return the sha256 digest of *data*."""
    return Digest(f"sha256:{hashlib.sha256(data).hexdigest()}")


def chain_ids(diff_ids: Sequence[Digest]) -> tuple[Digest, ...]:
    """
    Return the chain id of every layer, bottom first; *diff_ids* are the digests of the unpacked layers.

    Runtimes store an unpacked layer under its chain id, because its content depends on the layers below it. Two images
    therefore share unpacked layers exactly as far as their chain ids agree.
    """
    chain: list[Digest] = []
    for diff_id in diff_ids:
        chain.append(digest_of(f"{chain[-1]} {diff_id}".encode()) if chain else diff_id)
    return tuple(chain)
