"""
JSON requests to the API server, for preparing and checking a test's cluster.

Synchronous on purpose: the test calls it; it is not the code under test. Keeps one open connection per thread, and
reconnects after a server restart.
"""

import http.client
import json
import ssl
import threading
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from testbed.errors import RefusedError, TestbedError

TIMEOUT: Final = 30.0
LONGEST_ANSWER: Final = 256 * 1024 * 1024
CONTENT_TYPES: Final = {"PATCH": "application/merge-patch+json"}


class Requests:
    """A client of one server with one identity."""

    def __init__(self, url: str, context: ssl.SSLContext | None = None, *, timeout: float = TIMEOUT) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.url, self._host, self._port = url, parts.hostname, parts.port
        self._context = context
        self._timeout = timeout
        self._mine = threading.local()
        self._all: list[http.client.HTTPConnection] = []

    def send(
        self,
        method: str,
        path: str,
        body: object | None = None,
        *,
        content_type: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send *body* as JSON and return the response. Raises RefusedError for any status but success."""
        sent = {"Accept": "application/json", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = content_type or CONTENT_TYPES.get(method, "application/json")
        data = None if body is None else json.dumps(body).encode()
        status, answer = self._exchange(method, path, data, sent)
        if not 200 <= status < 300:
            raise refusal(f"{method} {path}", status, answer)
        decoded = decode(answer)
        if not isinstance(decoded, dict):
            raise TestbedError(f"{method} {path}: the response is not a JSON object: {answer[:200]!r}")
        return decoded

    def answers(self, path: str) -> bool:
        """Return whether a GET of *path* succeeds."""
        try:
            status, _ = self._exchange("GET", path, None, {})
        except OSError:
            return False
        return status == 200

    def another(self) -> "Requests":
        """Return the same client with its own connections, for short-lived threads."""
        return self.within(self._timeout)

    def within(self, timeout: float) -> "Requests":
        """Return the same client with its own connections and another timeout, in seconds."""
        return Requests(self.url, self._context, timeout=timeout)

    def close(self) -> None:
        """Close the connections of all threads; the next request opens a new one."""
        for connection in self._all:
            connection.close()

    def _exchange(self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        connection = getattr(self._mine, "connection", None)
        if connection is not None and connection.sock is not None:
            try:
                return self._ask(connection, method, path, data, headers)
            except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
                # The server has closed an idle connection and not read the request, so send it again on a new one.
                pass
        connection = connection or self._connect()
        return self._ask(connection, method, path, data, headers)

    def _connect(self) -> http.client.HTTPConnection:
        if self._context is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        else:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=self._context
            )
        self._mine.connection = connection
        self._all.append(connection)
        return connection

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        try:
            connection.request(method, path, body=data, headers=dict(headers))
            response = connection.getresponse()
            return response.status, response.read(LONGEST_ANSWER)
        except http.client.HTTPException as error:
            connection.close()
            if isinstance(error, OSError):
                raise
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        except OSError:
            connection.close()
            raise


def decode(answer: bytes) -> object:
    """Decode a response; None if it is not JSON."""
    try:
        return json.loads(answer)
    except ValueError:
        return None


def refusal(request: str, status: int, answer: bytes) -> RefusedError:
    """Return the error for a response; Kubernetes describes it in a Status object."""
    told = decode(answer)
    if isinstance(told, dict):
        return RefusedError(request, status, str(told.get("reason", "")), str(told.get("message", "")))
    return RefusedError(request, status, "", answer[:500].decode(errors="replace").strip())
