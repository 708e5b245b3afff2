"""
Images for tests of the layer room, in round figures.

At the usual rates (125 MB/s, 100 MB/s unpacked) `APP` takes 3 s to download and 5 s to unpack on a node that has nothing,
and `TOOL` 3 s and 7 s; above `OS`, which both lie on, 1 s and 1 s, and 1 s and 3 s.
"""

import math
from typing import Any

import msgspec
import pytest

from lamina.layers.inventory import Inventory
from lamina.model.image import Image, Layer
from lamina.model.layer_report import LayerReport
from lamina.testing import a_digest

MB = 1_000_000


def read(name: str, size: int, unpacked: int, packing: str = "") -> Layer:
    """Build a layer of which everything is known, in MB; another *packing* of it has another digest and the same diff id."""
    return Layer(a_digest(name + packing), size * MB, a_digest(f"diff of {name}"), unpacked * MB)


def unread(layer: Layer) -> Layer:
    """Build the same layer as a manifest alone tells of it."""
    return Layer(layer.digest, layer.size)


def stacked(name: str, *layers: Layer) -> Image:
    """Build an image, bottom first."""
    return Image(a_digest(f"manifest of {name}"), layers, (name,))


BOTTOM = read("os", 250, 400)
OS = stacked("os:1", BOTTOM)
APP = stacked("app:1", BOTTOM, read("app", 125, 100))
TOOL = stacked("tool:1", BOTTOM, read("tool", 125, 300))
BIG = stacked("big:1", read("big", 12_500, 1))

# How long pulls take: the longer of downloading and unpacking, 0.15 of the other, 0.04.
COLD_APP = 5 + 0.15 * 3 + 0.04
COLD_TOOL = 7 + 0.15 * 3 + 0.04
COLD_BIG = 100 + 0.15 * 0.01 + 0.04
APP_ON_OS = 1 + 0.15 * 1 + 0.04
TOOL_ON_OS = 3 + 0.15 * 1 + 0.04


def but(report: LayerReport, **changes: Any) -> LayerReport:
    """Change a report."""
    return msgspec.structs.replace(report, **changes)


def seconds(inventory: Inventory, *names: str, row: int = 4) -> float:
    """Ask for the first time and again; both have to say the same."""
    ready = inventory.readiness_cache.readiness(names)
    if ready is None:
        return math.nan
    inventory.readiness_cache.look(ready, row + 1)
    told = float(ready.seconds[row])
    inventory.readiness_cache.clear()
    anew = inventory.readiness_cache.readiness(names)
    assert anew is not None
    inventory.readiness_cache.look(anew, row + 1)
    assert told == pytest.approx(float(anew.seconds[row]), nan_ok=True)
    return told


NEW = stacked("new:1", *OS.layers, read("new", 125, 100))
"""On top of the same base as the others."""
