"""
Splits a block of shell into commands, and finds lines that are not commands.

A line of a block is a command, a part of a command (after a backslash, in a here-document, in a loop) or a comment.
"""

import re
import shlex
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from docs_check.pages import Fence, Problems

HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
ASSIGNMENT: Final = re.compile(r"^\w+=")
PROMPT: Final = re.compile(r"^[$%>] ")
SUBSTITUTION: Final = re.compile(r"\$\([^()]*\)")
GAP: Final = re.compile(r"\S {3,}\S")
COMPOUND: Final = frozenset({"for", "while", "if"})


@dataclass(frozen=True)
class ShellCommand:
    """One command of a page, with the number of its first line."""

    page: str
    line: int
    text: str
    needs_cluster: bool = False

    @property
    def plain(self) -> str:
        """The command on one line, without comments, for matching patterns."""
        return " ".join(without_comments(self.text).replace("\\\n", " ").split())

    @property
    def where(self) -> str:
        """The place in the documentation, as file:line."""
        return f"{self.page}:{self.line}"


def commands(fence: Fence, programs: Collection[str], problems: Problems) -> Iterator[ShellCommand]:
    """Yield the commands of a block; other lines are reported and skipped."""
    lines = list(fence.lines)
    position = 0
    while position < len(lines):
        start, first = position, lines[position]
        position += 1
        if not without_comments(first).strip():
            continue
        number = fence.line + start
        if (wrong := not_a_command(first, programs)) is not None:
            problems.add(number, wrong)
            continue
        while not _complete(lines[start:position]) and position < len(lines):
            position += 1
        text = "\n".join(lines[start:position])
        if (wrong := syntax_error(text)) is not None:
            problems.add(number, f"the shell does not understand this: {wrong}")
            continue
        yield ShellCommand(problems.page, number, text, fence.needs_cluster)


def not_a_command(line: str, programs: Collection[str]) -> str | None:
    """Return why a line does not start a command, or None if it does."""
    if PROMPT.match(line):
        return "a prompt breaks pasting; remove it and put output into a ```text block"
    said = without_comments(line)
    if GAP.search(_without_quoted(said)):
        return "this looks like prose beside a command; put it after #"
    words = [word for word in _words(SUBSTITUTION.sub("output", said)) if not ASSIGNMENT.match(word)]
    if words and words[0] not in programs and words[0] not in COMPOUND:
        return f"unknown command {words[0]!r}; explanations go after #, output into a ```text block"
    return None


def without_comments(text: str) -> str:
    """Remove comments; `#` inside a word or in quotes does not start one."""
    kept = []
    for line in text.split("\n"):
        quote, cut = "", len(line)
        for index, letter in enumerate(line):
            if quote:
                quote = "" if letter == quote else quote
            elif letter in "'\"":
                quote = letter
            elif letter == "#" and (index == 0 or line[index - 1].isspace()):
                cut = index
                break
        kept.append(line[:cut].rstrip())
    return "\n".join(kept)


def syntax_error(text: str) -> str | None:
    """Let the shell parse a text; return its error, or None."""
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    # An open here-document is only worth a warning to the shell.
    complaint = done.stderr.strip()
    return complaint.splitlines()[0] if done.returncode or complaint else None


def _complete(lines: list[str]) -> bool:
    text = "\n".join(lines)
    first = without_comments(lines[0])
    if (document := HEREDOC.search(first)) is not None:
        return len(lines) > 1 and lines[-1].strip() == document[2]
    if without_comments(lines[-1]).endswith("\\") and lines[-1].endswith("\\"):
        return False
    return syntax_error(text) is None


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line.rstrip("\\"))
    except ValueError:
        # An open quote: the command goes on in the next line.
        return line.split()


def _without_quoted(line: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"]*\"", "''", line)
