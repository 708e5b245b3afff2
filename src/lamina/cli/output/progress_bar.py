"""Progress bar over an iterable: nothing for two seconds, then a bar; nothing in a pipe."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

T = TypeVar("T")

QUIET_SECONDS: Final = 2.0


def with_progress(things: Iterable[T], total: int, noun: str) -> Iterator[T]:
    """Yield *things*; draw a progress bar on a terminal after two seconds."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield from things
        return
    began = time.monotonic()
    bar = Progress(
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} {task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(noun, total=total)
    drawn = False
    try:
        for thing in things:
            yield thing
            bar.advance(task)
            if not drawn and time.monotonic() - began > QUIET_SECONDS:
                bar.start()
                drawn = True
    finally:
        if drawn:
            bar.stop()
