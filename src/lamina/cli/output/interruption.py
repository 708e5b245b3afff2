"""
Ctrl-C and SIGTERM: the command cleans up, reports the files it kept, and exits with 130 or 143.

Python raises KeyboardInterrupt on Ctrl-C. On SIGTERM it would end at once and leave temporary files behind, so `listen`
turns SIGTERM into an exception. Services replace both handlers: for them a signal is an orderly stop.
"""

import signal
from pathlib import Path
from typing import Final

import click

INTERRUPTED: Final = 128 + signal.SIGINT
TERMINATED: Final = 128 + signal.SIGTERM
NOTHING: Final = "no file was written"

_KEY: Final = "lamina.cli.output.interruption"


class Terminated(SystemExit):
    """SIGTERM arrived. Derives from SystemExit, so that event loops pass it on at once."""


def listen() -> None:
    """Raise `Terminated` on SIGTERM from now on, unless the process was started to ignore it."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, _: object) -> None:
    # A second signal ends the process at once, in case the cleanup takes too long.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise Terminated(128 + number)


def keep(path: Path) -> None:
    """Record that *path* is complete; a later interruption reports it."""
    ctx = click.get_current_context(silent=True)
    if ctx is not None:
        ctx.meta.setdefault(_KEY, []).append(str(path))


def report(ctx: click.Context) -> str:
    """Return which files the command has written so far."""
    kept = ctx.meta.get(_KEY)
    return f"kept {', '.join(kept)}" if kept else NOTHING


def message(stop: BaseException | None) -> str:
    """Return the line to print for an interruption, with the exception's notes."""
    what = "terminated" if isinstance(stop, Terminated) else "interrupted"
    notes = getattr(stop, "__notes__", None) or [NOTHING]
    return f"{what}: {'; '.join(notes)}"
