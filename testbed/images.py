"""Images that idle, in a testbed's own registry: as many layers as a test wants, one of them with the program."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed import made
from testbed.made import PROGRAM

__all__ = ["PROGRAM", "Pushed", "push"]


@dataclass(frozen=True, slots=True)
class Pushed:
    """An image as it lies in the registry."""

    reference: str
    """By tag, as a pod names it."""
    digest: str
    """Of its manifest."""
    manifest: dict[str, Any]


def push(registry: str, name: str, layers: Sequence[Mapping[str, bytes]]) -> Pushed:
    """Push an image whose layers hold these files; *name* is a repository with a tag, and one layer has the program."""
    image = made.image([made.layer(files) for files in layers])
    return Pushed(made.push(registry, name, image), image.digest, json.loads(image.manifest))
