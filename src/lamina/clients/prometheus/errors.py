"""
What goes wrong between us and a Prometheus server.

    LaminaError
    └── PrometheusError       one line: who was asked, what is wrong, what to try

The line holds no query, no header and no credential, and of the server's words no more than `MESSAGE_LIMIT` characters.
"""

from typing import ClassVar, Final

from lamina.model.errors import LaminaError

MESSAGE_LIMIT: Final = 300
"""Characters of a server's words that are kept."""

# Why there is no answer.
UNREACHABLE: Final = "unreachable"
"""No connection, or it broke, or nothing came in time."""
REFUSED: Final = "refused"
"""The server does not know us, or does not want us here."""
BAD_QUERY: Final = "bad-query"
"""The server does not understand the question, or cannot answer it."""
NOT_USABLE: Final = "not-usable"
"""What came is no answer of a Prometheus server."""
TOO_MUCH: Final = "too-much"
"""There was more to read than is read."""


class PrometheusError(LaminaError):
    """A question was not answered; *reason* is one of the constants above."""

    exit_code: ClassVar[int] = 1

    def __init__(self, server: str, reason: str, problem: str) -> None:
        super().__init__(server, reason, problem)
        self.server, self.reason, self.problem = server, reason, problem

    def __str__(self) -> str:
        return f"Prometheus at {self.server}: {self.problem}"


def one_line(words: str) -> str:
    """Make words of a stranger fit for a line of our own: no breaks, no control characters, not too many."""
    cut = words if len(words) <= MESSAGE_LIMIT else words[: MESSAGE_LIMIT - 1] + "…"
    return " ".join("".join(letter if letter.isprintable() else " " for letter in cut).split())
