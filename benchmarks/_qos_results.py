"""Writes docs/qos-results.md and its plot from the figures of the benchmark `qos`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
COLOURS: Final = {"priority": "#8a8a8a", "qos-original": "#d08a2e", "qos": "#2e7fd0"}
HEAD: Final = """\
# QoS-driven scheduling: results

Written by `DOCS=1 make bench NAME=qos`; [qos.md](qos.md) explains the profiles, and
[examples/qos](../examples/qos/README.md) the scenarios. *priority* is `qos-measured`: kube-scheduler's defaults.
Availability is the share of their life that the pods of a controller ran, as mean and standard deviation over the
controllers of a class. A controller keeps its SLO if it is at most 0.005 below it at the end. *Violation* is the time below
that, *deficit* the integral of what was missing, both as means over controllers.

![Availability and evictions](qos-results.svg)

| scenario | policy | class | availability | keep the SLO | violation | deficit | evictions |
|---|---|---|---|---|---|---|---|
"""

Policies = Mapping[str, Mapping[str, Mapping[str, Any]]]


def write_results(
    figures: Policies, folder: Path = DOCS, published: Mapping[tuple[str, str], str] | None = None
) -> None:
    """Write the page and the plot of all scenarios and policies."""
    lines = []
    for name, policies in figures.items():
        for policy, classes in policies.items():
            for group, one in sorted(classes.items()):
                if not isinstance(one, Mapping):
                    continue
                lines.append(
                    f"| {name} | {policy} | {group} | {one['mean']:.3f} (sd {one['sd']:.3f}) | {one['met']:.0%} "
                    f"| {one['violation_seconds']:.0f} s | {one['deficit']:.1f} s | {classes['evictions']:.0f} |"
                )
    notes = [f"- {name}, {policy}: {text}." for (name, policy), text in (published or {}).items() if name in figures]
    page = HEAD + "\n".join(lines) + "\n\n## Published\n\n" + "\n".join(notes) + "\n"
    (folder / "qos-results.md").write_text(page)
    (folder / "qos-results.svg").write_text(_plot(figures))


def _plot(figures: Policies) -> str:
    """Return bars of availability by class, with the standard deviation as a line; evictions as numbers."""
    parts: list[str] = []
    y = 30
    for name, policies in figures.items():
        parts.append(f'<text x="10" y="{y}" font-weight="bold">{name}</text>')
        y += 8
        for policy, classes in policies.items():
            for group, one in sorted(classes.items()):
                if not isinstance(one, Mapping):
                    continue
                width, spread = 400 * one["mean"], 400 * one["sd"]
                parts.append(
                    f'<text x="10" y="{y + 12}">{policy} {group}</text>'
                    f'<rect x="170" y="{y}" width="{width:.1f}" height="14" fill="{COLOURS[policy]}"/>'
                    f'<line x1="{170 + width - spread:.1f}" x2="{170 + width + spread:.1f}" y1="{y + 7}" y2="{y + 7}" '
                    'stroke="#222" stroke-width="2"/>'
                )
                y += 18
            parts.append(f'<text x="600" y="{y - 6}">{classes["evictions"]:.0f} evictions</text>')
        y += 24
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {y}" font-family="sans-serif" font-size="12">\n'
        "<title>Availability by class and policy (bars), its standard deviation (lines), and evictions</title>\n"
        f'<rect width="720" height="{y}" fill="#fff"/>\n{body}\n</svg>\n'
    )
