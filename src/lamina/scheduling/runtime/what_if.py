"""
Checks whether a node would accept a pod if some pods were gone and others present.

Runs every filter of a profile for one node of a hypothetical cluster, without caches. Nominations, preemption and
what-if requests all use it, so that they cannot disagree.
"""

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import PreFilterResult
from lamina.scheduling.contract.status import Code
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.hypothesis import Hypothesis


def refusal_if(profile: Profile, supposed: Hypothesis, pod: Pod, row: int) -> Refusal | None:
    """Return the first refusal of the node in *row*; None if every filter passes."""
    state, everywhere, here = CycleState(), supposed.view(), supposed.view([row])
    silent: set[str] = set()
    for plugin in profile.pre_filter:
        answer = plugin.pre_filter(state, pod, everywhere)
        if answer is None:
            continue
        if isinstance(answer, PreFilterResult):
            node = supposed.columns.nodes[row]
            if node is None or node.name not in answer.nodes:
                return Refusal(plugin.name, (f"node(s) didn't satisfy plugin(s) [{plugin.name}]",), final=True)
        elif answer.code is Code.SKIP:
            silent.add(plugin.name)
        elif not answer.ok:
            return Refusal(plugin.name, answer.reasons, answer.code is Code.UNRESOLVABLE)
    for part in profile.filters:
        if part.name in silent:
            continue
        verdicts = part.plugin.filter(state, pod, here)
        if verdicts is not None and verdicts.codes[0]:
            return verdicts.tell(int(verdicts.codes[0]))
    return None
