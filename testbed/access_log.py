"""What a registry was asked for, from the log it writes."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

# A line of the common log format; a request is written down when it has been answered.
LINE: Final = re.compile(r'^\S+ - \S+ \[[^\]]*\] "([A-Z]+) (\S+) [^"]*" (\d{3}) \d+ "[^"]*" "([^"]*)"')
BLOB: Final = re.compile(r"^/v2/.+/blobs/(sha256:[0-9a-f]{64})$")


class Asked(NamedTuple):
    """One request and how it ended."""

    method: str
    path: str
    status: int


def read(log: Path, client: str = "") -> list[Asked]:
    """
    Every request in a registry's log, in the order in which they were answered.

    With a *client*, only of those who call themselves something that begins so.
    """
    text = log.read_text(encoding="utf-8", errors="replace")
    found = (LINE.match(line) for line in text.splitlines())
    return [
        Asked(line[1], line[2].partition("?")[0], int(line[3])) for line in found if line and line[4].startswith(client)
    ]


def blobs(requests: Iterable[Asked]) -> list[str]:
    """The digests of the blobs that were downloaded, in order; one twice if it was fetched twice."""
    paths = (BLOB.match(asked.path) for asked in requests if asked.method == "GET" and asked.status in {200, 206})
    return [path[1] for path in paths if path]
