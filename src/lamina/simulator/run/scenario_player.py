"""
Player of a scenario: submits its pods and applies its events to the cluster at their times.

At the same time, arrivals come first, in their order, then the scenario's events, then the cluster's own events. Only
the next arrival has a timer, because a million timers on the heap would slow down all others.
"""

import copy
from typing import Final

from msgspec.structs import force_setattr

from lamina.model.errors import WiringError
from lamina.model.pod import PodUid
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.controllers import ControllerManager
from lamina.simulator.engine import Environment
from lamina.simulator.run.run_parts import LazyControllers
from lamina.simulator.workloads import Scenario, ScenarioEvent, ScenarioObject

ARRIVE: Final = -20
HAPPEN: Final = -10
"""Event priorities of arrivals and scenario events; the cluster's own is 0."""


def put_object(cluster: VirtualCluster, one: ScenarioObject) -> None:
    """Add an object of a scenario to a cluster, or replace it."""
    cluster.objects.put(one.found, one.manifest or None)


class ScenarioPlayer:
    """Plays one scenario on a cluster."""

    def __init__(
        self, environment: Environment, cluster: VirtualCluster, scenario: Scenario, controllers: LazyControllers
    ) -> None:
        """Prepare *scenario* for *cluster*; pods without a scheduler name get that of *controllers*."""
        self._environment = environment
        self._cluster = cluster
        self._scenario = scenario
        self._scheduler = controllers.scheduler
        self._arrivals = sorted(scenario.arrivals, key=lambda arrival: arrival.at)
        self._next = 0
        self._controllers = controllers

    def begin(self) -> None:
        """Add the controllers, and schedule all events and the first arrival."""
        for spec in self._scenario.controllers:
            self._controllers.get().add(spec)
        for happening in self._scenario.events:
            self._environment.at(happening.at, self._happen, happening, priority=HAPPEN)
        self._wait()

    def _wait(self) -> None:
        if self._next < len(self._arrivals):
            self._environment.at(self._arrivals[self._next].at, self._arrive, priority=ARRIVE)

    def _arrive(self) -> None:
        arrivals, now, submit = self._arrivals, self._environment.now, self._cluster.submit
        number, end = self._next, len(arrivals)
        while number < end and arrivals[number].at <= now:
            arrival = arrivals[number]
            number += 1
            pod = arrival.pod
            if not pod.scheduler_name:
                # Not `replace`, which would compute the pod's images again.
                pod = copy.copy(pod)
                force_setattr(pod, "scheduler_name", self._scheduler)
            submit(pod, arrival.life)
        self._next = number
        self._wait()

    def _happen(self, happening: ScenarioEvent) -> None:
        cluster, name = self._cluster, happening.name
        match happening.kind:
            case "apply":
                assert happening.object is not None, "an apply event has its object"
                put_object(cluster, happening.object)
            case "delete":
                assert happening.key is not None, "a delete event has the key of its object"
                cluster.objects.remove(happening.key)
            case "remove":
                cluster.remove(PodUid(name), None)
            case "join":
                assert happening.node is not None, "a join event names its node"
                cluster.join(happening.node)
            case "scale":
                self._manager.scale(name, happening.count)
            case "update":
                self._manager.update(name, happening.image)
            case "drop":
                cluster.drop(name)
            case "cordon":
                cluster.cordon(name)
            case "uncordon":
                cluster.uncordon(name)
            case "drain":
                cluster.drain(name)
            case "fail":
                cluster.fail(name)
            case "recover":
                cluster.recover(name)

    @property
    def _manager(self) -> ControllerManager:
        if not self._scenario.controllers:
            raise WiringError("the scenario scales or updates a controller but has none")
        return self._controllers.get()
