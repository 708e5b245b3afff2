"""
What the network raises, in our words.

Exceptions of a network library are many, and some carry the request they belong to, credentials included; so none of
them leaves this package, not even as the cause of ours. What aiohttp raises is put in words where it is used.
"""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from lamina.clients.kube.connection_pool import ExchangeAbortedError, NotConnectedError, ResponseTooLongError
from lamina.clients.kube.errors import AnswerTooLongError, UnreachableError, one_line


class NetworkFailureError(Exception):
    """A failure that has been put in words already."""


@contextmanager
def in_words(what: str, seconds: float) -> Iterator[None]:
    """Raise `UnreachableError` for whatever the network does while asking *what*, which may take *seconds*."""
    try:
        yield
    except ResponseTooLongError as error:
        raise AnswerTooLongError(what, str(error)) from None
    except NotConnectedError:
        problem = "no connection in time; is the address right, and no firewall in between?"
    except TimeoutError:
        problem = f"no answer within {seconds:g} seconds; is the server overloaded?"
    except NetworkFailureError as error:
        problem = str(error)
    except (ExchangeAbortedError, OSError, ValueError) as error:
        problem = worded(error, WORDS)
    else:
        return
    raise UnreachableError(what, problem) from None


def worded(error: Exception, table: "Words") -> str:
    """Say what went wrong, as the first fitting line of a table has it."""
    words = next((words for kind, words in table if isinstance(error, kind)), None)
    return words(error) if words is not None else f"the connection broke ({type(error).__name__})"


def certificate_words(error: Exception) -> str:
    """Say why a certificate is not accepted."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return one_line(error.verify_message)
    return type(error).__name__


def tls_words(error: Exception) -> str:
    """Say why there is no TLS connection."""
    cause = getattr(error, "os_error", error)
    return one_line(getattr(cause, "reason", None) or type(cause).__name__)


Words = tuple[tuple[type[Exception], Callable[[Any], str]], ...]

WORDS: Final[Words] = (
    (ExchangeAbortedError, lambda error: one_line(str(error))),
    (socket.gaierror, lambda error: "the server's name is not known; check its address"),
    (ssl.CertificateError, lambda error: f"its certificate is not accepted ({certificate_words(error)}); check the CA"),
    (ssl.SSLError, lambda error: f"no TLS connection ({tls_words(error)}); is this an https server?"),
    (
        ConnectionRefusedError,
        lambda error: f"no connection ({error.strerror or 'refused'}); is the server running?",
    ),
    (OSError, lambda error: f"the connection broke ({error.strerror or type(error).__name__})"),
)
"""The first that fits counts."""
