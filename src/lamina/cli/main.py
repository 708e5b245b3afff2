"""
The ``lamina`` command.

Commands are imported when they are called. ``lamina --help`` lists them from the table below and imports nothing else,
because the command line should start quickly.

Exit codes: 0 done, 1 the run found a problem, 2 bad usage or input (one line each: what, where, what to try), 130 Ctrl-C,
143 SIGTERM.
"""

import importlib
import os
import sys
from typing import Final

import click

from lamina.cli.output import interruption
from lamina.cli.output.command_name import command_name, name_examples

# name → (module, summary); the module defines a click command of that name, with _ for -.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "demo": (
        "lamina.cli.demo.command",
        "Show three small clusters step by step, and a first study, in under a minute.",
    ),
    "simulate": ("lamina.cli.simulate.command", "Run a scenario in virtual time; write trace and summary."),
    "compare": ("lamina.cli.compare.command", "Run a scenario under several profiles and seeds; print a table."),
    "apiserver": (
        "lamina.cli.apiserver.command",
        "Serve a Kubernetes API in front of a simulated cluster, for any scheduler or client.",
    ),
    "evaluate": ("lamina.cli.evaluate.command", "Run a designed study; write its results, a digest and a report."),
    "explain": ("lamina.cli.explain.command", "Explain why a pod was placed on its node, or why it is pending."),
    "image": ("lamina.cli.image.command", "Show the layers of an image, and which nodes hold how much of it."),
    "catalog": ("lamina.cli.catalog.command", "Collect, describe or generate catalogs of image layers."),
    "batsim-scheduler": ("lamina.cli.batsim_scheduler", "Decide for Batsim with Lamina or kube-scheduler."),
    "scheduler": ("lamina.cli.scheduler", "Schedule pods in a real cluster, or observe what Lamina would save."),
    "qos": ("lamina.cli.qos.command", "Show how controllers keep their promised availability."),
    "replay": ("lamina.cli.replay", "Replay a scheduler's recording and check that every decision is the same."),
    "extender": ("lamina.cli.extender", "Serve scheduling agents to the stock kube-scheduler."),
    "new-agent": ("lamina.cli.new_agent.command", "Create a package for your own scheduling agent."),
    "annotate": ("lamina.cli.annotate", "Write the usage, allocation or congestion of nodes into their annotations."),
    "node-agent": (
        "lamina.cli.node_agent.command",
        "Report to the cluster which image layers this node holds, or print them.",
    ),
    "doctor": ("lamina.cli.doctor", "Check runtime, cluster and registries, and say what to fix."),
    "profiles": ("lamina.cli.profiles", "List the profiles that come with Lamina, or print one."),
    "validate": (
        "lamina.cli.validate.command",
        "Check files that Lamina reads: scenarios, configurations, catalogs, traces.",
    ),
    "version": ("lamina.cli.version", "Print the version."),
}

# Old names work for one release and are not listed.
RENAMED: Final = {"agent": "node-agent"}

# numpy's BLAS starts a thread for each core and uses them for vectors of more than 10,000 nodes. On a busy machine the
# threads wait for each other: a decision took 45 ms instead of 0.6 ms. Their number also changes the last digit of sums.
BLAS_THREADS: Final = "OPENBLAS_NUM_THREADS"

EXAMPLES: Final = """\b
Examples:
  lamina demo
  lamina simulate examples/founding/scenario.yaml --out /tmp/founding
  lamina explain p3 --trace /tmp/founding
"""


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command and return it; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return name_examples(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command by name. Raises UsageError with the nearest name for an unknown one."""
        name = args[0] if args else ""
        if name in RENAMED:
            if not ctx.resilient_parsing:
                click.echo(f"lamina {name} was renamed; use lamina {RENAMED[name]}", err=True)
            return super().resolve_command(ctx, [RENAMED[name], *args[1:]])
        if name and not name.startswith("-") and name not in COMMANDS:
            from lamina.model.conversion import suggest

            raise click.UsageError(f"there is no command {name!r}; {suggest(name, COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import version

    click.echo(f"lamina {version('lamina')}")
    ctx.exit()


@click.group(cls=LazyGroup, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version and exit."
)
def lamina() -> None:
    """Place Kubernetes pods where their container layers already are, and measure the gain."""


def main() -> None:
    """Run the command line; bad input prints one line per mistake and no traceback."""
    interruption.listen()
    os.environ.setdefault(BLAS_THREADS, "1")
    try:
        code = run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        code = _cannot_write(error)
    sys.exit(code)


def run() -> int:
    """Run the command line and return its exit code. Raises OSError if standard output cannot be written."""
    try:
        code = name_examples(lamina)(prog_name=command_name(), complete_var="_LAMINA_COMPLETE", standalone_mode=False)
    except click.exceptions.Abort as stop:
        click.echo(interruption.message(stop.__cause__), err=True)
        return interruption.INTERRUPTED
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except interruption.Terminated as stop:
        click.echo(interruption.message(stop), err=True)
        return interruption.TERMINATED
    except SystemExit as stop:
        # Click raises this for a closed pipe only; no command exits this way.
        raise BrokenPipeError from stop
    except Exception as error:
        from lamina.model.errors import LaminaError

        if not isinstance(error, LaminaError):
            raise
        for line in str(error).splitlines():
            click.echo(line, err=True)
        return error.exit_code
    # `ctx.exit` makes click return an exit code; every other command returns None.
    return code if isinstance(code, int) else 0


def _cannot_write(error: OSError) -> int:
    """Report why output ended early and return the exit code; a closed pipe (``| head``) is not an error."""
    # Buffered output cannot be written either: without this, the interpreter would try again at exit.
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives as long as the process
    if isinstance(error, BrokenPipeError):
        return 0
    click.echo(f"lamina: output cannot be written: {error.strerror or error}", err=True)
    return 2


if __name__ == "__main__":
    main()
