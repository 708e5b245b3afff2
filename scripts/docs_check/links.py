"""Checks that relative links and anchors of markdown pages have a target."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs_check.pages import Problems, without_fences

INLINE: Final = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE: Final = re.compile(r"^\[[^\]]+\]:\s*(\S+)")
CODE: Final = re.compile(r"`+[^`]*`+")
HEADING: Final = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
FRAGMENTS: Final = "changelog.d"
"""Fragments become a part of CHANGELOG.md, so their links start at the root."""
ELSEWHERE: Final = re.compile(r"^[a-z][a-z0-9+.-]*:")


def broken_links(page: Path, root: Path) -> list[str]:
    """Return a line for every link of *page* that names no file or no heading."""
    problems = Problems(str(page.relative_to(root)))
    for number, link in links(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        folder = root if page.parent == root / FRAGMENTS and page.name != "README.md" else page.parent
        target = (folder / name).resolve() if name else page
        if not target.exists():
            problems.add(number, f"the link {link!r} is broken; there is no {name}")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
            problems.add(number, f"the link {link!r} is broken; {target.name} has no heading #{anchor}")
    return problems.found


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yield the relative links of a page with their line numbers; links in code are not links."""
    for number, line in without_fences(text):
        said = CODE.sub("", line)
        found = INLINE.findall(said) + REFERENCE.findall(said)
        yield from ((number, link) for link in found if not ELSEWHERE.match(link))


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page; a repeated heading gets a number."""
    given: dict[str, int] = {}
    found = set()
    for _, line in without_fences(text):
        if (heading := HEADING.match(line)) is None:
            continue
        said = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
        slug = re.sub(r"[^\w\- ]", "", said.lower()).replace(" ", "-")
        times = given.get(slug, 0)
        given[slug] = times + 1
        found.add(f"{slug}-{times}" if times else slug)
    return found
