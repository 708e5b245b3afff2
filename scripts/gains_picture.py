"""
Draw docs/gains.svg, the README's chart of bytes saved per scenario, from the table in docs/policy.md.

Run it again after the study: ``make picture``.
"""

import re
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROW = re.compile(r"^\| (\d[a-d]?) ([^|]+?) \| ([\d.]+) \| ([\d.]+) \|", re.MULTILINE)

LEFT, WIDTH, LINE, TOP = 250, 420, 22, 64
HELPS = 0.9
"""Ratio from which a bar is grey: the gain is too small to mention."""


class Bar(NamedTuple):
    """One scenario: bytes downloaded relative to kube-default, under lamina-balanced and with whole images only."""

    name: str
    layers: float
    images: float


def read(text: str) -> list[Bar]:
    """Return the scenarios of the page, in its order."""
    return [Bar(f"{number} {name}", float(layers), float(images)) for number, name, layers, images in ROW.findall(text)]


def draw(bars: list[Bar]) -> str:
    """Return the chart: a bar per scenario, a tick for whole images only, a line for kube-default."""
    height = TOP + LINE * len(bars) + 16
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 80}" height="{height}" '
            'font-family="sans-serif" font-size="12">'
        ),
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        (
            '<text x="12" y="22" font-size="14" font-weight="bold">Bytes downloaded with lamina-balanced, '
            "kube-default = 1.00</text>"
        ),
        (
            '<text x="12" y="42" fill="#555555">less is better; tick: the same policy knowing whole images only; '
            "grey: no gain worth mentioning</text>"
        ),
    ]
    for number, bar in enumerate(bars):
        y = TOP + LINE * number
        tick = LEFT + bar.images * WIDTH
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(bar.name)}</text>',
            (
                f'<rect x="{LEFT}" y="{y}" width="{bar.layers * WIDTH:.0f}" height="15" '
                f'fill="{"#2f7fc1" if bar.layers < HELPS else "#b0b0b0"}"/>'
            ),
            f'<line x1="{tick:.0f}" x2="{tick:.0f}" y1="{y - 2}" y2="{y + 17}" stroke="#222222" stroke-width="2"/>',
            f'<text x="{LEFT + max(bar.layers, bar.images) * WIDTH + 6:.0f}" y="{y + 12}">{bar.layers:.2f}</text>',
        ]
    edge = LEFT + WIDTH
    parts.append(
        f'<line x1="{edge}" x2="{edge}" y1="{TOP - 8}" y2="{height - 10}" stroke="#c0392b" stroke-dasharray="4"/>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> int:
    """Write the chart."""
    target = DOCS / "gains.svg"
    target.write_text(draw(read((DOCS / "policy.md").read_text(encoding="utf-8"))), encoding="utf-8")
    print(f"wrote {target.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
