"""
One part without a control plane, for the duration of a `with` block.

The part has its own folder and its own mark, so several parts may use the same parent folder. Files and processes are
removed at the end, even if the driver is killed (`testbed.leftovers`).
"""

import secrets
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed import leftovers, ports
from testbed import parts as catalog
from testbed.errors import PartError
from testbed.guarding import Guard
from testbed.processes import Program
from testbed.site import LONGEST_FOLDER, Site

# Attempts to start a part whose port another program has taken.
TRIES = 5


class Standalone:
    """Base of a registry or a container runtime that runs alone."""

    program: Program
    """The process, from the start of the block: `kill`, `stop`, `pause`, `resume`, `start`, `restart`."""

    def __init__(self, folder: Path | None = None) -> None:
        """Prepare; the part gets its own folder within *folder*, or elsewhere if that path is too long."""
        self._within = folder
        self.site: Site
        self._guard: Guard | None = None

    def prepare(self) -> Program:
        """Write the part's files and return its program; called again if another program has taken the port."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.site = Site(catalog.KUBERNETES, own_folder(self._within), secrets.token_hex(8))
        self._guard = Guard(self.site.mark, self.site.folder)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the part and remove its folder. A second call does nothing."""
        if hasattr(self, "program"):
            self.program.kill()
        leftovers.clear(self.site.mark, self.site.folder)
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None

    def _start(self) -> None:
        for tries_left in reversed(range(TRIES)):
            self.program = self.prepare()
            try:
                self.program.start()
            except PartError:
                self.program.kill()
                if not tries_left or ports.CLASH not in self.program.last_words():
                    raise
            else:
                return


def own_folder(within: Path | None) -> Path:
    """Return a new folder whose path is short enough for sockets below it."""
    if within is not None:
        within.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="tb-", dir=within.resolve()))
        if len(str(new)) <= LONGEST_FOLDER:
            return new
        new.rmdir()
    return Path(tempfile.mkdtemp(prefix="testbed-", dir="/tmp"))
