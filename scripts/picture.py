"""
Draw docs/founding.svg, the first picture of the README, from a run of the founding scenario.

Run it again when the demo changes: ``make picture``.
"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from lamina.cli.demo.picture import picture
from lamina.cli.demo.tour import examples, steps
from lamina.cli.explain.decision_table import headline, show_nodes
from lamina.cli.output.screen import Screen
from lamina.simulator.workloads import load_scenario

WIDTH = 104


def draw() -> str:
    """Draw the last step of the founding story."""
    console = Console(record=True, force_terminal=True, width=WIDTH, file=io.StringIO(), highlight=False)
    screen = Screen(console)
    scenario = load_scenario(examples() / "founding" / "scenario.yaml")
    step = steps(scenario, seed=0)[-1]
    console.print(f"[bold]{step.decision.pod}[/bold] needs {step.image.names[0]}; no free node has it\n")
    console.print(picture(screen, step.nodes, scenario.images, step.image, scenario.layer_names))
    show_nodes(step.decision, screen, facts=False)
    console.print(headline(step.decision, screen))
    # With a fixed id and without web fonts, the same run gives the same file, and the file loads nothing.
    svg = console.export_svg(title="lamina demo", unique_id="founding")
    return re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)


def main() -> int:
    """Write the picture."""
    target = Path(__file__).resolve().parents[1] / "docs" / "founding.svg"
    target.write_text(draw(), encoding="utf-8")
    print(f"wrote {target.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
