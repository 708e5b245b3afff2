"""
What the network library raises, in our words.

Its exceptions are many, and some carry the request they belong to, credentials included; so none of them leaves this
package, not even as the cause of ours.
"""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import aiohttp

from lamina.clients.kube.calls import BrokenOffError, NotConnectedError, TooLongError
from lamina.clients.kube.errors import AnswerTooLongError, Unreachable, one_line


@contextmanager
def in_words(what: str, seconds: float) -> Iterator[None]:
    """Raise `Unreachable` for whatever the network does while asking *what*, which may take *seconds*."""
    try:
        yield
    except TooLongError as error:
        raise AnswerTooLongError(what, str(error)) from None
    except (aiohttp.ConnectionTimeoutError, NotConnectedError):
        problem = "no connection in time; is the address right, and no firewall in between?"
    except TimeoutError:
        problem = f"no answer within {seconds:g} seconds; is the server overloaded?"
    except (aiohttp.ClientError, BrokenOffError, OSError, ValueError) as error:
        problem = _problem(error)
    else:
        return
    raise Unreachable(what, problem) from None


def _problem(error: Exception) -> str:
    words = next((words for kind, words in WORDS if isinstance(error, kind)), None)
    return words(error) if words is not None else f"the connection broke ({type(error).__name__})"


def _certificate(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return one_line(error.verify_message)
    return type(error).__name__


def _ssl_words(error: Exception) -> str:
    cause = getattr(error, "os_error", error)
    return one_line(getattr(cause, "reason", None) or type(cause).__name__)


WORDS: Final[tuple[tuple[type[Exception], Callable[[Any], str]], ...]] = (
    (
        aiohttp.ClientConnectorDNSError,
        lambda error: f"the name {error.host:.253} is not known; check the server's address",
    ),
    (
        aiohttp.ClientConnectorCertificateError,
        lambda error: f"its certificate is not accepted ({_certificate(error.certificate_error)}); check the CA",
    ),
    (aiohttp.ClientSSLError, lambda error: f"no TLS connection ({_ssl_words(error)}); is this an https server?"),
    (
        aiohttp.ClientConnectorError,
        lambda error: f"no connection ({error.os_error.strerror or 'refused'}); is the server running?",
    ),
    (aiohttp.ServerDisconnectedError, lambda error: "the server closed the connection before it answered"),
    (aiohttp.ClientPayloadError, lambda error: "the connection broke in the middle of the answer"),
    (
        aiohttp.ClientResponseError,
        lambda error: f"this is not HTTP as a server speaks it ({one_line(error.message)})",
    ),
    (aiohttp.InvalidURL, lambda error: "the server's address is no URL; write https://host:port"),
    (BrokenOffError, lambda error: one_line(str(error))),
    (socket.gaierror, lambda error: "the server's name is not known; check its address"),
    (ssl.CertificateError, lambda error: f"its certificate is not accepted ({_certificate(error)}); check the CA"),
    (ssl.SSLError, lambda error: f"no TLS connection ({_ssl_words(error)}); is this an https server?"),
    (
        ConnectionRefusedError,
        lambda error: f"no connection ({error.strerror or 'refused'}); is the server running?",
    ),
    (OSError, lambda error: f"the connection broke ({error.strerror or type(error).__name__})"),
)
"""The first that fits counts."""
