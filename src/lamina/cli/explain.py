"""``lamina explain``: why this node, per plugin, runner-up, how close; or why pending, in kube-scheduler's words."""

from pathlib import Path
from typing import Final

import click
import msgspec

EXAMPLES: Final = """\b
Examples:
  lamina simulate examples/founding/scenario.yaml --detail full --out /tmp/founding
  lamina explain p3 --trace /tmp/founding
  lamina explain default/p3 --trace /tmp/founding/trace.jsonl.zst --attempt 1 -o json
"""


@click.command(epilog=EXAMPLES)
@click.argument("pod")
@click.option(
    "--trace",
    required=True,
    type=click.Path(path_type=Path),
    help="A trace, or the folder `lamina simulate --out` wrote it to.",
)
@click.option("--attempt", type=click.IntRange(min=1), help="Which attempt to tell of; default: the last one.")
@click.option("-o", "output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def explain(pod: str, trace: Path, attempt: int | None, output: str) -> None:
    """Tell why POD (name, or namespace/name) went where it went, or why it waits."""
    from lamina.cli.simulate import TRACE
    from lamina.model.errors import InputError
    from lamina.model.schema import suggest
    from lamina.trace.reader import read_trace
    from lamina.trace.records import Decided, PodArrived

    path = trace / TRACE if trace.is_dir() else trace
    key = pod if "/" in pod else f"default/{pod}"
    known: set[str] = set()
    told = []
    for record in read_trace(path):
        if isinstance(record, PodArrived):
            known.add(record.pod)
        elif isinstance(record, Decided) and record.decision.pod == key:
            told.append(record.decision)
    if key not in known:
        hint = suggest(key, sorted(known)) if known else "there are no pods in it"
        raise InputError.one(str(path), f"there is no pod {key!r} in this trace: {hint}")
    if not told:
        raise InputError.one(str(path), f"no decision about {key} is in this trace: it was never looked at")
    chosen = [one for one in told if attempt in (None, one.attempt)]
    if not chosen:
        attempts = ", ".join(str(one.attempt) for one in told)
        raise InputError.one("--attempt", f"{key} has no attempt {attempt}; told are: {attempts}")
    decision = chosen[-1]
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(decision), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(decision), nl=False)
    else:
        from lamina.cli.verdicts import tell

        tell(decision)
