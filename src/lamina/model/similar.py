"""
Which of several names was probably meant by a misspelt one; none, if nothing is alike.

Two names are alike if few letters have to be changed, if they differ in their endings only, or if one is the other with one
more part. Capitals, ``-`` and ``_`` do not count, and neither do leading or trailing parts that both names share:
`default/web` and `default/p3` have nothing in common but their namespace.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Final

LONGEST: Final = 100
"""Letters of a name that are looked at."""
CANDIDATES: Final = 5
"""Names whose letters are compared one by one."""
SHORT: Final = 3
"""Names with fewer letters are alike only if they are equal."""

_PARTS: Final = re.compile(r"[-_./]")
_PLAIN: Final = re.compile(r"[-_]")


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name that was probably meant, or None."""
    plain = {_plain(one): one for one in valid}
    near = difflib.get_close_matches(_plain(name[:LONGEST]), plain, n=CANDIDATES)
    return next((plain[one] for one in near if alike(name[:LONGEST], plain[one])), None)


def alike(one: str, other: str) -> bool:
    """Return whether one name may be a misspelling of the other."""
    one, other = (_plain(rest) for rest in _different_parts(one.lower(), other.lower()))
    short, long = sorted((one, other), key=len)
    if one == other or len(long) < SHORT:
        return one == other
    same = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return _distance(one, other) <= max(1, len(short) // 4) or same >= 0.75 * len(long) or _one_more_part(short, long)


def _plain(name: str) -> str:
    return _PLAIN.sub("", name).lower()


def _different_parts(one: str, other: str) -> tuple[str, str]:
    """Leave out the parts at the beginning and at the end that both names have."""
    first, second = (_PARTS.split(name) for name in (one, other))
    while len(first) > 1 and len(second) > 1 and first[0] == second[0]:
        del first[0], second[0]
    while len(first) > 1 and len(second) > 1 and first[-1] == second[-1]:
        del first[-1], second[-1]
    return "-".join(first), "-".join(second)


def _one_more_part(short: str, long: str) -> bool:
    """
    Return whether *long* is *short* with letters more in one place: two, or up to six tenths of its length.

    In front of it as many as it has are allowed: `bytes` for `megabytes`, but not `lamina-even` for `lamina`.
    """
    more = len(long) - len(short)
    if more > max(2, len(short) if long.endswith(short) else 0.6 * len(short)):
        return False
    return any(long[:at] + long[at + more :] == short for at in range(len(short) + 1))


def _distance(one: str, other: str) -> int:
    """Count the letters to be changed, added, left out, or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        last, before, row = before, row, [i]
        for j, wanted in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
