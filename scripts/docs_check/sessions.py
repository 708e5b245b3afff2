"""
Runs the commands of a page in one shell, as if a reader pasted them one after the other.

The shell starts in a copy of the checkout, with its own home folder and with the environment activated, as README.md
describes. A page's `/tmp/` is its own folder as well, so that pages can run in parallel.
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
"""Time limit of one command, in seconds."""
STOP_WITHIN: Final = 10.0
"""Seconds in which background processes of a page must stop."""
TAIL: Final = 20


@dataclass(frozen=True)
class WrittenFile:
    """A block with a title: the content of a file that later commands read."""

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
        """Yield a fresh copy with `.venv` linked, in a folder that also has room for `/tmp` and a home."""
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as name:
            beside = Path(name)
            for folder in ("tmp", "home"):
                (beside / folder).mkdir()
            # Links to the copy: a command that changes a project file in place does not change the checkout.
            shutil.copytree(self._origin, beside / "lamina", copy_function=os.link)
            (beside / "lamina" / ".venv").symlink_to((self._root / ".venv").resolve())
            yield beside / "lamina"


def tracked(root: Path) -> list[str]:
    """Return the files of a checkout: those that git tracks, or would track if added."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(name for name in listed if name and (root / name).is_file() and not (root / name).is_symlink())


class PageSession:
    """One shell for one page."""

    def __init__(self, folder: Path, source: Path, more: Mapping[str, str]) -> None:
        self._folder = folder
        self._log = (folder.parent / "log").open("a+b")
        self._said = 0
        # Exit codes arrive through a pipe; its end means that the shell and all its children have ended.
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
        """End the shell and its background processes."""
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
        """Return the next exit code, nothing if the shell has ended, or None on a timeout."""
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
            return (
                f"not finished after {within:g} s{self._tail()}" if code is None else f"the shell ended{self._tail()}"
            )
        if int(code):
            return f"exit code {int(code)}{self._tail()}"
        self._log.seek(0, os.SEEK_END)
        self._said = self._log.tell()
        return None

    def _tail(self) -> str:
        """Return the last lines printed since the last successful command."""
        self._log.seek(self._said)
        lines = self._log.read().decode(errors="replace").splitlines()[-TAIL:]
        return "".join(f"\n    {line}" for line in lines)


def _environment(folder: Path, source: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return a reader's environment, in which the linked `.venv` runs the checkout's own source."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH") if name in os.environ}
    said = kept | {"HOME": str(folder.parent / "home"), "PYTHONPATH": str(source), "TERM": "dumb"} | dict(more)
    # Not the environment that this check itself may run in: a page activates its own.
    folders = said.get("PATH", os.defpath).split(os.pathsep)
    return said | {"PATH": os.pathsep.join(one for one in folders if not one.endswith(".venv/bin"))}
