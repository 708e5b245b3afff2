"""Short words for the lives of pods, for tests of the QoS engine."""

from collections.abc import Sequence

from lamina.qos.engine import QosEngine
from lamina.qos.incarnation import FinishedIncarnation
from lamina.qos.life_cycle_facts import PodCreated, PodDeleted, PodEnded, PodIsTerminating, PodWasBound, QosFact
from lamina.qos.promise import ControllerKey, Promise, QosApproach, QosSettings
from lamina.qos.standing import Standing


class Cluster:
    """An engine, and facts about it that are observed when they happen."""

    def __init__(self, settings: QosSettings | None = None) -> None:
        self.engine = QosEngine(settings or QosSettings(), origin=0.0)
        self.finished: list[FinishedIncarnation] = []

    def tell(self, *facts: QosFact, now: float | None = None) -> None:
        for fact in facts:
            self.finished += self.engine.feed(fact, fact.at if now is None else now)

    def create(
        self, at: float, *pods: str, of: str = "web", promise: Promise | None = None, replicas: int | None = None
    ) -> None:
        for pod in pods:
            self.tell(PodCreated(at, pod, "default", pod, key(of), promise or Promise(), replicas))

    def bind(self, at: float, *pods: str, took: float = 0.0) -> None:
        self.tell(*[PodWasBound(at, pod, at - took) for pod in pods])

    def evict(self, at: float, *pods: str) -> None:
        self.tell(*[fact for pod in pods for fact in (PodIsTerminating(at, pod), PodDeleted(at, pod))])

    def end(self, at: float, pod: str, *, succeeded: bool) -> None:
        self.tell(PodEnded(at, pod, succeeded=succeeded))

    def delete(self, at: float, *pods: str) -> None:
        self.tell(*[PodDeleted(at, pod) for pod in pods])

    def of_pod(self, pod: str, now: float) -> Standing:
        found = self.engine.standing(pod, now)
        assert found is not None
        return found

    def of(self, name: str, now: float) -> Standing:
        found = self.engine.controller_standing(key(name), now)
        assert found is not None
        return found

    def order(self, pods: Sequence[str], now: float) -> Sequence[str]:
        return self.engine.order(pods, now)

    def next_flip(self, pods: Sequence[str], now: float) -> float:
        return self.engine.next_flip(pods, now)

    def times(self, name: str, now: float) -> Sequence[float]:
        """Effective, discarded, waiting and binding time of a controller."""
        times = self.of(name, now).times
        return times.effective, times.discarded, times.waiting, times.binding


def key(name: str) -> ControllerKey:
    return ControllerKey("default", "Deployment", name)


def promised(slo: float, approach: QosApproach = QosApproach.AVERAGE, importance: float | None = None) -> Promise:
    return Promise(slo, slo if importance is None else importance, approach, 1 - slo)
