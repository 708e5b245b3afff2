"""``lamina batsim-scheduler``: decide for Batsim, with a profile of Lamina's or another scheduler of Kubernetes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.standard_input import OutputPath, ProfileName

if TYPE_CHECKING:
    from lamina.simulator.decision_process.gang_turns import GangPolicy
    from lamina.simulator.run.run_parts import DeciderFactory

ENDPOINT: Final = "tcp://127.0.0.1:28000"
TIMEOUT: Final = "5m"

EXAMPLES: Final = f"""\b
Examples:
  lamina batsim-scheduler
  lamina batsim-scheduler --profile kube-default --seed 7
  lamina batsim-scheduler --scheduler kube-scheduler --gangs refuse
  lamina batsim-scheduler -s tcp://127.0.0.1:28001 --messages run.messages
  lamina simulate my.yaml --scheduler "batsim:lamina batsim-scheduler --profile lamina-balanced"

It listens, and Batsim connects: `batsim -s {ENDPOINT} -p platform.xml -w workload.json`. It ends with the simulation.
Jobs of several resources are placed as a whole: see docs/batsim.md.
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.option(
    "-s",
    "--socket-endpoint",
    "endpoint",
    default=ENDPOINT,
    show_default=True,
    metavar="ENDPOINT",
    help="Where to listen; tcp://127.0.0.1:* takes any free port.",
)
@click.option(
    "--profile", type=ProfileName(), metavar="FILE|NAME", help="Scheduler configuration.  [default: lamina-balanced]"
)
@click.option(
    "--scheduler",
    metavar="NAME|COMMAND|FILE",
    help="Decide with another scheduler of Kubernetes, which Lamina starts; as for `lamina simulate`.",
)
@click.option("--settle", metavar="METHOD", help="How Lamina knows that this scheduler has finished.")
@click.option(
    "--gangs",
    type=click.Choice(["one-at-a-time", "refuse", "scheduler"]),
    default="one-at-a-time",
    show_default=True,
    help="Jobs of several resources: placed one after the other, each as a whole; rejected; or left to a scheduler that "
    "knows gangs.",
)
@click.option("--seed", default=0, show_default=True, help="Seed for choosing between nodes of equal score.")
@click.option(
    "--timeout",
    default=TIMEOUT,
    show_default=True,
    metavar="DURATION",
    help="Longest time between two messages of the simulator; 0 waits for ever.",
)
@click.option(
    "--messages", type=OutputPath(path_type=Path, dir_okay=False), metavar="FILE", help="Record all messages in FILE."
)
def batsim_scheduler(  # noqa: PLR0913, PLR0917 - one for each option
    endpoint: str,
    profile: str | None,
    scheduler: str | None,
    settle: str | None,
    gangs: "GangPolicy",
    seed: int,
    timeout: str,
    messages: Path | None,
) -> None:
    """Be the decision process of one Batsim simulation."""
    from lamina.apiserver.batsim.decision_server import DecisionServer
    from lamina.simulator.decision_process.decision_process import DecisionProcess

    seconds = _timeout(timeout)
    _check(profile, scheduler, settle)
    with ExitStack() as stack:
        make_decider, name = stack.enter_context(_decided(profile, scheduler, settle, seed))
        record = stack.enter_context(_recorded(messages, name, seed))
        server = DecisionServer(endpoint, seconds)
        stack.callback(server.close)
        click.echo(f"{name} listens at {server.endpoint}", err=True)
        process = DecisionProcess(make_decider, gangs)
        server.serve(process, record)
    click.echo(f"the simulation has ended after {process.messages} messages", err=True)


def _check(profile: str | None, scheduler: str | None, settle: str | None) -> None:
    from lamina.model.errors import InputError

    if profile is not None and scheduler is not None:
        raise InputError.one("--scheduler", "not together with --profile: one scheduler decides; use one of them")
    if settle is not None and scheduler is None:
        raise InputError.one("--settle", "is about a scheduler that --scheduler names; add it")


def _timeout(text: str) -> float:
    from lamina.model.duration import seconds
    from lamina.model.errors import InputError

    try:
        return seconds(text) or float("inf")
    except ValueError as error:
        raise InputError.one("--timeout", str(error)) from error


@contextmanager
def _decided(
    profile: str | None, scheduler: str | None, settle: str | None, seed: int
) -> Iterator[tuple["DeciderFactory", str]]:
    """Yield what makes the decider, and its name; in the end, stop the scheduler if it is another program."""
    if scheduler is None:
        from lamina.cli.options.scheduler_profile import configuration, warned
        from lamina.scheduling.config.named_profiles import DEFAULT, current_name
        from lamina.simulator.run.simulation import loop_decider

        chosen = current_name(profile or DEFAULT)
        config = warned(configuration(chosen))
        yield lambda _: loop_decider(config, seed), chosen
        return
    from lamina.apiserver.batsim.batsim_peer import is_batsim
    from lamina.apiserver.facade_run import FacadeRun
    from lamina.apiserver.foreign_run import ATTACH, chosen_scheduler
    from lamina.model.errors import InputError

    if is_batsim(scheduler) or scheduler == ATTACH:
        message = "is a scheduler of Kubernetes here; name one that Lamina starts, such as kube-scheduler"
        raise InputError.one("--scheduler", message)
    found = chosen_scheduler(scheduler, settle or "")
    with FacadeRun(found.profile, found.command, seed=seed) as run:
        yield run.make_decider, found.profile.name
        figures = run.figures
        if figures is not None and not figures.proven:
            click.echo("not proven: nothing shows for certain that the scheduler had finished each time", err=True)


@contextmanager
def _recorded(messages: Path | None, name: str, seed: int) -> Iterator[Callable[[bytes, bytes], object] | None]:
    """Yield what records a message and its answer; None if nothing is recorded."""
    if messages is None:
        yield None
        return
    from lamina.model.errors import InputError
    from lamina.simulator.batsim.message_log import MessageLogHeader, MessageLogWriter

    try:
        file = messages.open("wb")
    except OSError as error:
        raise InputError.one("--messages", f"{messages} cannot be written: {error.strerror}") from None
    with file:
        writer = MessageLogWriter(file, MessageLogHeader(scheduler=name, seed=seed))
        yield writer.write
