"""
What an agent says while it runs: one line per message on standard error, for people or as JSON.

``-v 0`` says what somebody should know: starts, ends, troubles and their ends. 1 adds a line for every report that was
written, 2 for every image that was described, 3 for every look at the runtime.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import IO, Final, Literal

Format = Literal["text", "json"]

REPORTS: Final = 1
IMAGES: Final = 2
LOOKS: Final = 3
USUAL: Final = frozenset([*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"])
"""What every record has."""


class Verbosity:
    """How much is said; shared by everybody who says something."""

    level: int = 0


def verbose(level: int) -> bool:
    """Whether messages of this verbosity are wanted."""
    return level <= Verbosity.level


class Plain(logging.Formatter):
    """``12:01:02.345 I message key=value`` for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        when = datetime.fromtimestamp(record.created, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
        words = [when, record.levelname[0], record.getMessage()]
        words += [f"{key}={_quoted(value)}" for key, value in _fields(record).items()]
        if record.exc_info:
            words.append(self.formatException(record.exc_info))
        return _line(" ".join(words))


class Json(logging.Formatter):
    """One JSON object per line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        entry: dict[str, object] = {
            "ts": round(record.created, 3),
            "level": record.levelname.lower(),
            "msg": record.getMessage(),
        }
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps({**_fields(record), **entry}, default=str)


def set_up(verbosity: int, form: Format, stream: IO[str] | None = None) -> None:
    """Let everything be said from now on."""
    Verbosity.level = verbosity
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Json() if form == "json" else Plain())
    for name, level in (("lamina", logging.INFO), ("asyncio", logging.WARNING), ("grpc", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(level)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in USUAL}


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(one in text for one in ' "=\n') else text


def _line(text: str) -> str:
    """Let nothing through that would begin another line or mean something to a terminal."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
