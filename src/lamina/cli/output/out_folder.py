"""The folder of ``--out``: created before the work, and removed again if the work fails."""

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from lamina.model.errors import InputError


class OutFolder:
    """Creates a folder and its parents; after an error removes the empty ones among those it created."""

    def __init__(self, path: Path | None) -> None:
        """Set the folder; None for a command that writes nothing."""
        self._path = path
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        """Create the folder. Raises InputError."""
        if self._path is not None:
            self._made = [one for one in (self._path, *self._path.parents) if not one.exists()]
            try:
                self._path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                self._remove()
                why = (error.strerror or "input error").lower()
                message = f"{self._path} cannot be created: {why}; choose a folder that you can write to"
                raise InputError.one("--out", message) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the created folders if the command failed or was interrupted and they are empty."""
        if kind is not None:
            self._remove()

    def _remove(self) -> None:
        for folder in self._made:
            # The folder has files, or another program has removed it: leave it.
            with suppress(OSError):
                folder.rmdir()
