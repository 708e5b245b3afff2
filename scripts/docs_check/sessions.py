"""
Runs the commands of a page in one shell, as a reader would who pastes them one after the other.

The shell starts in a copy of the checkout, with a home folder of its own and with the environment activated, as README.md
says. A page's `/tmp/` is a folder of its own too, so that pages can run side by side.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

ACTIVATE: Final = ". .venv/bin/activate"
WITHIN: Final = 120.0
"""Seconds for one command."""
STOP_WITHIN: Final = 10.0
"""Seconds for what a page left running in the background to stop."""
TAIL: Final = 20


@dataclass(frozen=True)
class WrittenFile:
    """A block with a title: content that later commands read from a file of that name."""

    name: str
    content: str


class Clone:
    """A copy of the files of a checkout; pages get folders that share its files."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._origin, self._folder, self._root = folder / "clone", folder, root
        for name in tracked(root):
            target = self._origin / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target)

    @contextmanager
    def fresh(self) -> Iterator[Path]:
        """Lend a fresh copy with `.venv` linked, in a folder with room beside it for `/tmp` and a home."""
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as name:
            beside = Path(name)
            for folder in ("tmp", "home"):
                (beside / folder).mkdir()
            # Links to the copy: a command that changes a file of the project in place changes no file of the checkout.
            shutil.copytree(self._origin, beside / "lamina", copy_function=os.link)
            (beside / "lamina" / ".venv").symlink_to((self._root / ".venv").resolve())
            yield beside / "lamina"


def tracked(root: Path) -> list[str]:
    """List the files of a checkout: what git tracks, or would track if it was added."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(name for name in listed if name and (root / name).is_file() and not (root / name).is_symlink())


class PageSession:
    """One shell for one page."""

    def __init__(self, folder: Path, source: Path, more: Mapping[str, str]) -> None:
        self._folder = folder
        self._log = (folder.parent / "log").open("a+b")
        self._said = 0
        # Exit codes come through a pipe; its end means that the shell and all it started are gone.
        self._codes, self._report = os.pipe()
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-o", "pipefail"],
            cwd=folder,
            env=_environment(folder, source, more),
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            pass_fds=[self._report],
            start_new_session=True,
        )
        os.close(self._report)
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the shell and what it left in the background."""
        assert self._shell.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._shell.pid, number)
            while self._code(STOP_WITHIN):
                pass
        self._shell.wait()
        self._log.close()
        os.close(self._codes)

    def _code(self, within: float) -> bytes | None:
        """Return the next exit code, nothing if the shell is gone, or None if there is neither in time."""
        ready, _, _ = select.select([self._codes], [], [], within)
        return os.read(self._codes, 16) if ready else None

    def write(self, file: WrittenFile) -> None:
        """Write a file that a page shows."""
        (self._folder / file.name).write_text(file.content, encoding="utf-8")

    def run(self, text: str, within: float = WITHIN) -> str | None:
        """Run a command; return why it failed with the end of its output, or None."""
        assert self._shell.stdin is not None
        own = text.replace("/tmp/", f"{self._folder.parent / 'tmp'}/")  # noqa: S108 - not this process's folder
        script = f"{{ {own}\n}} </dev/null\necho $? >&{self._report}\n"
        if self._over:
            return "an earlier command of this page ended the shell"
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.write(script.encode())
            self._shell.stdin.flush()
        code = self._code(within)
        if not code:
            self._over = True
            return f"no end after {within:g} s{self._tail()}" if code is None else f"the shell ended{self._tail()}"
        if int(code):
            return f"exit code {int(code)}{self._tail()}"
        self._log.seek(0, os.SEEK_END)
        self._said = self._log.tell()
        return None

    def _tail(self) -> str:
        """Return the last lines that were printed since the last command that went well."""
        self._log.seek(self._said)
        lines = self._log.read().decode(errors="replace").splitlines()[-TAIL:]
        return "".join(f"\n    {line}" for line in lines)


def _environment(folder: Path, source: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a reader: the checkout's own source is what the linked `.venv` runs."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH") if name in os.environ}
    said = kept | {"HOME": str(folder.parent / "home"), "PYTHONPATH": str(source), "TERM": "dumb"} | dict(more)
    # Not the environment that this check itself may run in: a page activates its own.
    folders = said.get("PATH", os.defpath).split(os.pathsep)
    return said | {"PATH": os.pathsep.join(one for one in folders if not one.endswith(".venv/bin"))}
