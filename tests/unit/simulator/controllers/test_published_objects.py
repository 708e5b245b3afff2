"""Controllers publish the objects by which default spread constraints find their pods, and claims of StatefulSets."""

from lamina.model.cluster_objects import ObjectKey
from lamina.model.events import ObjectGone, ObjectSeen
from lamina.model.selecting_objects import ReplicaSet, StatefulSet
from lamina.model.selectors import LabelSelector
from lamina.model.volumes import PersistentVolumeClaim
from lamina.simulator.controllers import ControllerSpec
from lamina.simulator.controllers.controller_spec import ClaimTemplate
from lamina.testing import a_pod
from tests.unit.simulator.controllers.scripted import Script

WEB = a_pod("web", image="web:1", labels={"app": "web"})


def test_each_version_of_a_deployment_is_a_replica_set():
    script = Script()
    script.controllers.add(ControllerSpec(kind="Deployment", name="web", template=WEB, replicas=2))
    script.run(5.0)
    script.controllers.update("web", "web:2")
    script.run(20.0)
    script.controllers.remove("web")

    def seen(version: str) -> ObjectSeen:
        labels = (("app", "web"), ("pod-template-hash", version))
        return ObjectSeen(ReplicaSet(namespace="default", name=f"web-{version}", selector=LabelSelector(labels)))

    gone = [ObjectGone(ObjectKey("ReplicaSet", "default", f"web-{version}")) for version in "12"]
    assert [seen("1"), seen("2"), *gone] == script.seen


def test_a_stateful_set_publishes_itself_and_makes_the_claims_of_each_pod_once():
    script = Script()
    data = ClaimTemplate("data", 7, "fast")
    script.controllers.add(ControllerSpec(kind="StatefulSet", name="db", template=WEB, replicas=2, claims=(data,)))
    script.run(5.0)
    first = next(uid for uid, pod in script.pods.items() if pod.pod.name == "db-0")
    script.remove(script.pods[first].pod.uid)
    script.run(20.0)

    found = [event.found for event in script.seen]
    assert [StatefulSet, PersistentVolumeClaim, PersistentVolumeClaim] == [type(one) for one in found]
    assert ["db", "data-db-0", "data-db-1"] == [one.name for one in found]
    assert [("db-0", "data-db-0"), ("db-1", "data-db-1"), ("db-0", "data-db-0")] == [
        (one.pod.name, one.pod.volumes[0].source) for one in script.pods.values()
    ]


def test_daemon_sets_and_jobs_publish_nothing():
    script = Script()
    script.controllers.add(ControllerSpec(kind="DaemonSet", name="agent", template=WEB))
    script.controllers.add(ControllerSpec(kind="Job", name="batch", template=WEB))
    script.run(5.0)

    assert [] == script.seen
