"""
Outage of a node: reaction of the control plane to a kubelet that does not answer.

    failed --Delays.notice--> unreachable, tainted --Delays.evict_after--> its pods are removed
       |                         |                                            |
       +-------------------------+---------------recovered--------------------+--> as before

Pods are removed completely when their toleration time is over. In a real cluster they stay in deletion until the node
recovers or is deleted. Controllers replace them at once in both cases, so the difference does not matter here.
"""

from collections.abc import Callable
from typing import Final

from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint, tolerates
from lamina.simulator.cluster.kubelet import VirtualKubelet
from lamina.simulator.cluster.node_reporter import VirtualNodeReporter
from lamina.simulator.cluster.virtual_node import Delays
from lamina.simulator.cluster.virtual_pod import VirtualPod
from lamina.simulator.engine import Environment, Timer

UNREACHABLE: Final = "node.kubernetes.io/unreachable"
TAINTS: Final = (Taint(UNREACHABLE, effect=NO_SCHEDULE), Taint(UNREACHABLE, effect=NO_EXECUTE))


class Outage:
    """One failure of one node, from start to recovery."""

    def __init__(
        self,
        environment: Environment,
        delays: Delays,
        kubelet: VirtualKubelet,
        reporter: VirtualNodeReporter,
        evict: Callable[[VirtualPod], None],
    ) -> None:
        """Fail *kubelet* now; *evict* removes pods whose toleration time is over."""
        self._environment = environment
        self._delays = delays
        self._kubelet = kubelet
        self._reporter = reporter
        self._evict = evict
        self._noticed = False
        self._timers: list[Timer] = [environment.after(delays.notice, self._notice)]
        kubelet.fail()

    def bound(self, pod: VirtualPod) -> None:
        """Start the toleration time of a pod that was bound during the outage."""
        if self._noticed:
            self._count_down(pod)

    def end(self) -> None:
        """Cancel all timers."""
        for timer in self._timers:
            self._environment.cancel(timer)

    def recover(self) -> None:
        """End the outage: remove the taints and let the kubelet resume."""
        self.end()
        if self._noticed:
            self._kubelet.node.untaint(*TAINTS)
            self._reporter.node_changed()
        self._kubelet.recover()

    def _notice(self) -> None:
        self._noticed = True
        self._kubelet.node.taint(*TAINTS)
        self._reporter.node_changed()
        for pod in self._kubelet.pods:
            self._count_down(pod)

    def _count_down(self, pod: VirtualPod) -> None:
        seconds = pod.life.unreachable
        if seconds is None:
            if tolerates(pod.pod.tolerations, TAINTS[1]):
                return
            seconds = self._delays.evict_after
        self._timers.append(self._environment.after(seconds, self._evict, pod))
