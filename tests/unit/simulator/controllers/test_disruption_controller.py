"""Budgets of a simulated cluster allow as many evictions as the disruption controller of a real one computes."""

from typing import Any

import pytest
from msgspec.structs import replace

from lamina.model.cluster_objects import ObjectKey, key_of
from lamina.model.disruption_budget import BudgetLimits, PodDisruptionBudget
from lamina.model.events import ObjectSeen
from lamina.model.pod import Owner, PodUid
from lamina.simulator.cluster import Delays, VirtualCluster
from lamina.simulator.controllers import ControllerManager, ControllerSpec
from lamina.simulator.controllers.disruption_controller import DisruptionController
from lamina.simulator.engine import Environment
from lamina.simulator.workloads.object_entries import manifest_object
from lamina.testing import a_pod, an_image
from tests.unit.simulator.test_run import a_node_spec

KEY = ObjectKey("PodDisruptionBudget", "default", "web")
MIB = 2**20


class BudgetStory:
    """A cluster with one node, a budget for pods labelled app=web, and every number that it was seen with."""

    def __init__(self, **limits: Any) -> None:
        self.environment = Environment()
        self.seen: list[tuple[float, int]] = []
        self.cluster = VirtualCluster(self.environment, [an_image("app:1", {"L": MIB})], Delays(start=0.0), self)
        self.cluster.join(a_node_spec("n1", cpu="64"))
        self.manager = ControllerManager(self.environment, self.cluster, scheduler="x")
        DisruptionController(self.environment, self.cluster, self.manager.scale_of)
        if limits:
            self.apply(**limits)

    def note(self, _: object) -> None:
        """Receive a record for the trace, which nothing here reads."""

    def publish(self, event: object) -> None:
        if isinstance(event, ObjectSeen) and isinstance(event.found, PodDisruptionBudget):
            self.seen.append((self.environment.now, event.found.disruptions_allowed))

    def apply(self, selector: dict[str, Any] | None = None, **limits: Any) -> None:
        spec = {"selector": selector or {"matchLabels": {"app": "web"}}, **limits}
        one = manifest_object(KEY.kind, {"metadata": {"name": "web"}, "spec": spec})
        self.cluster.objects.put(one.found, one.manifest)

    def pods(self, *names: str, owner: Owner | None = None, app: str = "web", start: bool = True) -> None:
        for name in names:
            self.cluster.submit(replace(a_pod(name, labels={"app": app}), owner=owner))
            if start:
                self.cluster.bind(PodUid(name), "n1")
        self.run(1.0)

    def run(self, seconds: float) -> None:
        self.environment.run(self.environment.now + seconds)

    @property
    def allowed(self) -> int:
        found = self.cluster.objects.get(PodDisruptionBudget, "default", "web")
        assert found is not None
        return found.disruptions_allowed


OWNER = Owner("ReplicaSet", "web", "u")


@pytest.mark.parametrize(
    ("limits", "owner", "allowed"),
    [
        pytest.param({"minAvailable": 3}, None, 1, id="a minimum"),
        pytest.param({"minAvailable": 9}, None, 0, id="a minimum above what runs"),
        pytest.param({"minAvailable": "50%"}, OWNER, 2, id="a share"),
        pytest.param({"minAvailable": "51%"}, OWNER, 1, id="a share is rounded up: 3 of 4 must stay"),
        pytest.param({"maxUnavailable": 1}, OWNER, 1, id="a maximum"),
        pytest.param({"maxUnavailable": "10%"}, OWNER, 1, id="a maximum share is rounded up, too"),
        pytest.param({"maxUnavailable": 0}, OWNER, 0, id="none may go"),
        pytest.param({"maxUnavailable": 9}, OWNER, 4, id="all may go"),
        pytest.param({"maxUnavailable": 1}, None, 0, id="pods without a controller: nobody wants any"),
        pytest.param({"maxUnavailable": 1}, Owner("Job", "web", "u"), 0, id="a Job has no number to ask for"),
        pytest.param({"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}, None, 0, id="other pods"),
    ],
)
def test_a_budget_allows_what_is_healthy_beyond_what_is_desired(limits, owner, allowed):
    story = BudgetStory(**limits)
    story.pods("p1", "p2", "p3", "p4", owner=owner)

    assert allowed == story.allowed


def test_only_ready_pods_that_are_not_being_deleted_are_healthy():
    story = BudgetStory(minAvailable=1)
    story.pods("p1", "p2", "p3")
    story.pods("waits", start=False)
    assert 2 == story.allowed

    story.cluster.remove(PodUid("p1"), 30.0)
    story.run(0.0)
    assert 1 == story.allowed

    story.cluster.remove(PodUid("p2"))
    story.run(0.0)
    assert 0 == story.allowed


def test_the_scheduler_sees_each_new_number_once():
    story = BudgetStory(minAvailable=1)
    story.pods("p1", "p2")
    story.pods("other", app="db")
    story.cluster.remove(PodUid("p1"))
    story.run(1.0)

    assert [0, 1, 0] == [allowed for _, allowed in story.seen]


def test_a_changed_budget_counts_anew_and_a_deleted_one_no_more():
    story = BudgetStory(minAvailable=1)
    story.pods("p1", "p2", "p3")
    story.apply(minAvailable=3)
    story.run(0.0)
    assert 0 == story.allowed

    story.apply(selector={"matchLabels": {"app": "db"}}, minAvailable=0)
    story.pods("d1", app="db")
    assert 1 == story.allowed

    story.cluster.objects.remove(KEY)
    seen = len(story.seen)
    story.pods("d2", app="db")
    assert seen == len(story.seen)


def test_a_deployment_s_wish_counts_not_its_present_pods():
    story = BudgetStory(maxUnavailable="25%")
    template = a_pod("web", labels={"app": "web"})
    story.manager.add(ControllerSpec(kind="Deployment", name="web", template=template, replicas=8))
    story.run(0.0)
    for number in range(1, 8):
        story.cluster.bind(PodUid(f"web-{number}"), "n1")
    story.run(1.0)
    # Eight are wanted, so six must stay; seven run.
    assert 1 == story.allowed

    story.manager.scale("web", 4)
    story.run(1.0)
    assert 1 == story.allowed


def test_a_budget_without_a_manifest_stays_as_it_is():
    story = BudgetStory()
    fixed = PodDisruptionBudget(namespace="default", name="web", disruptions_allowed=7)
    story.cluster.objects.put(fixed)
    story.pods("p1")

    assert 7 == story.allowed
    assert KEY == key_of(fixed)


def test_without_limits_nothing_is_desired():
    assert 0 == BudgetLimits().desired_healthy(5)
