"""Where commands are documented: pages, help texts of the command line, and the last lines of `lamina demo`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from docs_check import shell
from docs_check.lists import CommandLists
from docs_check.pages import Fence, Problems, fences
from docs_check.sessions import WrittenFile
from docs_check.shell import ShellCommand

PAGES: Final = ("README.md", "CONTRIBUTING.md", "docs/*.md", "examples/*/README.md", "deploy/README.md")
ACTIVATES: Final = "README.md"
"""The page that activates the environment itself; other pages assume that the reader has done so."""
DEMO: Final = "lamina demo"
LAST_TITLE: Final = "Next"


@dataclass(frozen=True)
class DocPage:
    """A page's commands and files, in order."""

    name: str
    steps: Sequence[ShellCommand | WrittenFile]
    marked: bool = True
    """Whether the page marks commands that need a cluster; help texts have no marks."""
    activated: bool = True
    """Whether a reader has activated the environment before the first command."""

    @property
    def commands(self) -> list[ShellCommand]:
        """The page's commands."""
        return [step for step in self.steps if isinstance(step, ShellCommand)]


def markdown_pages(root: Path, lists: CommandLists, problems: list[str]) -> Iterator[DocPage]:
    """Yield the pages of a checkout that contain commands."""
    for path in sorted(path for pattern in PAGES for path in root.glob(pattern)):
        name = str(path.relative_to(root))
        page = markdown_page(name, path.read_text(encoding="utf-8"), lists, problems)
        if page.commands:
            yield page


def markdown_page(name: str, text: str, lists: CommandLists, problems: list[str]) -> DocPage:
    """Read one page; problems of its blocks are added to *problems*."""
    found = Problems(name)
    steps: list[ShellCommand | WrittenFile] = []
    for fence in fences(text, found):
        if fence.holds_commands:
            steps += shell.commands(fence, lists.programs, found)
        elif fence.title:
            steps.append(WrittenFile(fence.title, "\n".join(fence.lines) + "\n"))
    problems += found.found
    return DocPage(name, steps, activated=name != ACTIVATES)


def help_pages(lists: CommandLists, problems: list[str]) -> Iterator[DocPage]:
    """Yield a page for every command whose help has examples."""
    from lamina.cli.main import lamina

    for name, command in _commands("lamina", lamina):
        if command.epilog:
            yield printed_page(f"{name} --help", _examples(command.epilog), lists, problems)


def new_agent_page(lists: CommandLists, problems: list[str]) -> DocPage:
    """Return the README that `lamina new-agent` writes, as a page."""
    from lamina.cli.new_agent.folder import files

    return markdown_page("lamina new-agent README.md", files("quiet-nodes")["README.md"], lists, problems)


def demo_page(output: str, lists: CommandLists, problems: list[str]) -> DocPage:
    """Return the commands that `lamina demo` suggests, as a page."""
    lines = output.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(LAST_TITLE)), len(lines))
    page = printed_page(DEMO, lines[start + 1 :], lists, problems)
    if not page.commands:
        problems.append(f"{DEMO}:1: it ends without commands to try next; print some")
    return DocPage(page.name, page.steps, marked=False, activated=False)


def printed_page(name: str, lines: Sequence[str], lists: CommandLists, problems: list[str]) -> DocPage:
    """Return lines that a program prints, as a page."""
    found = Problems(name)
    fence = Fence(1, "sh", (), "", tuple(line.strip() for line in lines))
    page = DocPage(name, list(shell.commands(fence, lists.programs, found)), marked=False)
    problems += found.found
    return page


def _examples(epilog: str) -> list[str]:
    """Return the command lines of an epilog, without titles."""
    return [line if line.startswith("  ") else "" for line in epilog.replace("\b\n", "").splitlines()]


def _commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for child in command.list_commands(context):
                if (found := command.get_command(context, child)) is not None and not found.hidden:
                    yield from _commands(f"{name} {child}", found)
