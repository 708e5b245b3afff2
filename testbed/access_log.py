"""Read a registry's requests from its log."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

# A line of the common log format; the registry logs a request after answering it.
LINE: Final = re.compile(r'^\S+ - \S+ \[[^\]]*\] "([A-Z]+) (\S+) [^"]*" (\d{3}) \d+ "[^"]*" "([^"]*)"')
BLOB: Final = re.compile(r"^/v2/.+/blobs/(sha256:[0-9a-f]{64})$")


class Asked(NamedTuple):
    """One request and its status."""

    method: str
    path: str
    status: int


def read(log: Path, client: str = "") -> list[Asked]:
    """
    Return every request in a registry's log, in the order of the answers.

    With *client*, only requests whose user agent starts with it.
    """
    text = log.read_text(encoding="utf-8", errors="replace")
    found = (LINE.match(line) for line in text.splitlines())
    return [
        Asked(line[1], line[2].partition("?")[0], int(line[3])) for line in found if line and line[4].startswith(client)
    ]


def blobs(requests: Iterable[Asked]) -> list[str]:
    """Return the digests of downloaded blobs, in order; a blob that was fetched twice is listed twice."""
    paths = (BLOB.match(asked.path) for asked in requests if asked.method == "GET" and asked.status in {200, 206})
    return [path[1] for path in paths if path]
