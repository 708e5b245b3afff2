"""
TargetLoadPacking: fill nodes up to a share of their cpu, and avoid those beyond it.

    p     = 100 · (cpu in use + what the pod is expected to use) / capacity          X: the target
    score = X + (100 - X) p/X     up to X;     X (100 - p)/(100 - X)     from there to 100, and 0 beyond

The formula is that of the plugin of this name among Kubernetes' scheduler plugins. A container is expected to use its limit;
without one, 1.5 times its request; and without that, a core. Pods that came since cpu was measured count like that as well. A
node counts as the mean of the others as far as nothing is known of it (*compatible*: it scores nothing).
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
    """Ranks by how near cpu in use comes to a target."""

    name: ClassVar = NAME
    Args: ClassVar = PackingArgs
    reads: ClassVar = Reads(rows=READS)

    def __init__(self, context: PluginContext, args: PackingArgs) -> None:
        """Pack as *args* say."""
        self._usage = context.usage
        self._observer = UtilizationReader(context, args.source, dated=not args.compatible, unasked=self._unasked)
        self._args = args

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by what they are expected to use."""
        return self._expected(pod)

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Find out how full each node would be; what that is worth is up to `normalize`, which knows the feasible nodes."""
        observed = self._observer.look(nodes, CPU, self._expected(pod))
        percent = 100.0 * observed.mean
        best = self._args.target_utilization
        rising = best + (MAX_SCORE - best) * percent / best
        falling = best * (MAX_SCORE - percent) / (MAX_SCORE - best)
        # As shares: of a hundred times a share floats may make a little more than it is, and a node at its target is not to
        # be beyond it. The best there is remains the best there can be, likewise.
        near = observed.mean <= best / 100.0
        state[SCORES] = ScoresWithConfidence(np.where(near, np.minimum(rising, MAX_SCORE), falling), observed.trust)
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Score; nodes of which little is known count as the mean of the feasible ones, as far as they are not believed."""
        judged = state[SCORES]
        if self._args.compatible:
            return np.where(judged.trust > 0, rounded(judged.points), 0)
        return settle([judged], feasible)

    def _expected(self, pod: Pod) -> float:
        """Return the cpu a pod is expected to use, its overhead (what it asks for beyond its containers) included."""
        words = declared_cpu(pod)
        overhead = dict(pod.requests).get(CPU, 0) - words.requests
        return self._used(words.limits, words.unlimited, words.silent) + overhead

    def _unasked(self, nodes: NodeView) -> Floats:
        """Return what pods that were not measured yet are expected to use beyond what they asked for."""
        coming = self._usage.coming(nodes)
        return self._used(coming.limits, coming.unlimited, coming.silent) - coming.requests

    def _used(self, limits: Amount, unlimited: Amount, silent: Amount) -> Amount:
        return limits + unlimited * self._args.default_requests_multiplier + silent * self._args.default_requests
