"""The folder that ``--out`` names: made before the work, and removed again if the work comes to nothing."""

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from lamina.model.errors import InputError


class OutFolder:
    """Makes a folder and its parents; after an error removes those of them that it made and that are empty."""

    def __init__(self, path: Path | None) -> None:
        """Name the folder; None for a command that writes nothing."""
        self._path = path
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        """Make the folder. Raises InputError."""
        if self._path is not None:
            self._made = [one for one in (self._path, *self._path.parents) if not one.exists()]
            try:
                self._path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                self._remove()
                why = (error.strerror or "input error").lower()
                message = f"{self._path} cannot be made: {why}; name a folder that you can write to"
                raise InputError.one("--out", message) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave no empty folder behind a command that failed or was interrupted."""
        if kind is not None:
            self._remove()

    def _remove(self) -> None:
        for folder in self._made:
            # A folder that holds something, or that another program has removed, stays as it is.
            with suppress(OSError):
                folder.rmdir()
