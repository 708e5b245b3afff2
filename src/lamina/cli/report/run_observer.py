"""Observer of a simulated run that fills the record for a report."""

from typing import Any, Final

import msgspec

from lamina.evaluation.report.run_record import RunRecord
from lamina.evaluation.report.run_recorder import RunRecorder
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.run import SimulationResult
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_records import ImagesRemoved, LayerPulled, NodeJoined, PullDone, TraceRecord

HOLDINGS: Final = (NodeJoined, LayerPulled, PullDone, ImagesRemoved)
"""Records after which a node may hold other layers."""


class ReportObserver:
    """Passes trace records to a recorder, with the layers that nodes hold."""

    def __init__(self, *, detail: bool = True) -> None:
        """Without *detail* record the figures only: no pods and no map."""
        self._recorder = RunRecorder(detail=detail)

    def observe(self, now: float, record: TraceRecord, cluster: VirtualCluster) -> None:
        """Process one record of the run."""
        self._recorder.add(record)
        if isinstance(record, HOLDINGS) and self._recorder.follows(record.node) and record.node in cluster.nodes:
            self._recorder.hold(now, record.node, cluster.nodes[record.node].store.layers)

    def finish(
        self, result: SimulationResult, scenario: Scenario, figures: dict[str, Any], share: int = 1
    ) -> RunRecord:
        """Return the record; *share* is the number of runs with detail in the report."""
        layers = {
            str(layer.digest): (scenario.layer_names.get(layer.digest, ""), layer.size)
            for image in scenario.images
            for layer in image.layers
        }
        rows = (msgspec.structs.asdict(pod) for pod in result.pods)
        return self._recorder.finish(figures, rows, layers, share)
