"""
Reads markdown pages: fenced blocks and their content.

A fence's info string says what the block is. `sh` holds commands, `sh cluster` holds commands that need a cluster, `text`
holds output or a drawing. Any other language is the content of a file; with `title=NAME` the check writes that file, so that
later commands of the page find it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

FENCE: Final = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")
SHELL: Final = "sh"
CLUSTER: Final = "cluster"
OTHER_SHELLS: Final = frozenset({"console", "bash", "shell", "zsh", "shell-session"})


@dataclass(frozen=True)
class Fence:
    """One fenced block; *line* is the number of its first content line."""

    line: int
    language: str
    marks: tuple[str, ...]
    title: str
    lines: tuple[str, ...]

    @property
    def holds_commands(self) -> bool:
        """Whether a reader pastes this block into a shell."""
        return self.language == SHELL

    @property
    def needs_cluster(self) -> bool:
        """Whether the block's commands need a cluster."""
        return CLUSTER in self.marks


@dataclass
class Problems:
    """Collects the problems of a page, as `file:line: what; what to do`."""

    page: str
    found: list[str] = field(default_factory=list)

    def add(self, line: int, what: str) -> None:
        """Add one problem at a line of the page."""
        self.found.append(f"{self.page}:{line}: {what}")


def fences(text: str, problems: Problems) -> Iterator[Fence]:
    """Yield the fenced blocks of a page in order; blocks of an unknown kind are reported and skipped."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if (opened := FENCE.match(line)) is None:
            continue
        content = []
        for _, inner in lines:
            if inner.strip() == opened["ticks"]:
                break
            content.append(_dedented(inner, len(opened["indent"])))
        else:
            problems.add(number, "the block is never closed; add a line of backticks")
        if (fence := _fence(number + 1, opened["info"].split(), tuple(content), problems)) is not None:
            yield fence


def without_fences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a page that are not in a fenced block."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if (opened := FENCE.match(line)) is None:
            yield number, line
            continue
        for _, inner in lines:
            if inner.strip() == opened["ticks"]:
                break


def _fence(line: int, info: list[str], content: tuple[str, ...], problems: Problems) -> Fence | None:
    if not info:
        problems.add(line - 1, "the block does not say what it holds; write ```sh for commands, ```text for output")
        return None
    language, *marks = info
    if language in OTHER_SHELLS:
        problems.add(line - 1, f"commands belong in ```sh blocks, not in ```{language}")
        return None
    titles = [mark.removeprefix("title=") for mark in marks if mark.startswith("title=")]
    rest = tuple(mark for mark in marks if not mark.startswith("title="))
    if rest not in ((), (CLUSTER,)):
        problems.add(line - 1, f"unknown mark {' '.join(rest)!r} after ```{language}; known are cluster and title=NAME")
        return None
    return Fence(line, language, rest, titles[0] if titles else "", content)


def _dedented(line: str, indent: int) -> str:
    """Remove the indentation of a block that belongs to a list item."""
    return line[indent:] if not line[:indent].strip() else line.lstrip()
