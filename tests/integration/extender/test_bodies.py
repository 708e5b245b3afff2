"""
What a real kube-scheduler sends to an extender can be read, and what we answer is understood: placements follow.

Every test is done twice, by a scheduler that sends nodes by name and by one that sends them whole.
"""

import json

import pytest

from lamina.wire.extender.arguments import decode_extender_args, read_nodes
from lamina.wire.extender.preemption_arguments import decode_preemption_args
from testbed import fixtures
from tests.integration.extender.capturing import BROKEN, REFUSED, REFUSED_FOR_GOOD, CapturingExtender
from tests.integration.testbed.waiting import eventually

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("kube-scheduler")]

PODS = "/api/v1/namespaces/default/pods"
NODES = ("n1", "n2", "n3")
FORMS = {"by-name": True, "whole": False}


@pytest.fixture(scope="module")
def cluster():
    """Three nodes, and for each form a scheduler with an extender of its own."""
    with fixtures.started() as bed, CapturingExtender() as by_name, CapturingExtender() as whole:
        bed.add_nodes([{"name": name, "cpu": "4", "images": [an_image(name)]} for name in NODES])
        for name, value in (("low", 1), ("high", 1000)):
            body = {"metadata": {"name": name}, "value": value}
            bed.api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
        for form, extender in (("by-name", by_name), ("whole", whole)):
            entry = extender.entry(names=FORMS[form])
            config = {"profiles": [{"schedulerName": form}], "extenders": [entry]}
            bed.start_part("kube-scheduler", name=form, config=config)
        yield bed, {"by-name": by_name, "whole": whole}


@pytest.fixture(params=FORMS)
def story(cluster, request):
    """The cluster without pods, one of its schedulers, and that one's extender."""
    bed, extenders = cluster
    bed.api("DELETE", f"{PODS}?gracePeriodSeconds=0")
    eventually(lambda: not bed.api("GET", PODS)["items"])
    return bed, request.param, extenders[request.param]


def an_image(name):
    return {"names": [f"example.com/{name}:1"], "sizeBytes": 1_000_000}


def start(bed, form, name, priority="low", cpu="100m", **wishes):
    container = {"name": "c", "image": "example.com/none:1", "resources": {"requests": {"cpu": cpu}}}
    annotations = {key.replace("_", "-"): value for key, value in wishes.items()}
    spec = {"schedulerName": form, "priorityClassName": priority, "containers": [container]}
    body = {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {**spec, "terminationGracePeriodSeconds": 0},
    }
    bed.api("POST", PODS, body)


def place(bed, name):
    """Return the node a pod was put on, once it was."""
    return eventually(lambda: bed.api("GET", f"{PODS}/{name}")["spec"].get("nodeName"))


def complaint(bed, name):
    """Return why a pod was not put anywhere, once the scheduler has said so."""

    def told():
        conditions = bed.api("GET", f"{PODS}/{name}")["status"].get("conditions", [])
        return next((one["message"] for one in conditions if one["type"] == "PodScheduled"), None)

    return eventually(told)


def test_a_pod_goes_to_the_one_node_that_was_not_refused(story):
    bed, form, extender = story
    start(bed, form, f"left-{form}", refuse="n1", refuse_for_good="n3")

    assert place(bed, f"left-{form}") == "n2"
    (call,) = extender.about("filter", f"left-{form}")
    asked = decode_extender_args(call.body)
    assert asked.pod.key == f"default/left-{form}"
    assert sorted(asked.names) == ["n1", "n2", "n3"]
    # With one node left nobody is asked which is best.
    assert extender.about("prioritize", f"left-{form}") == []


def test_the_form_is_the_one_that_the_configuration_asks_for(story):
    bed, form, extender = story
    start(bed, form, f"form-{form}")
    place(bed, f"form-{form}")

    asked = decode_extender_args(extender.about("filter", f"form-{form}")[0].body)
    assert (asked.nodes is None) is FORMS[form]
    nodes = read_nodes(asked)
    assert [node.name for node in nodes] == ([] if FORMS[form] else asked.names)
    assert all(node.images[0].names == (f"example.com/{node.name}:1",) for node in nodes)


def test_what_was_kept_of_whole_nodes_is_what_was_sent(story):
    """kube-scheduler goes on with the nodes of the answer, so they have to be whole, too."""
    bed, form, extender = story
    start(bed, form, f"kept-{form}", refuse="n1")
    place(bed, f"kept-{form}")

    (call,) = extender.about("filter", f"kept-{form}")
    question, answer = json.loads(call.body), json.loads(call.answer)
    if FORMS[form]:
        assert answer["NodeNames"] == [name for name in question["NodeNames"] if name != "n1"]
    else:
        sent = [node for node in question["Nodes"]["items"] if node["metadata"]["name"] != "n1"]
        assert answer["Nodes"]["items"] == sent
    # The next question is about what was left.
    (second,) = extender.about("prioritize", f"kept-{form}")
    assert sorted(decode_extender_args(second.body).names) == ["n2", "n3"]


@pytest.mark.parametrize("wanted", NODES)
def test_a_pod_goes_to_the_node_with_the_highest_level(story, wanted):
    bed, form, extender = story
    start(bed, form, f"liked-{form}-{wanted}", prefer=wanted)

    assert place(bed, f"liked-{form}-{wanted}") == wanted
    (call,) = extender.about("prioritize", f"liked-{form}-{wanted}")
    # 3 is taken off everywhere, and hosts with nothing left are not named.
    assert json.loads(call.answer) == [{"Host": wanted, "Score": 7}]


def test_reasons_reach_the_pod(story):
    bed, form, _ = story
    start(bed, form, f"nowhere-{form}", refuse="n1,n2", refuse_for_good="n3")

    words = complaint(bed, f"nowhere-{form}")
    assert words.startswith("0/3 nodes are available: ")
    assert f"2 {REFUSED}" in words
    assert f"1 {REFUSED_FOR_GOOD}" in words


def test_an_error_reaches_the_pod(story):
    bed, form, _ = story
    start(bed, form, f"broken-{form}", **{"break": "please"})

    assert BROKEN in complaint(bed, f"broken-{form}")


def test_pods_are_evicted_only_where_the_extender_says_so(story):
    bed, form, extender = story
    for node in NODES:
        start(bed, form, f"small-{form}-{node}", cpu="3", prefer=node)
        assert place(bed, f"small-{form}-{node}") == node
    uids = {node: bed.api("GET", f"{PODS}/small-{form}-{node}")["metadata"]["uid"] for node in NODES}

    start(bed, form, f"large-{form}", priority="high", cpu="3", spare="n1,n3")

    assert place(bed, f"large-{form}") == "n2"
    left = sorted(pod["metadata"]["name"] for pod in bed.api("GET", PODS)["items"])
    assert left == [f"large-{form}", f"small-{form}-n1", f"small-{form}-n3"]
    asked = decode_preemption_args(extender.about("preempt", f"large-{form}")[0].body)
    assert asked.meta is FORMS[form]
    assert {node: those.uids for node, those in asked.victims.items()} == {node: (uid,) for node, uid in uids.items()}
    assert {those.violations for those in asked.victims.values()} == {0}
