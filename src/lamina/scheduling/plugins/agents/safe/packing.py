"""
TargetLoadPacking: fill nodes up to a share of their cpu, and avoid those beyond it.

    p     = 100 · (cpu in use + what the pod is expected to use) / capacity          X: the target
    score = X + (100 - X) p/X     up to X;     X (100 - p)/(100 - X)     from there to 100, and 0 beyond

The formula is that of the plugin of this name among Kubernetes' scheduler plugins. A container is expected to use its limit;
without one, 1.5 times its request; and without that, a core. Pods that came since cpu was measured are in the measured use
with what they requested. A node counts as the mean of the others as far as nothing is known of it (*compatible*: it scores
nothing).
"""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.model.pod import Container, Pod, total_requests
from lamina.model.resources import CPU
from lamina.scheduling.framework.columns import Bools, Ints
from lamina.scheduling.framework.context import Context
from lamina.scheduling.framework.cycle_state import CycleState, StateKey
from lamina.scheduling.framework.normalize import unscored
from lamina.scheduling.framework.points import MAX_SCORE, Reads
from lamina.scheduling.framework.view import NodeView
from lamina.scheduling.plugins.agents.safe.args import PackingArgs
from lamina.scheduling.plugins.agents.safe.neutral import Judged, rounded, settle
from lamina.scheduling.plugins.agents.safe.observed import READS, Observer

NAME: Final = "TargetLoadPacking"

JUDGED: Final[StateKey[Judged]] = StateKey("target-load-packing/judged")


class TargetLoadPacking:
    """Ranks by how near cpu in use comes to a target."""

    name: ClassVar = NAME
    Args: ClassVar = PackingArgs
    reads: ClassVar = Reads(rows=READS)

    def __init__(self, context: Context, args: PackingArgs) -> None:
        """Pack as *args* say."""
        self._observer = Observer(context, args.source)
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
        state[JUDGED] = Judged(np.where(percent <= best, rising, falling), observed.trust)
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Score; nodes of which little is known count as the mean of the feasible ones, as far as they are not believed."""
        judged = state[JUDGED]
        if self._args.compatible:
            return np.where(judged.trust > 0, rounded(judged.points), 0)
        return settle(judged, feasible)

    def _expected(self, pod: Pod) -> float:
        """Return the cpu a pod is expected to use, its overhead (what it asks for beyond its containers) included."""
        containers, _ = total_requests(pod.containers, pod.init_containers)
        overhead = dict(pod.requests).get(CPU, 0) - dict(containers).get(CPU, 0)
        return sum(map(self._of_container, pod.containers)) + max(overhead, 0)

    def _of_container(self, container: Container) -> float:
        limit, request = dict(container.limits).get(CPU, 0), dict(container.requests).get(CPU, 0)
        return limit or request * self._args.default_requests_multiplier or self._args.default_requests
