"""The stages that the testbed gives to kwok."""

import yaml

from testbed import kwok_stages


def test_the_file_holds_every_stage():
    assert list(yaml.safe_load_all(kwok_stages.text())) == list(kwok_stages.STAGES)


def test_pods_and_nodes_have_stages_of_different_names():
    names = [stage["metadata"]["name"] for stage in kwok_stages.STAGES]

    assert len(set(names)) == len(names)
    assert {stage["spec"]["resourceRef"]["kind"] for stage in kwok_stages.STAGES} == {"Pod", "Node"}


def test_a_pod_that_is_deleted_only_goes():
    deleted = [rule for stage in kwok_stages.STAGES for rule in stage["spec"]["selector"]["matchExpressions"]]
    of_pods = [stage for stage in kwok_stages.STAGES if stage["spec"]["resourceRef"]["kind"] == "Pod"]

    # Every stage of pods says whether it is for those that are being deleted.
    assert sum(rule["key"] == ".metadata.deletionTimestamp" for rule in deleted) == len(of_pods)
    assert [stage["spec"]["next"] for stage in of_pods if "delete" in stage["spec"]["next"]] == [{"delete": True}]


def test_only_the_end_of_a_pod_takes_time():
    delays = {stage["metadata"]["name"]: stage["spec"].get("delay") for stage in kwok_stages.STAGES}

    assert {name: delay for name, delay in delays.items() if delay} == {
        "pod-succeeded": {"durationFrom": {"expressionFrom": '.metadata.annotations["testbed/run-for"]'}}
    }
