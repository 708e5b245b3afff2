"""
The simple JSON paths of printer columns: ``.spec.replicas``, ``.items[0].name``, ``.conditions[?(@.type=="Ready")].status``.

Fields, quoted fields, list indices, ``[*]`` and filters by equality are understood; any other path finds nothing, as a
path whose field is missing does.
"""

import re
from functools import lru_cache
from typing import Any, Final

MAX_PATH: Final = 1024
"""Longest path that is read."""

_FIELD: Final = re.compile(r"\.((?:[^.\[\]\\]|\\.)+)")
_QUOTED: Final = re.compile(r"\[(['\"])(.*?)\1\]")
_INDEX: Final = re.compile(r"\[(-?\d{1,9}|\*)\]")
_FILTER: Final = re.compile(r"\[\?\(\s*@((?:\.[\w/-]+)+)\s*(==|!=)\s*(['\"])(.*?)\3\s*\)\]")

_Step = tuple[str, Any]


def find_values(found: Any, path: str) -> list[Any]:
    """Return the values at *path* in decoded JSON; empty if there are none or the path is not understood."""
    steps = _parse(path)
    if steps is None:
        return []
    values = [found]
    for step in steps:
        values = [after for before in values for after in _follow(before, step)]
    return values


@lru_cache(maxsize=1024)
def _parse(path: str) -> tuple[_Step, ...] | None:
    words = path.strip().removeprefix("{").removesuffix("}").strip()
    if len(words) > MAX_PATH:
        return None
    if not words.startswith((".", "[")):
        words = f".{words}"
    steps: list[_Step] = []
    at = 0
    while at < len(words):
        step, at = _next_step(words, at)
        if step is None:
            return None
        steps.append(step)
    return tuple(steps)


def _next_step(words: str, at: int) -> tuple[_Step | None, int]:
    if match := _FIELD.match(words, at):
        return ("field", re.sub(r"\\(.)", r"\1", match[1])), match.end()
    if match := _QUOTED.match(words, at):
        return ("field", match[2]), match.end()
    if match := _INDEX.match(words, at):
        return ("index", None if match[1] == "*" else int(match[1])), match.end()
    if match := _FILTER.match(words, at):
        return ("filter", (match[1], match[2] == "==", match[4])), match.end()
    return None, at


def _follow(value: Any, step: _Step) -> list[Any]:
    kind, detail = step
    if kind == "field":
        return [value[detail]] if isinstance(value, dict) and detail in value else []
    if not isinstance(value, list):
        return []
    if kind == "index":
        if detail is None:
            return value
        return [value[detail]] if -len(value) <= detail < len(value) else []
    path, equal, wanted = detail
    return [each for each in value if (find_values(each, path)[:1] == [wanted]) == equal]
