"""The files of a run: trace, summary, Batsim's tables and the decision log; either all of them or none."""

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from lamina.cli.output import interruption
from lamina.cli.simulate.result_names import JOBS, MACHINES, SCHEDULE, SUMMARY, TRACE
from lamina.trace.trace_writer import AtomicFile, TraceWriter

if TYPE_CHECKING:
    from lamina.simulator.run import SimulationResult
    from lamina.simulator.run.batsim_files import JobNotes
    from lamina.simulator.workloads import Scenario


class RunFiles:
    """The files of a run: either all of them, after the run has ended, or none."""

    def __init__(self, path: Path | None, decisions: Path | None = None) -> None:
        """Open trace and decision log under temporary names; None as *path* writes no files to a folder."""
        self._path = path
        self._drafts: list[AtomicFile] = []
        self.decisions: AtomicFile | None = None
        """Receives the decision log; None if it is not written."""
        if decisions is not None:
            self.decisions = AtomicFile(decisions)
            self._drafts.append(self.decisions)
        self.trace: TraceWriter | None = None
        if path is not None:
            self.trace = TraceWriter(path / TRACE)

    def fill(
        self,
        result: "SimulationResult",
        scenario: "Scenario",
        figures: dict[str, Any],
        notes: "JobNotes | None" = None,
    ) -> None:
        """Write all files, and only then give them their final names; *notes* are for the table of jobs."""
        if self._path is not None and self.trace is not None:
            self._write_folder(self._path, result, scenario, figures, notes)
            self.trace.close()
            interruption.keep(self._path / TRACE)
        while self._drafts:
            self._drafts[0].keep()
            interruption.keep(self._drafts[0].path)
            del self._drafts[0]

    def _write_folder(
        self,
        path: Path,
        result: "SimulationResult",
        scenario: "Scenario",
        figures: dict[str, Any],
        notes: "JobNotes | None",
    ) -> None:
        from lamina.simulator.run.batsim_files import NO_NOTES, jobs_csv, machine_states_csv, schedule_csv

        notes = NO_NOTES if notes is None else notes
        files = {
            JOBS: jobs_csv(result, scenario, notes),
            SCHEDULE: schedule_csv(result, scenario, notes),
            MACHINES: machine_states_csv(result),
            SUMMARY: figures_json(figures),
        }
        for name, content in files.items():
            draft = AtomicFile(path / name)
            self._drafts.append(draft)
            draft.write(content)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove incomplete files; a trace that was closed is complete."""
        if self.trace is not None:
            self.trace.discard()
        for draft in self._drafts:
            draft.discard()


def figures_json(figures: dict[str, Any]) -> bytes:
    """Return a summary as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n"
