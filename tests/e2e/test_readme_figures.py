"""Figures of the README are figures of the pages that measured them."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w]*\d)")


def section(title: str) -> str:
    """Return the text of one section of the README."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## )", README, flags=re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def numbers(text: str) -> set[str]:
    return set(NUMBER.findall(text))


ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in section("Promised and measured").splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_was_measured_is_on_the_page_that_the_row_names(row):
    _, goal, measured, verdict, source = row
    page = (ROOT / re.search(r"\((docs/[a-z-]+\.md)", source)[1]).read_text(encoding="utf-8")

    assert numbers(goal)
    assert numbers(measured)
    assert numbers(measured) <= numbers(page)
    assert re.match(r"met|\*\*missed\*\*", verdict)


def test_the_figures_of_the_gain_are_on_the_pages_of_the_studies():
    text = re.sub(r"!\[.*?\]\(.*?\)", "", section("What it gains, and where it does not help"))
    known = numbers("".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("policy.md", "study.md")))
    # The page gives loads as parts of one, and the rise of the variation and of the peak as ratios.
    ratios = {"90": "0.9", "40": "0.4", "38": "1.38", "4": "1.04"}

    assert {ratios.get(one, one) for one in numbers(text)} <= known


def test_the_chart_shows_the_table_of_the_study():
    script = runpy.run_path(str(ROOT / "scripts" / "gains_picture.py"))
    bars = script["read"]((ROOT / "docs" / "policy.md").read_text(encoding="utf-8"))

    assert 16 == len(bars)
    assert script["draw"](bars) == (ROOT / "docs" / "gains.svg").read_text(encoding="utf-8"), "run `make picture`"


def test_the_readme_opens_with_what_it_does_the_picture_and_the_start():
    order = ["docs/founding.svg", "## Five minutes", "## What it gains, and where it does not help"]

    assert sorted(order, key=README.index) == order
