"""The file of ``--report``: its option, its place, and its content."""

import shlex
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lamina.cli.options.standard_input import OutputPath
from lamina.cli.output import interruption
from lamina.cli.output.command_name import NAME
from lamina.model.errors import InputError

if TYPE_CHECKING:
    from lamina.evaluation.comparison import ProfileComparison
    from lamina.evaluation.report.run_record import RunRecord

REPORT: Final = "report.html"
HERE: Final = "."
"""Value of the option without a file name."""
SUFFIXES: Final = (".html", ".htm")


def report_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option ``--report [FILE]``."""
    return click.option(
        "--report",
        is_flag=False,
        flag_value=HERE,
        type=OutputPath(path_type=Path),
        metavar="[FILE.html]",
        help=f"Write {what} as one HTML file that works offline; default: {REPORT} in the --out folder, or here. "
        "Write the file name, or other options, after it.",
    )


def report_path(report: Path | None, out: Path | None) -> Path | None:
    """Return the file to write; None without the option. Raises InputError for a name that no report should have."""
    if report is None:
        return None
    if report == Path(HERE):
        return (Path() if out is None else out) / REPORT
    if report.suffix.lower() not in SUFFIXES:
        message = f"{str(report)!r} does not end with .html; write the scenario first, or name a file such as {REPORT}"
        raise InputError.one("--report", message)
    if not report.parent.is_dir():
        raise InputError.one("--report", f"there is no folder {str(report.parent)!r}; create it, or name another file")
    return report


def write_report(
    path: Path,
    command: Sequence[str],
    records: Sequence["RunRecord"],
    compared: "ProfileComparison",
    metrics: Sequence[str],
) -> None:
    """Write the report about these runs; *command* is the command line that makes it again, without the program."""
    from lamina.evaluation.report.report_page import ReportNotes, report_page
    from lamina.trace.trace_writer import atomic_write

    about = ReportNotes(shlex.join([NAME, *command, "--report"]), metadata.version("lamina"))
    atomic_write(path, report_page(records, compared, metrics, about))
    interruption.keep(path)
