"""
One list and watch of the API server in a thread, for tests that must not depend on Lamina's own reflector.

    list --> listed(items) --> watch --> changed(type, object), ... --> ended, silent or failed --> list again

The thread of the reader calls both functions. A bookmark is read and not passed on.
"""

import contextlib
import http.client
import json
import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from testbed import Testbed
from testbed.errors import RefusedError

Item: TypeAlias = dict[str, Any]

PAUSE: Final = 0.1
"""Seconds before the next list."""


class WatchReader:
    """Follows the objects of one path until `stop`, over restarts of the server."""

    def __init__(
        self,
        bed: Testbed,
        path: str,
        listed: Callable[[list[Item]], None],
        changed: Callable[[str, Item], None],
        *,
        silence: float,
    ) -> None:
        """Prepare; *silence* is how many seconds without a line the reader waits before it lists again."""
        self._url = urlsplit(bed.url)
        self._context = bed.site.requests()._context
        self._path = path
        self._listed = listed
        self._changed = changed
        self._silence = silence
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch of {path}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self, within: float = 0.0) -> None:
        """Stop at the next line or silence; wait for that at most *within* seconds."""
        self._stopped.set()
        self._thread.join(within)

    def _run(self) -> None:
        while not self._stopped.is_set():
            # A server that is away, or that answers with an error, is asked again.
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError, KeyError, RefusedError):
                self._follow()
            self._stopped.wait(PAUSE)

    def _follow(self) -> None:
        host, port = self._url.hostname or "", self._url.port
        connection = http.client.HTTPSConnection(host, port, context=self._context, timeout=self._silence)
        with contextlib.closing(connection):
            found = json.loads(self._get(connection, self._path).read())
            version = found["metadata"]["resourceVersion"]
            self._listed(found["items"])
            lines = self._get(connection, f"{self._path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}")
            while not self._stopped.is_set() and (line := lines.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] != "BOOKMARK":
                    self._changed(event["type"], event["object"])

    def _get(self, connection: http.client.HTTPSConnection, path: str) -> http.client.HTTPResponse:
        connection.request("GET", path)
        response = connection.getresponse()
        if response.status != 200:
            raise ValueError(f"{path}: {response.status}")
        return response
