"""
An existing pod as a summary remembers it, for the time after a restart.

If the pod still exists, its object states when it was created and bound, but only in whole seconds and without the time
that its binding took. If it does not exist any more, nothing else in the API tells that it ever ran.
"""

import msgspec

from lamina.model.pod import PodUid
from lamina.qos.standing import QosTimes
from lamina.qos.time_sums import BINDING, EFFECTIVE, WAITING


class RememberedPod(msgspec.Struct, frozen=True):
    """One pod at the moment of a summary."""

    uid: PodUid
    state: int
    """Kind of the time that it spent last."""
    times: QosTimes
    """Its times until then, from its creation."""
    ended: bool = False
    """Whether its containers had ended for good."""
    succeeded: bool = False

    def entered(self, state: int, created_at: float, at: float) -> float:
        """Return when the pod entered a state: more precisely than *at*, if the summary tells it."""
        if self.ended:
            return at
        if state == BINDING and self.state != WAITING:
            return created_at + self.times.waiting
        if state == EFFECTIVE and self.state == EFFECTIVE and not self.times.discarded:
            return created_at + self.times.waiting + self.times.binding
        return at
