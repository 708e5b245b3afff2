"""
TargetLoadPacking: fills nodes up to a target cpu usage, and avoids nodes beyond it.

    p     = 100 · (cpu in use + expected usage of the pod) / capacity          X: the target in percent
    score = X + (100 - X) p/X     up to X;     X (100 - p)/(100 - X)     from there to 100, and 0 beyond

The formula is that of the plugin of the same name in kubernetes-sigs/scheduler-plugins. The expected usage of a
container is its limit; without a limit, 1.5 times its request; without a request, one core. Pods that arrived since
the measurement are included in this way. A node without data gets the mean of the others (*compatible*: it scores 0).
"""

from collections.abc import Hashable
from typing import ClassVar, Final, TypeVar

import numpy as np

from lamina.model.pod import Pod
from lamina.model.resources import CPU
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.normalize import unscored
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.plugins.agents.safe.args import PackingArgs
from lamina.scheduling.plugins.agents.safe.confidence import ScoresWithConfidence, rounded, settle
from lamina.scheduling.plugins.agents.safe.utilization import READS, UtilizationReader
from lamina.scheduling.state.cluster_usage import declared_cpu
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "TargetLoadPacking"

Amount = TypeVar("Amount", float, Floats)

SCORES: Final[StateKey[ScoresWithConfidence]] = StateKey("target-load-packing/judged")


class TargetLoadPacking:
    """Scores nodes by the distance of their cpu usage from a target."""

    name: ClassVar = NAME
    Args: ClassVar = PackingArgs
    reads: ClassVar = Reads(rows=READS)

    def __init__(self, context: PluginContext, args: PackingArgs) -> None:
        """Use the target of *args*."""
        self._usage = context.usage
        self._reader = UtilizationReader(context, args.source, dated=not args.compatible, unasked=self._unasked)
        self._args = args

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's expected cpu usage."""
        return self._expected(pod)

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Compute the usage of each node with the pod; `normalize`, which knows feasible nodes, computes the scores."""
        observed = self._reader.read(nodes, CPU, self._expected(pod))
        percent = 100.0 * observed.mean
        best = self._args.target_utilization
        rising = best + (MAX_SCORE - best) * percent / best
        falling = best * (MAX_SCORE - percent) / (MAX_SCORE - best)
        # Compared as shares: 100 times a share can round up, and a node at its target must not be beyond it. For the
        # same reason the score is capped.
        near = observed.mean <= best / 100.0
        state[SCORES] = ScoresWithConfidence(np.where(near, np.minimum(rising, MAX_SCORE), falling), observed.trust)
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Compute the scores; where trust is below 1, mix in the mean of the feasible nodes."""
        judged = state[SCORES]
        if self._args.compatible:
            return np.where(judged.trust > 0, rounded(judged.points), 0)
        return settle([judged], feasible)

    def _expected(self, pod: Pod) -> float:
        """Return a pod's expected cpu usage in millicores, including its overhead."""
        words = declared_cpu(pod)
        overhead = dict(pod.requests).get(CPU, 0) - words.requests
        return self._used(words.limits, words.unlimited, words.silent) + overhead

    def _unasked(self, nodes: NodeView) -> Floats:
        """Return the expected usage of unmeasured pods beyond their requests."""
        coming = self._usage.coming(nodes)
        return self._used(coming.limits, coming.unlimited, coming.silent) - coming.requests

    def _used(self, limits: Amount, unlimited: Amount, silent: Amount) -> Amount:
        return limits + unlimited * self._args.default_requests_multiplier + silent * self._args.default_requests
