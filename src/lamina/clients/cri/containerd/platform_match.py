"""
Selection of an index's manifest by containerd's platform rules.

A node also runs images for older or smaller platforms: arm64 runs 32-bit arm, amd64/v3 runs v2 and the base variant.
The best match comes first. An entry without a platform may fit any node, so it comes last.
"""

import os
from collections.abc import Iterable
from typing import Final

from lamina.model.image import Platform
from lamina.wire.oci.documents import IndexEntry, IndexPlatform, is_attestation

MACHINES: Final = {
    "x86_64": Platform("linux", "amd64"),
    "aarch64": Platform("linux", "arm64"),
    "armv7l": Platform("linux", "arm", "v7"),
    "armv6l": Platform("linux", "arm", "v6"),
    "i686": Platform("linux", "386"),
    "ppc64le": Platform("linux", "ppc64le"),
    "s390x": Platform("linux", "s390x"),
    "riscv64": Platform("linux", "riscv64"),
}
ARCHITECTURES: Final = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64", "i386": "386"}
ARM_ALIASES: Final = {"armhf": "v7", "armel": "v6"}
ARM64_PLAIN: Final = {"8", "v8", "v8.0"}
ARM64_NINE: Final = {"9", "9.0", "v9.0"}
NEWEST_ARM: Final = 9
"""Minor versions of v8 an arm64 variant can have; v9.n includes v8.(n + 5)."""


def this_machine() -> Platform:
    """Return the platform of this machine, for runtimes that do not report one."""
    return MACHINES.get(os.uname().machine, Platform())


def normalize(platform: Platform | IndexPlatform) -> Platform:
    """Return a platform in containerd's normal form: one name for each architecture, default variants omitted."""
    system = platform.os.lower() or "linux"
    architecture, variant = platform.architecture.lower(), platform.variant.lower()
    if architecture in ARM_ALIASES:
        return Platform(system, "arm", ARM_ALIASES[architecture])
    architecture = ARCHITECTURES.get(architecture, architecture)
    match architecture:
        case "386":
            variant = ""
        case "amd64" if variant == "v1":
            variant = ""
        case "arm64" if variant in ARM64_PLAIN:
            variant = ""
        case "arm64" if variant in ARM64_NINE:
            variant = "v9"
        case "arm":
            variant = "v7" if variant in ("", "7") else f"v{variant}" if variant in ("5", "6", "8") else variant
    return Platform(system, architecture, variant)


def runs(node: Platform) -> list[Platform]:
    """Return all platforms that *node* runs, best first."""
    node = normalize(node)
    names: list[tuple[str, str]]
    match node.architecture:
        case "amd64":
            names = [("amd64", node.variant), *(("amd64", older) for older in _older(node.variant, 1)), ("386", "")]
        case "arm":
            names = [("arm", node.variant), *(("arm", older) for older in _older(node.variant, 5))]
        case "arm64":
            names = [("arm64", variant) for variant in _arm64(node.variant)]
            names += [("arm", "v8"), *(("arm", older) for older in _older("v8", 5))]
        case other:
            names = [(other, node.variant)]
    return [normalize(Platform(node.os, architecture, variant)) for architecture, variant in names]


def choose(entries: Iterable[IndexEntry], node: Platform) -> list[IndexEntry]:
    """Return the entries that *node* can run, best first, without attestations."""
    order = {platform: rank for rank, platform in enumerate(runs(node))}
    ranked = []
    for entry in entries:
        if is_attestation(entry):
            continue
        rank = len(order) if entry.platform is None else order.get(normalize(entry.platform), -1)
        if rank >= 0:
            ranked.append((rank, entry))
    return [entry for _, entry in sorted(ranked, key=lambda pair: pair[0])]


def fits(platform: Platform, node: Platform) -> bool:
    """Return whether *node* runs images for *platform*."""
    return normalize(platform) in runs(node)


def _older(variant: str, oldest: int) -> list[str]:
    number = variant.removeprefix("v")
    if not number.isascii() or not number.isdigit() or len(number) > 2:
        return []
    return [f"v{older}" for older in range(int(number) - 1, oldest - 1, -1)]


def _arm64(variant: str) -> list[str]:
    """Return the arm64 variants that *variant* runs: v9.1 runs v9.1, v9, v8.6, v8.5, ..., v8."""
    major, _, minor = (variant or "v8").removeprefix("v").partition(".")
    if major not in ("8", "9") or (minor and minor not in "0123456789"):
        return [variant]
    steps = int(minor or 0)
    nine = [f"v9.{step}" for step in range(steps, -1, -1)] if major == "9" else []
    eights = min(steps + 5, NEWEST_ARM) if major == "9" else steps
    return [name.removesuffix(".0") for name in [*nine, *(f"v8.{step}" for step in range(eights, -1, -1))]]
