"""
The lists of lists.toml: which programs pages may use, and which commands are not run here.

A pattern is a command as the page has it, without comments; `*` matches anything. The first match wins.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from docs_check.shell import ShellCommand

LISTS: Final = Path(__file__).resolve().parent / "lists.toml"

RUN: Final = "run"
ON_TESTBED: Final = "testbed"
LISTED: Final = "listed"


@dataclass
class CommandLists:
    """The content of lists.toml, and which of its patterns have matched."""

    programs: frozenset[str]
    stories: Mapping[str, str]
    testbed: Mapping[str, str]
    listed: Mapping[str, str]
    prepared: Mapping[str, str]
    used: set[str] = field(default_factory=set)

    def verdict(self, command: ShellCommand) -> tuple[str, str]:
        """
        Classify a command: run here, on the testbed, or not at all.

        The second value names the test that runs it, or the reason why it is not run; without one the check runs it.
        """
        if command.page in self.stories:
            self.used.add(command.page)
            return ON_TESTBED, self.stories[command.page]
        if (pattern := self._match(self.listed, command)) is not None:
            return LISTED, self.listed[pattern]
        if (pattern := self._match(self.testbed, command)) is not None:
            return ON_TESTBED, self.testbed[pattern]
        return (ON_TESTBED if command.needs_cluster else RUN), ""

    def _match(self, patterns: Iterable[str], command: ShellCommand) -> str | None:
        found = next((pattern for pattern in patterns if matches(pattern, command.plain)), None)
        if found is not None:
            self.used.add(found)
        return found

    def preparations(self, commands: Iterable[ShellCommand]) -> list[str]:
        """Return the commands that create what a page takes for granted."""
        said = [command.plain for command in commands]
        wanted = [name for name in self.prepared if any(name in one for one in said)]
        self.used.update(wanted)
        return [self.prepared[name] for name in wanted]

    def stale(self) -> list[str]:
        """Return a line for every pattern that matched no command, and every test that does not exist."""
        lines = LISTS.read_text(encoding="utf-8").splitlines()
        unused = [one for one in (*self.prepared, *self.stories, *self.testbed, *self.listed) if one not in self.used]
        found = [f"{_place(lines, one)}: matches no page; remove the line" for one in unused]
        root = LISTS.parents[2]
        named = [*self.stories.items(), *self.testbed.items()]
        tests = [(one, test) for one, test in named if not (root / test).exists()]
        return found + [f"{_place(lines, one)}: there is no {test}; name the test that runs it" for one, test in tests]


def read_lists(path: Path = LISTS) -> CommandLists:
    """Read lists.toml."""
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    return CommandLists(
        frozenset(read["programs"]["known"]), read["stories"], read["testbed"], read["listed"], read["prepared"]
    )


def matches(pattern: str, command: str) -> bool:
    """Return whether a command matches a pattern; only `*` is special."""
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), command) is not None


def _place(lines: list[str], pattern: str) -> str:
    number = next((number for number, line in enumerate(lines, 1) if line.startswith(f"'{pattern}'")), 0)
    return f"scripts/docs_check/{LISTS.name}:{number}"
