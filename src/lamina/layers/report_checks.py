"""
What may be wrong with a node's report, and what is left of it then.

Reports come from nodes, and a node may be broken or taken over. What makes no sense is cut off or not believed at all;
each kind has a name of its own, for a condition and a count. Nothing a report says can do more than make its own node
look better or worse.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.layer_report import LayerReport

# No node holds more images; the rest of a report is cut off.
MOST_IMAGES: Final = 8192
# Nor has one a larger disk: an EiB.
LARGEST_DISK: Final = 2**60

ANOTHER_MACHINE: Final = "ReportIsAboutAnotherMachine"
TOO_EARLY: Final = "ReportIsOneOfTooManyWithoutNode"
TOO_MANY_IMAGES: Final = "ReportHasTooManyImages"
MORE_THAN_DISK: Final = "ReportHoldsMoreThanTheDisk"
IMPLAUSIBLE_FIGURES: Final = "ReportHasImplausibleFigures"


def cleaned(report: LayerReport) -> tuple[LayerReport, str]:
    """Return the report without what makes no sense in it, and what that was."""
    # One after the other: every report comes by, and not a number is not below anything.
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
    Return what images take at least where they are, compressed and each layer once.

    Of two sizes of one layer the larger counts: so it does not matter which image becomes known first, and with more images
    it is never less.
    """
    sizes: dict[Digest, int] = {}
    for image in images:
        for layer in image.layers:
            if layer.size > sizes.get(layer.digest, 0):
                sizes[layer.digest] = layer.size
    return sum(sizes.values())
