"""
One part without a control plane, for as long as a `with` block lasts.

Everything it writes lies in one folder and everything it starts carries one mark, both its own, so several may share
the folder they are told. All is gone at the end, also when the driver is killed (`testbed.leftovers`).
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

# How often a part may find its port taken by somebody else.
TRIES = 5


class Standalone:
    """What a registry and a container runtime on their own have in common."""

    program: Program
    """The process: `kill`, `stop`, `pause`, `resume`, `start`, `restart`; there from the beginning of the block."""

    def __init__(self, folder: Path | None = None) -> None:
        """Prepare; the part will have a folder of its own within *folder*, or elsewhere where that is too deep."""
        self._within = folder
        self.site: Site
        self._guard: Guard | None = None

    def prepare(self) -> Program:
        """Write what the part reads, and say how it is started; asked again when a port was taken."""
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
        """End the part and give its folder back. Nothing happens the second time."""
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
    """A new folder with a path that is short enough for sockets below it."""
    if within is not None:
        within.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="tb-", dir=within.resolve()))
        if len(str(new)) <= LONGEST_FOLDER:
            return new
        new.rmdir()
    return Path(tempfile.mkdtemp(prefix="testbed-", dir="/tmp"))
