"""
Check the documentation: run its commands, and follow its links.

    python scripts/check_docs.py [PAGE...]

Every command of README.md, CONTRIBUTING.md, docs, examples, deploy and the help texts is run in a fresh copy of the checkout,
or on the testbed, or is listed with a reason in scripts/docs_check/lists.toml. Prose in a block of commands, an unknown
command and a link that leads nowhere are reported as file:line. The last line is JSON.
"""

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from docs_check import cluster, lists, sources  # noqa: E402 - the testbed is found only with the line above
from docs_check.links import broken_links  # noqa: E402
from docs_check.lists import CommandLists  # noqa: E402
from docs_check.sessions import ACTIVATE, Clone, PageSession, WrittenFile, tracked  # noqa: E402
from docs_check.shell import ShellCommand  # noqa: E402
from docs_check.sources import DocPage  # noqa: E402
from docs_check.usage import usage_error  # noqa: E402

WORKERS: Final = 2
SLOW: Final = 5.0
"""Seconds from which a command is listed as slow."""


@dataclass
class Tally:
    """Counts of one page's commands by outcome, and the problems found."""

    verdicts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    by_tests: int = 0
    """Commands that a test or a story runs on the testbed instead of this check."""


def main(only: Sequence[str] = ()) -> int:
    """Check everything, or the pages named; print the problems, and return 1 if there are any."""
    known = lists.read_lists()
    problems: list[str] = []
    pages = [*sources.markdown_pages(ROOT, known, problems), *sources.help_pages(known, problems)]
    pages.append(sources.new_agent_page(known, problems))
    broken = [line for name in tracked(ROOT) if name.endswith(".md") for line in broken_links(ROOT / name, ROOT)]
    with tempfile.TemporaryDirectory(prefix="lamina-docs-", ignore_cleanup_errors=True) as folder:
        clone = Clone(ROOT, Path(folder))
        tasks: dict[str, Callable[[], Tally]] = {sources.DEMO: partial(demo, clone, known)}
        tasks |= {page.name: partial(play, page, clone, known) for page in pages}
        with ThreadPoolExecutor(WORKERS) as pool:
            futures = [pool.submit(task) for name, task in tasks.items() if not only or name in only]
            tallies = [future.result() for future in futures]
    problems += [line for tally in tallies for line in tally.wrong]
    if not only:
        problems += known.stale()
    by_tests = sum(tally.by_tests for tally in tallies)
    print(f"of the commands on the testbed, tests run {by_tests} (see lists.toml), and this check runs the others")
    for line in (*(note for tally in tallies for note in tally.notes), *problems, *broken):
        print(line)
    counted = sum((tally.verdicts for tally in tallies), Counter[str]())
    print(json.dumps(figures(counted, len(problems), len(broken))), flush=True)
    return 1 if problems or broken else 0


def figures(counted: Counter[str], failed: int, broken: int) -> dict[str, int]:
    """Return the figures of the last line."""
    return {
        "commands_run": counted[lists.RUN],
        "commands_failed": failed,
        "commands_listed": counted[lists.LISTED],
        "commands_on_testbed": counted[lists.ON_TESTBED],
        "links_broken": broken,
    }


def play(page: DocPage, clone: Clone, known: CommandLists) -> Tally:
    """Run a page's commands in order, in a copy of the checkout, and on a control plane if the page needs one."""
    tally = Tally()
    wanted = chosen(page, known, tally)
    on_testbed = any(command.needs_cluster for command in wanted)
    if on_testbed and not cluster.is_built():
        left = [command for command in wanted if command.needs_cluster]
        said = f"{page.name}: {len(left)} commands are not run because the testbed is not built; try `make testbed`"
        (tally.wrong if os.environ.get("CI") else tally.notes).append(said)
        wanted, on_testbed = [command for command in wanted if not command.needs_cluster], False
    if not wanted:
        return tally
    lent: AbstractContextManager[dict[str, str]] = cluster.lent() if on_testbed else nullcontext({})
    with lent as environment, clone.fresh() as folder, PageSession(folder, ROOT / "src", environment) as session:
        if page.activated:
            session.run(ACTIVATE)
        follow(session, page, wanted, known.preparations(wanted), tally)
    return tally


def demo(clone: Clone, known: CommandLists) -> Tally:
    """Run the tour as after `make demo`, then the commands it suggests, in the same shell."""
    tally = Tally()
    # The copy's own source: the tour prints paths of the examples beside its source.
    with clone.fresh() as folder, PageSession(folder, folder / "src", {}) as session:
        if (wrong := session.run(".venv/bin/lamina demo > demo.txt")) is not None:
            tally.wrong.append(f"{sources.DEMO}:1: {wrong}")
            return tally
        tally.verdicts[lists.RUN] += 1
        page = sources.demo_page((folder / "demo.txt").read_text(encoding="utf-8"), known, tally.wrong)
        follow(session, page, chosen(page, known, tally), [], tally)
    return tally


def chosen(page: DocPage, known: CommandLists, tally: Tally) -> list[ShellCommand]:
    """Count each command of a page by its verdict; return those that the check itself runs."""
    wanted = []
    for command in page.commands:
        verdict, reason = known.verdict(command)
        tally.verdicts[verdict] += 1
        tally.by_tests += bool(verdict == lists.ON_TESTBED and reason)
        if verdict == lists.ON_TESTBED and page.marked and not command.needs_cluster and page.name not in known.stories:
            tally.wrong.append(f"{command.where}: needs a cluster; mark its block as ```sh cluster")
        elif not reason:
            wanted.append(command)
        elif (error := usage_error(command)) is not None:
            tally.wrong.append(f"{command.where}: {command.plain}: {error}")
    return wanted


def follow(
    session: PageSession, page: DocPage, wanted: Sequence[ShellCommand], before: Sequence[str], tally: Tally
) -> None:
    """Run the *wanted* commands of a page and write its files, in order, after the preparations *before*."""
    for text in before:
        if (failed := session.run(text)) is not None:
            tally.wrong.append(f"{page.name}:1: preparation failed: {text}: {failed}")
    for step in page.steps:
        began = time.monotonic()
        if isinstance(step, WrittenFile):
            session.write(step)
        elif step in wanted and (failed := session.run(step.text)) is not None:
            tally.wrong.append(f"{step.where}: {step.plain}: {failed}")
        elif time.monotonic() - began > SLOW:
            tally.notes.append(f"{step.where}: took {time.monotonic() - began:.0f} s: {step.plain}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
