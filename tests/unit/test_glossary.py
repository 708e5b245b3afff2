"""
The glossary describes the code as it is: every owner exists, and uses the term it owns.

`problems_of` checks a table; the last tests give it wrong tables, so that a check which finds nothing is noticed.
"""

import ast
import itertools
import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
SRC: Final = ROOT / "src" / "lamina"
PAGE: Final = ROOT / "docs" / "glossary.md"

BESIDE_SRC: Final = ("testbed/", "scripts/", "tests/")
"""Owners that start like this are below the project's root."""
MOST_WORDS: Final = 25
HEAD: Final = "| term | meaning | owner |\n|---|---|---|\n"
ROW: Final = re.compile(r"\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \| `(?P<path>[\w/]+\.py)(?::(?P<owner>\w+))?` \|")
GAPS: Final = re.compile(r"[\s_-]+")


class Term(NamedTuple):
    """One row of the table."""

    name: str
    meaning: str
    path: str
    owner: str | None
    """The class, if the row names one."""


def table_of(page: str) -> tuple[list[Term], list[str]]:
    """Return the terms of a page, and its table rows that cannot be read."""
    terms: list[Term] = []
    unread: list[str] = []
    for line in page.partition(HEAD)[2].splitlines():
        row = ROW.fullmatch(line)
        if row is None:
            unread.append(line)
        else:
            terms.append(Term(row["term"], row["meaning"], row["path"], row["owner"]))
    return terms, unread


def problems_of(page: str) -> list[str]:
    """Return what is wrong with a page's table, one line for each problem."""
    terms, unread = table_of(page)
    problems = [f"{line}: not a row of the table" for line in unread]
    for term in terms:
        problems += owner_problems(term)
    names = [term.name.casefold() for term in terms]
    for before, after in itertools.pairwise(names):
        if before == after:
            problems.append(f"{after}: listed twice")
        elif before > after:
            problems.append(f"{after}: stands after {before}")
    return problems


def owner_problems(term: Term) -> list[str]:
    """Return what is wrong with one term's owner: no such module, no such class, or a module without the term."""
    path = (ROOT if term.path.startswith(BESIDE_SRC) else SRC) / term.path
    if not path.is_file():
        return [f"{term.name}: no module {term.path}"]
    problems: list[str] = []
    text = path.read_text(encoding="utf-8")
    if term.owner is not None and term.owner not in classes_of(text):
        problems.append(f"{term.name}: no class {term.owner} in {term.path}")
    if joined(term.name) not in joined(text) and joined(term.name) not in joined(path.stem):
        problems.append(f"{term.name}: not used in {term.path}")
    return problems


def classes_of(text: str) -> set[str]:
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}


def joined(text: str) -> str:
    """Return text in lower case without spaces, hyphens and underscores: `TagVotes`, `tag_votes`, tag votes."""
    return GAPS.sub("", text.casefold())


def made(*rows: str) -> str:
    return HEAD + "\n".join(rows)


def test_every_term_has_an_owner_that_uses_it_and_the_table_is_sorted():
    assert problems_of(PAGE.read_text(encoding="utf-8")) == []


def test_the_table_was_found():
    assert len(table_of(PAGE.read_text(encoding="utf-8"))[0]) >= 40


def test_a_meaning_is_one_short_line():
    terms, _ = table_of(PAGE.read_text(encoding="utf-8"))

    assert [term.name for term in terms if len(term.meaning.split()) > MOST_WORDS] == []


VOTES: Final = "| tag votes | what a tag names | `layers/tag_votes.py:TagVotes` |"
INDEX: Final = "| layer index | packed bits | `layers/layer_index.py` |"


@pytest.mark.parametrize(
    ("rows", "problems"),
    [
        pytest.param([INDEX, VOTES], [], id="nothing wrong"),
        pytest.param(
            ["| wall | an import rule | `scripts/check_walls.py` |"],
            [],
            id="an owner beside src",
        ),
        pytest.param(
            ["| tag votes | what a tag names | `layers/tag_vote.py` |"],
            ["tag votes: no module layers/tag_vote.py"],
            id="a wrong path",
        ),
        pytest.param(
            ["| tag votes | what a tag names | `layers/tag_votes.py:TagVote` |"],
            ["tag votes: no class TagVote in layers/tag_votes.py"],
            id="an unknown class",
        ),
        pytest.param(
            ["| doorkeeper | holds pods | `layers/tag_votes.py` |"],
            ["doorkeeper: not used in layers/tag_votes.py"],
            id="a term that its owner does not use",
        ),
        pytest.param([VOTES, INDEX], ["layer index: stands after tag votes"], id="an unsorted term"),
        pytest.param([VOTES, VOTES], ["tag votes: listed twice"], id="a term twice"),
        pytest.param(
            ["| tag votes | what a tag names |"],
            ["| tag votes | what a tag names |: not a row of the table"],
            id="a row without an owner",
        ),
    ],
)
def test_a_wrong_table_is_reported(rows, problems):
    assert problems_of(made(*rows)) == problems
