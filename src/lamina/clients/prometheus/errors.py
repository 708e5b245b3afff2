"""
Errors of the Prometheus client.

    LaminaError
    └── PrometheusError       one line: the server, what is wrong, what to try

The line contains no query, header or credential, and at most `MESSAGE_LIMIT` characters of the server's own message.
"""

from typing import ClassVar, Final

from lamina.model.errors import LaminaError

MESSAGE_LIMIT: Final = 300
"""Characters of a server's message that are kept."""

# Values of `PrometheusError.reason`.
UNREACHABLE: Final = "unreachable"
"""No connection, a broken connection, or a timeout."""
REFUSED: Final = "refused"
"""The server rejected the credentials, or redirects."""
BAD_QUERY: Final = "bad-query"
"""The server cannot parse or evaluate the query."""
NOT_USABLE: Final = "not-usable"
"""The response is not one of a Prometheus server."""
TOO_MUCH: Final = "too-much"
"""The response exceeds a size limit."""


class PrometheusError(LaminaError):
    """A query failed; *reason* is one of the constants above."""

    exit_code: ClassVar[int] = 1

    def __init__(self, server: str, reason: str, problem: str) -> None:
        super().__init__(server, reason, problem)
        self.server, self.reason, self.problem = server, reason, problem

    def __str__(self) -> str:
        return f"Prometheus at {self.server}: {self.problem}"


def one_line(words: str) -> str:
    """Return untrusted text as one printable line of at most `MESSAGE_LIMIT` characters."""
    cut = words if len(words) <= MESSAGE_LIMIT else words[: MESSAGE_LIMIT - 1] + "…"
    return " ".join("".join(letter if letter.isprintable() else " " for letter in cut).split())
