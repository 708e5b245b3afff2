"""What to try instead of a name that no image has."""

from collections.abc import Iterable
from typing import Final

from lamina.layers.catalog import folded
from lamina.model.conversion import suggest

MOST_NAMES: Final = 500
"""With more names than this, first the repository is looked for, then the version: all of them would take seconds."""


def suggest_image(name: str, names: Iterable[str]) -> str:
    """Say which of the *names* was probably meant."""
    names = list(names)
    if len(names) <= MOST_NAMES:
        return suggest(name, names)
    versions: dict[str, list[str]] = {}
    for one in names:
        versions.setdefault(_home(one), []).append(one)
    return suggest(name, versions.get(_home(name)) or versions)


def _home(name: str) -> str:
    """Name the repository: all but tag and digest."""
    return folded(name).partition("@")[0].rpartition(":")[0]
