"""``lamina replay``: run the scheduling core on a recording of a live scheduler, and compare every decision."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option
from lamina.cli.options.standard_input import InputFile

if TYPE_CHECKING:
    from lamina.model.command_outcome import CommandOutcome
    from lamina.services.scheduler.replayer import ReplayDifference, ReplayResult

EXAMPLES: Final = """\b
Examples:
  lamina scheduler --record-dir /tmp/recordings
  lamina replay /tmp/recordings/lamina-20261118T063155Z-1f2e3d4c-000001.lamrec
  curl -so events.lamrec http://127.0.0.1:10259/debug/events
  lamina replay events.lamrec -o json

Exit code 0: every decision is the same. 1: a decision differs, and both versions are shown. 2: FILE cannot be replayed:
it is not a recording, is damaged, or names a plugin that is not installed here. It binds nothing and needs no cluster.
"""

WORDS: Final = {
    "commands": "the decision differs",
    "ties": "the tied nodes differ",
    "attempts": "the number of attempted pods differs",
    "error": "the core raised an error",
}


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("file", type=InputFile())
@output_option("table", "json")
@click.pass_context
def replay(ctx: click.Context, file: Path, output: str) -> None:
    """Replay FILE, a scheduler's recording, and report whether every decision is the same."""
    from lamina.scheduling.plugins.in_tree import registry
    from lamina.services.scheduler.replayer import replay_recording as played
    from lamina.trace.recording_reader import read_recording

    found = played(str(file), read_recording(file), registry())
    if output == "json":
        click.echo(msgspec.json.encode(found))
    else:
        _show(found)
    ctx.exit(0 if found.equal else 1)


def _show(found: "ReplayResult") -> None:
    from datetime import UTC, datetime

    _say(f"recorded   {datetime.fromtimestamp(found.started, UTC):%Y-%m-%d %H:%M:%S} UTC by lamina {found.lamina}")
    _say(f"events     {found.events}")
    _say(f"decisions  {found.decisions}")
    _say(f"equal      {'yes' if found.equal else 'no'}")
    if not found.exact:
        _say(f"inexact    these plugins may keep state that is not recorded: {', '.join(found.lost)}")
    if found.difference is not None:
        _say()
        _show_difference(found.difference)


def _show_difference(one: "ReplayDifference") -> None:
    _say(f"decision {one.decision}, at {one.at:.6f}: {WORDS[one.why]}")
    if one.message:
        _say(f"  {one.message}")
    else:
        _show_outcomes("recorded", one.recorded)
    if one.replayed or not one.message:
        _show_outcomes("replayed", one.replayed)


def _show_outcomes(title: str, outcomes: "tuple[CommandOutcome, ...]") -> None:
    for line in [str(outcome) for outcome in outcomes] or ["nothing"]:
        _say(f"  {title}  {line}")


def _say(line: str = "") -> None:
    """Print one line without markup or line breaks: names and messages come from a file that may be untrusted."""
    from lamina.cli.output.screen import Screen, literal

    Screen().console.print(literal(line.replace("\n", " ")), soft_wrap=True, emoji=False)
