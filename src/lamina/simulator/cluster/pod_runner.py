"""
Containers of pods on one node: start, end, restart with back-off, deadline and deletion.

    start --> running --duration--> ended --+--> stopping --> finished or failed
      ^                                     |
      +------ back-off <-- restarted -------+

The pod's lifecycle decides whether ended containers are restarted: the first time at once, then after 10 seconds,
doubled each time up to 300. Ten minutes of running reset the back-off (kubelet's CrashLoopBackOff). The kubelet calls
the runner and receives its results through `RunnerCallbacks`.
"""

from collections.abc import Callable
from typing import Final, Protocol

from lamina.simulator.cluster.kubelet_context import KubeletContext
from lamina.simulator.cluster.pressure import NodePressure
from lamina.simulator.cluster.virtual_node import VirtualNode
from lamina.simulator.cluster.virtual_pod import Phase, VirtualPod
from lamina.trace.trace_records import PodFailed, PodFinished, PodRestarted, PodStarted

RELIST: Final = 1.0
"""Shortest seconds before a restart: the interval at which the kubelet lists its containers."""
FORGIVEN: Final = 600.0
"""Seconds of running that reset the back-off: twice the longest back-off."""

ERROR: Final = "Error"
DEADLINE: Final = "DeadlineExceeded"


class RunnerCallbacks(Protocol):
    """The methods of the kubelet that a PodRunner calls."""

    @property
    def node(self) -> VirtualNode:
        """The node that the kubelet manages."""
        ...

    def hold(self, step: Callable[[VirtualPod], None], pod: VirtualPod) -> None:
        """Keep a step until the kubelet recovers."""
        ...

    def started(self, pod: VirtualPod) -> None:
        """Called when a pod runs for the first time."""
        ...

    def stopped(self, pod: VirtualPod) -> None:
        """Called when a pod that is being deleted has stopped."""
        ...

    def withdraw(self, pod: VirtualPod) -> None:
        """Called when a pod needs no more images."""
        ...

    def release(self, pod: VirtualPod) -> None:
        """Called to free the resources of a pod."""
        ...

    def end(self, pod: VirtualPod, phase: Phase, reason: str = "") -> None:
        """Called when a pod has ended by itself."""
        ...


class PodRunner:
    """Runs the pods of one node."""

    __slots__ = ("_delays", "_draw", "_environment", "_kubelet", "_node", "_note", "_pressure")

    def __init__(self, context: KubeletContext, kubelet: RunnerCallbacks, pressure: NodePressure) -> None:
        """Run pods for *kubelet*."""
        self._environment = context.environment
        self._delays = context.delays
        self._draw = context.draw
        self._note = context.note
        self._kubelet = kubelet
        self._node = kubelet.node
        self._pressure = pressure

    def start(self, pod: VirtualPod) -> None:
        """Start the containers of a pod, for the first time or again."""
        kubelet, now = self._kubelet, self._environment.now
        if self._node.failed:
            kubelet.hold(self.start, pod)
            return
        again = pod.started is not None
        pod.phase, pod.since = "running", now
        if self._node.meter is not None:
            self._node.meter.changed(now)
        length = pod.life.length
        pod.timer = None if length is None else self._environment.after(length, self._over, pod)
        if again:
            pod.restarts += 1
            self._note(PodRestarted(now, pod.key, pod.node, pod.restarts))
        else:
            pod.started = now
            self._note(PodStarted(now, pod.key, pod.node))
            kubelet.started(pod)
        if self._pressure.staged or pod.life.stages:
            self._pressure.began(pod)

    def stop(self, pod: VirtualPod) -> None:
        """Stop a pod that is being deleted; do nothing if it is stopping already."""
        if pod.phase != "stopping":
            self._wind_up(pod, min(pod.life.stopping, pod.grace or 0.0), self._stopped)

    def expire(self, pod: VirtualPod) -> None:
        """Fail a pod whose deadline has passed."""
        if self._node.failed:
            self._kubelet.hold(self.expire, pod)
        elif pod.phase != "stopping":
            self._wind_up(pod, min(pod.life.stopping, pod.life.grace), self._expired)

    def finish(self, pod: VirtualPod, *, failed: bool) -> None:
        """End a pod now, whatever its lifecycle says."""
        self._kubelet.withdraw(pod)
        if pod.timer is not None:
            self._environment.cancel(pod.timer)
        if pod.since is not None:
            self._ran(pod)
        (self._failed if failed else self._finished)(pod)

    def forget(self, pod: VirtualPod) -> None:
        """Cancel all timers of a pod and end its run."""
        if pod.timer is not None:
            self._environment.cancel(pod.timer)
            pod.timer = None
        if pod.alarm is not None:
            self._environment.cancel(pod.alarm)
            pod.alarm = None
        if pod.since is not None:
            self._ran(pod)

    # -- ends --------------------------------------------------------------------------------------------------------

    def _over(self, pod: VirtualPod) -> None:
        """Restart the containers, which have ended by themselves, or stop the pod."""
        if self._node.failed:
            self._kubelet.hold(self._over, pod)
            return
        life, since = pod.life, pod.since
        failed = life.failures < 0 or pod.restarts < life.failures
        self._ran(pod)
        if life.restart == "Always" or (failed and life.restart == "OnFailure"):
            self._restart(pod, 0.0 if since is None else self._environment.now - since)
            return
        step = self._failed if failed else self._finished
        lag = self._delays.stop
        if isinstance(lag, tuple):
            lag = self._draw(lag, "stop", pod.pod.uid)
        if lag:
            pod.phase = "stopping"
            pod.timer = self._environment.after(lag, step, pod)
        else:
            pod.timer = None
            step(pod)

    def _restart(self, pod: VirtualPod, ran: float) -> None:
        delays = self._delays
        if ran >= FORGIVEN:
            pod.backoff = 0.0
        start = self._draw(delays.start, "restart", f"{pod.pod.uid}/{pod.restarts}")
        pod.phase = "restarting"
        pod.timer = self._environment.after(max(pod.backoff, RELIST) + start, self.start, pod)
        pod.backoff = min(2.0 * pod.backoff or delays.restart, delays.restart_most)

    def _wind_up(self, pod: VirtualPod, seconds: float, step: Callable[[VirtualPod], None]) -> None:
        """Stop the containers, which takes *seconds*; call *step* after the stop delay."""
        self._kubelet.withdraw(pod)
        if pod.timer is not None:
            self._environment.cancel(pod.timer)
        if pod.since is None:
            seconds = 0.0
        pod.phase = "stopping"
        seconds += self._draw(self._delays.stop, "stop", pod.pod.uid)
        pod.timer = self._environment.after(seconds, step, pod)

    def _ran(self, pod: VirtualPod) -> None:
        if pod.life.stages:
            self._pressure.ended(pod)
        pod.since = None
        if self._node.meter is not None:
            self._node.meter.changed(self._environment.now)

    def _finished(self, pod: VirtualPod) -> None:
        self._close(pod, self._finished, "finished", "")

    def _failed(self, pod: VirtualPod) -> None:
        self._close(pod, self._failed, "failed", ERROR)

    def _expired(self, pod: VirtualPod) -> None:
        self._close(pod, self._expired, "failed", DEADLINE)

    def _stopped(self, pod: VirtualPod) -> None:
        self._close(pod, self._stopped, "removed", "")

    def _close(self, pod: VirtualPod, step: Callable[[VirtualPod], None], phase: Phase, reason: str) -> None:
        kubelet = self._kubelet
        if self._node.failed:
            kubelet.hold(step, pod)
        elif pod.grace is not None:
            kubelet.stopped(pod)
        else:
            pod.timer = None
            kubelet.release(pod)
            now = self._environment.now
            if phase == "finished":
                self._note(PodFinished(now, pod.key, pod.node))
            else:
                self._note(PodFailed(now, pod.key, pod.node, reason))
            kubelet.end(pod, phase, reason)
