"""Images with the idle program in a testbed's registry, with any number of layers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed import made
from testbed.made import PROGRAM

__all__ = ["PROGRAM", "Pushed", "push"]


@dataclass(frozen=True, slots=True)
class Pushed:
    """An image in the registry."""

    reference: str
    """Name with tag, as in a pod."""
    digest: str
    """Digest of the manifest."""
    manifest: dict[str, Any]


def push(registry: str, name: str, layers: Sequence[Mapping[str, bytes]]) -> Pushed:
    """Push an image with one layer for the program and one for each entry of *layers*; *name* has a tag."""
    image = made.image([made.layer(files) for files in layers])
    return Pushed(made.push(registry, name, image), image.digest, json.loads(image.manifest))
