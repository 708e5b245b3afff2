"""The row of a pod in ``kubectl get pods``: ready containers, the status word and restarts."""

from typing import Any

from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.object_fields import mappings, number
from lamina.simulator.facade.table_values import NONE, age, condition_status, object_age, timestamp_seconds


def pod_cells(pod: KubeObject, now: float) -> list[Any]:
    """Return the cells of a pod: Name, Ready, Status, Restarts, Age, IP, Node, Nominated Node, Readiness Gates."""
    spec, status = part(pod, "spec"), part(pod, "status")
    summary = _Summary(pod)
    addresses = mappings(status, "podIPs")
    gates = mappings(spec, "readinessGates")
    open_gates = sum(condition_status(status, text(gate, "conditionType")) == "True" for gate in gates)
    return [
        text(part(pod, "metadata"), "name"),
        f"{summary.ready}/{summary.total}",
        summary.word,
        summary.restarts_text(now),
        object_age(pod, now),
        (text(addresses[0], "ip") if addresses else "") or NONE,
        text(spec, "nodeName") or NONE,
        text(status, "nominatedNodeName") or NONE,
        f"{open_gates}/{len(gates)}" if gates else NONE,
    ]


class _Summary:
    """What the container statuses of a pod say together."""

    def __init__(self, pod: KubeObject) -> None:
        self._spec, self._status = part(pod, "spec"), part(pod, "status")
        self._sidecars = {
            text(each, "name")
            for each in mappings(self._spec, "initContainers")
            if each.get("restartPolicy") == "Always"
        }
        self.total = len(mappings(self._spec, "containers")) + len(self._sidecars)
        self.ready = 0
        self.restarts = 0
        self._last_restart = ""
        self.word = self._starting_word()
        initializing = self._read_init_containers()
        if not initializing or condition_status(self._status, "Initialized") == "True":
            self._read_containers()
        if part(pod, "metadata").get("deletionTimestamp"):
            if self._status.get("reason") == "NodeLost":
                self.word = "Unknown"
            elif self._status.get("phase") not in ("Succeeded", "Failed"):
                self.word = "Terminating"

    def restarts_text(self, now: float) -> str:
        """Return the number of restarts, with the age of the last one if it is known."""
        if self.restarts and self._last_restart:
            return f"{self.restarts} ({age(self._last_restart, now)} ago)"
        return str(self.restarts)

    def _starting_word(self) -> str:
        for condition in mappings(self._status, "conditions"):
            if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
                return "SchedulingGated"
        return text(self._status, "reason") or text(self._status, "phase")

    def _count_restarts(self, container: KubeObject) -> None:
        self.restarts += number(container, "restartCount")
        finished = text(part(part(container, "lastState"), "terminated"), "finishedAt")
        if (timestamp_seconds(finished) or 0) > (timestamp_seconds(self._last_restart) or 0):
            self._last_restart = finished

    def _read_init_containers(self) -> bool:
        """Count ready sidecars; return whether an init container still runs or failed, and set the word if so."""
        for index, container in enumerate(mappings(self._status, "initContainerStatuses")):
            self._count_restarts(container)
            state = part(container, "state")
            terminated = state.get("terminated")
            if isinstance(terminated, dict) and number(terminated, "exitCode") == 0:
                continue
            if text(container, "name") in self._sidecars and container.get("started") is True:
                self.ready += container.get("ready") is True
                continue
            waiting = text(part(state, "waiting"), "reason")
            if isinstance(terminated, dict):
                self.word = f"Init:{_ending(terminated)}"
            elif waiting and waiting != "PodInitializing":
                self.word = f"Init:{waiting}"
            else:
                self.word = f"Init:{index}/{len(mappings(self._spec, 'initContainers'))}"
            return True
        return False

    def _read_containers(self) -> None:
        self.restarts, self._last_restart = 0, ""
        for container in mappings(self._status, "initContainerStatuses"):
            if text(container, "name") in self._sidecars:
                self._count_restarts(container)
        running, failure = False, ""
        for container in reversed(mappings(self._status, "containerStatuses")):
            self._count_restarts(container)
            state = part(container, "state")
            waiting, terminated = text(part(state, "waiting"), "reason"), state.get("terminated")
            if waiting:
                self.word = waiting
            elif isinstance(terminated, dict):
                self.word = _ending(terminated)
                if number(terminated, "exitCode") != 0:
                    failure = self.word
            elif container.get("ready") is True and isinstance(state.get("running"), dict):
                running = True
                self.ready += 1
        if self.word == "Completed":
            if running and condition_status(self._status, "Ready") == "True":
                self.word = "Running"
            elif failure:
                self.word = failure
            elif running:
                self.word = "NotReady"


def _ending(terminated: KubeObject) -> str:
    """Return the reason why a container ended."""
    if text(terminated, "reason"):
        return text(terminated, "reason")
    signal = number(terminated, "signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{number(terminated, 'exitCode')}"
