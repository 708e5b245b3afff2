"""
Conversion of network exceptions to `UnreachableError` with a message for operators.

Exceptions of network libraries may carry the request and its credentials, so none of them leaves this package, not even
as the cause of ours. `streams` has the table for aiohttp.
"""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from lamina.clients.kube.connection_pool import ExchangeAbortedError, NotConnectedError, ResponseTooLongError
from lamina.clients.kube.errors import AnswerTooLongError, UnreachableError, one_line


class NetworkFailureError(Exception):
    """A failure that already has its message."""


@contextmanager
def in_words(what: str, seconds: float) -> Iterator[None]:
    """Convert network exceptions of the request *what*, with a time limit of *seconds*, to `UnreachableError`."""
    try:
        yield
    except ResponseTooLongError as error:
        raise AnswerTooLongError(what, str(error)) from None
    except NotConnectedError:
        problem = "connect timed out; is the address right, and no firewall in between?"
    except TimeoutError:
        problem = f"no response within {seconds:g} seconds; is the server overloaded?"
    except NetworkFailureError as error:
        problem = str(error)
    except (ExchangeAbortedError, OSError, ValueError) as error:
        problem = worded(error, WORDS)
    else:
        return
    raise UnreachableError(what, problem) from None


def worded(error: Exception, table: "Words") -> str:
    """Return the message of the first table row whose exception type matches."""
    words = next((words for kind, words in table if isinstance(error, kind)), None)
    return words(error) if words is not None else f"the connection broke ({type(error).__name__})"


def certificate_words(error: Exception) -> str:
    """Return why a certificate was rejected."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return one_line(error.verify_message)
    return type(error).__name__


def tls_words(error: Exception) -> str:
    """Return why the TLS handshake failed."""
    cause = getattr(error, "os_error", error)
    return one_line(getattr(cause, "reason", None) or type(cause).__name__)


Words = tuple[tuple[type[Exception], Callable[[Any], str]], ...]

WORDS: Final[Words] = (
    (ExchangeAbortedError, lambda error: one_line(str(error))),
    (socket.gaierror, lambda error: "host name not found; check the server's address"),
    (ssl.CertificateError, lambda error: f"TLS certificate rejected ({certificate_words(error)}); check the CA"),
    (ssl.SSLError, lambda error: f"TLS handshake failed ({tls_words(error)}); is this an https server?"),
    (
        ConnectionRefusedError,
        lambda error: f"connection failed ({error.strerror or 'refused'}); is the server running?",
    ),
    (OSError, lambda error: f"the connection broke ({error.strerror or type(error).__name__})"),
)
"""Messages by exception type; the first matching row is used."""
