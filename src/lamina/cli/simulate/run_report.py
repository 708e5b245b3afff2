"""The report of `lamina simulate`: observes one run and writes its page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lamina.cli.report.report_file import write_report
from lamina.cli.report.run_observer import ReportObserver
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.run import SimulationResult
from lamina.simulator.run.simulation import RunObserver
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_records import TraceRecord


class RunReport:
    """The report of one run; without a file it does nothing."""

    def __init__(self, path: Path | None, command: Sequence[str]) -> None:
        """Set the file, and the command line that repeats the run."""
        self._path = path
        self._command = list(command)
        self._observer = ReportObserver()

    def beside(self, other: RunObserver | None) -> RunObserver | None:
        """Return an observer that also fills the report."""
        if self._path is None:
            return other
        if other is None:
            return self._observer.observe

        def both(now: float, record: TraceRecord, cluster: VirtualCluster) -> None:
            self._observer.observe(now, record, cluster)
            other(now, record, cluster)

        return both

    def write(self, result: SimulationResult, scenario: Scenario, figures: dict[str, Any]) -> None:
        """Write the file, if one is wanted."""
        if self._path is None:
            return
        from lamina.cli.compare.comparison_notes import with_unproven, with_unsupported
        from lamina.cli.compare.comparison_table import shown_metrics
        from lamina.evaluation import comparison
        from lamina.evaluation.run_metrics import METRICS, class_metrics

        profile = figures["profile"]
        metrics = (*METRICS, *class_metrics([figures]))
        compared = comparison.compare([comparison.Run(profile, figures["seed"], figures)], profile, metrics)
        compared = with_unproven(with_unsupported(compared), [figures])
        record = self._observer.finish(result, scenario, figures)
        write_report(self._path, self._command, [record], compared, shown_metrics(compared))
