"""Objects of a scenario and of its controllers are objects of the API; budgets follow the simulated pods."""

from lamina.model.cluster_objects import ObjectKey
from lamina.simulator.controllers import ControllerSpec
from lamina.simulator.controllers.controller_spec import ClaimTemplate
from lamina.simulator.workloads import ScenarioEvent
from lamina.simulator.workloads.object_entries import manifest_object
from lamina.testing import a_pod
from tests.unit.simulator.facade.facade_story import FacadeStory
from tests.unit.simulator.test_run import a_node_spec, a_scenario

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
SERVICES = "/api/v1/namespaces/default/services"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"

BUDGET = manifest_object(
    "PodDisruptionBudget",
    {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}},
)
SERVICE = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
WEB = a_pod("web", image="web", labels={"app": "web"})


def test_clients_see_the_objects_of_a_scenario_and_of_its_controllers():
    found = {}

    def look(client):
        found["allowed"] = client.get(f"{BUDGETS}/web")["status"]["disruptionsAllowed"]
        found["service"] = client.get(f"{SERVICES}/web")["spec"]["type"]
        found["sets"] = [
            (one["metadata"]["name"], one["spec"]["selector"]["matchLabels"])
            for one in client.get(REPLICA_SETS)["items"]
        ]
        found["claims"] = [one["metadata"]["name"] for one in client.get(CLAIMS)["items"]]
        found["stateful"] = [one["metadata"]["name"] for one in client.get(STATEFUL_SETS)["items"]]

    def gone(client):
        found["later"] = [one["metadata"]["name"] for one in client.get(SERVICES)["items"]]
        found["allowed later"] = client.get(f"{BUDGETS}/web")["status"]["disruptionsAllowed"]

    more = manifest_object("Service", SERVICE)
    tight = manifest_object(
        "PodDisruptionBudget", {**BUDGET.manifest, "spec": {**BUDGET.manifest["spec"], "minAvailable": 3}}
    )
    scenario = a_scenario(
        [a_node_spec("n1", cpu=8, holds=["web"])],
        [],
        objects=(BUDGET, more),
        controllers=(
            ControllerSpec(kind="Deployment", name="web", template=WEB, replicas=3),
            ControllerSpec(
                kind="StatefulSet", name="db", template=a_pod("db", image="web"), claims=(ClaimTemplate("data", 7),)
            ),
        ),
        events=(
            ScenarioEvent(20.0, "delete", "web", key=ObjectKey("Service", "default", "web")),
            ScenarioEvent(20.0, "apply", "web", object=tight),
        ),
    )
    FacadeStory({1.0: look, 20.0: gone}).run(scenario)

    assert {
        "allowed": 2,
        "service": "ClusterIP",
        "sets": [("web-1", {"app": "web", "pod-template-hash": "1"})],
        "claims": ["data-db-0"],
        "stateful": ["db"],
        "later": [],
        "allowed later": 0,
    } == found
