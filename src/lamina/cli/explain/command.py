"""``lamina explain``: why a node was chosen (scores per plugin, runner-up, margin), or why a pod is pending."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option
from lamina.cli.options.standard_input import InputFile

if TYPE_CHECKING:
    from lamina.model.decision import Decision

EXAMPLES: Final = """\b
Examples:
  lamina explain web-0 -n shop
  lamina explain shop/web-0 --scheduler http://127.0.0.1:10259
  lamina simulate examples/founding/scenario.yaml --detail full --out /tmp/founding
  lamina explain p3 --trace /tmp/founding
  lamina explain default/p3 --trace /tmp/founding/trace.jsonl.zst --attempt 1 -o json

On a cluster the explanation is read from the pod: its scheduler writes it with the binding. The scheduler keeps more
detail for a while. It serves that on loopback only, so forward its port and name it with --scheduler.
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("pod")
@click.option("--trace", type=InputFile(), help="A trace, or the folder `lamina simulate --out` wrote it to.")
@click.option("--attempt", type=click.IntRange(min=1), help="Attempt in the trace to explain; default: the last.")
@click.option("-n", "--namespace", default="", help="Namespace of a pod on a cluster; default: the context's.")
@click.option("--kubeconfig", type=InputFile(), help="Kubeconfig of the cluster; default: as kubectl.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--scheduler", "url", default="", help="Address of a scheduler's endpoints, for full detail.")
@output_option("table", "json", "yaml")
def explain(  # noqa: PLR0913, PLR0917 - one parameter for each option
    pod: str,
    trace: Path | None,
    attempt: int | None,
    namespace: str,
    kubeconfig: Path | None,
    context: str,
    url: str,
    output: str,
) -> None:
    """Explain why POD (name, or namespace/name) was placed on its node, or why it is pending."""
    from lamina.model.errors import InputError

    if trace is not None:
        found, profile = _from_trace(pod, trace, attempt, namespace)
        _show(found, output, profile=profile)
        return
    if attempt is not None:
        raise InputError.one("--attempt", "only a trace keeps earlier attempts; add --trace FILE")
    from lamina.cli.explain.live_lookup import query_pod, query_scheduler

    told = query_pod(pod, namespace, kubeconfig, context)
    decision = query_scheduler(url, told.pod) if url else None
    if decision is not None:
        _show(decision, output, more="a scheduler started with -v 10 keeps every node and every layer")
    elif output == "table":
        from lamina.cli.explain.pod_status_text import print_pod_status

        print_pod_status(told)
        if url:
            click.echo(f"{url} has no decision about this pod", err=True)
    else:
        _print(told, output)


def _from_trace(pod: str, trace: Path, attempt: int | None, namespace: str) -> "tuple[Decision, str]":
    """Return the decision about a pod, and the name of the run's profile."""
    from lamina.cli.simulate.result_names import TRACE
    from lamina.model.conversion import suggest
    from lamina.model.errors import InputError
    from lamina.trace.trace_reader import read_trace
    from lamina.trace.trace_records import PodArrived, PodDecided, TraceHeader

    path = trace / TRACE if trace.is_dir() else trace
    key = pod if "/" in pod else f"{namespace or 'default'}/{pod}"
    known: set[str] = set()
    told = []
    profile = ""
    for record in read_trace(path):
        if isinstance(record, TraceHeader):
            profile = record.profile
        elif isinstance(record, PodArrived):
            known.add(record.pod)
        elif isinstance(record, PodDecided) and record.decision.pod == key:
            told.append(record.decision)
    if key not in known:
        hint = suggest(key, sorted(known)) if known else "there are no pods in it"
        raise InputError.one(str(path), f"there is no pod {key!r} in this trace; {hint}")
    if not told:
        raise InputError.one(str(path), f"has no decision about {key}: the scheduler never tried it")
    chosen = [one for one in told if attempt in (None, one.attempt)]
    if not chosen:
        attempts = ", ".join(str(one.attempt) for one in told)
        raise InputError.one("--attempt", f"{key} has no attempt {attempt}; this trace has: {attempts}")
    return chosen[-1], profile


def _show(decision: "Decision", output: str, *, profile: str = "", more: str = "") -> None:
    if output == "table":
        from lamina.cli.explain.decision_table import MORE, print_decision

        print_decision(decision, profile=profile, more=more or MORE)
    else:
        _print(decision, output)


def _print(found: object, output: str) -> None:
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        click.echo(msgspec.yaml.encode(found), nl=False)
