"""
Plausibility checks of a node's report.

Reports come from nodes, and a node may be broken or compromised. Implausible parts are cut off, or the report is
rejected. Each fault has a name, which is used as a condition and as a metric label. A report can only make its own node
look better or worse.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.layer_report import LayerReport

# No node holds more images; `cleaned` drops the rest of the list.
MOST_IMAGES: Final = 8192
# 1 EiB; no node has a larger disk.
LARGEST_DISK: Final = 2**60

ANOTHER_MACHINE: Final = "ReportIsAboutAnotherMachine"
TOO_EARLY: Final = "ReportIsOneOfTooManyWithoutNode"
TOO_MANY_IMAGES: Final = "ReportHasTooManyImages"
MORE_THAN_DISK: Final = "ReportHoldsMoreThanTheDisk"
IMPLAUSIBLE_FIGURES: Final = "ReportHasImplausibleFigures"


def cleaned(report: LayerReport) -> tuple[LayerReport, str]:
    """Return the report without its implausible parts, and the name of the fault (empty: none)."""
    # Chained comparisons, because every report is checked. They are also false for NaN.
    sane = (
        0 <= report.disk_free <= report.disk <= LARGEST_DISK
        and 0 <= report.renews_within < math.inf
        and 0 <= report.download_rate < math.inf
        and 0 <= report.unpack_rate < math.inf
        and 0 <= report.observed_at < math.inf
    )
    if not sane:
        report = msgspec.structs.replace(
            report,
            renews_within=_sane(report.renews_within),
            download_rate=_sane(report.download_rate),
            unpack_rate=_sane(report.unpack_rate),
            observed_at=_sane(report.observed_at),
            disk=0,
            disk_free=0,
        )
        return _cut(report)[0], IMPLAUSIBLE_FIGURES
    return _cut(report)


def _cut(report: LayerReport) -> tuple[LayerReport, str]:
    if len(report.images) <= MOST_IMAGES:
        return report, ""
    return msgspec.structs.replace(report, images=report.images[:MOST_IMAGES]), TOO_MANY_IMAGES


def _sane(figure: float) -> float:
    return figure if math.isfinite(figure) and figure >= 0 else 0.0


def least_bytes(images: Iterable[Image]) -> int:
    """
    Return the least bytes that these images take on a disk: compressed, each layer once.

    Of two sizes of one layer the larger one is used. The result then does not depend on the order in which images
    become known, and never shrinks with more images.
    """
    sizes: dict[Digest, int] = {}
    for image in images:
        for layer in image.layers:
            if layer.size > sizes.get(layer.digest, 0):
                sizes[layer.digest] = layer.size
    return sum(sizes.values())
