"""An agent and a real API server, with the rights, the policy and the tokens of an installation."""

import json
import time
import zlib

import pytest

from lamina.wire.custom_resources.image_layers import decode_image_layers
from lamina.wire.custom_resources.node_layers import decode_node_layers
from tests.integration.custom_resources.people import IMAGE_LAYERS, NODE_LAYERS
from tests.integration.node_agent.halves import an_agent, install
from tests.integration.scheduler.live import until
from tests.unit.services.node_agent.scripted import an_image, digests

pytestmark = [pytest.mark.realtime, pytest.mark.slow]


@pytest.fixture(scope="module")
def bed(control_plane):
    return install(control_plane)


@pytest.fixture
def agent(bed, tmp_path, request):
    with an_agent(bed, tmp_path, f"agent-{zlib.crc32(request.node.name.encode())}") as agent:
        yield agent


def image_layers(bed):
    return [decode_image_layers(json.dumps(one).encode()) for one in bed.api("GET", IMAGE_LAYERS)["items"]]


def test_what_a_node_holds_is_reported_and_described(bed, agent):
    agent.hold(images=4)
    agent.start()
    until(lambda: agent.count() == 4, 20, "the report")
    until(lambda: len(image_layers(bed)) == 4, 20, "the descriptions")
    report = decode_node_layers(json.dumps(agent.stored()).encode())
    images = [an_image(one) for one in range(4)]
    uid = bed.api("GET", f"/api/v1/nodes/{agent.node}")["metadata"]["uid"]

    assert digests(*images) == [image.digest for image in report.images]
    assert (agent.node, uid, 750.0) == (report.node, report.node_uid, report.renews_within)
    assert [uid] == [owner["uid"] for owner in agent.stored()["metadata"]["ownerReferences"]]
    assert {image.digest: image.layers for image in images} == {one.digest: one.layers for one in image_layers(bed)}
    assert ("True", "Complete") == agent.condition("Ready")[:2]


def test_a_change_after_a_quiet_time_is_seen_within_seconds(agent):
    agent.hold(images=1)
    agent.start()
    until(lambda: agent.count() == 1, 20, "the first report")
    sequence = agent.status()["sequence"]
    until(lambda: "images=1" in agent.publisher.said(), 5, "its line")
    # The gap after a report, and a bit.
    time.sleep(12.5)
    agent.hold(images=3)

    assert until(lambda: agent.count() == 3, 20, "the change") < 5.0
    assert sequence < agent.status()["sequence"]


def test_a_trouble_and_its_end_are_conditions(agent):
    agent.hold(images=2)
    agent.start()
    until(lambda: agent.count() == 2, 20, "the first report")
    observed = agent.status()["observedAt"]
    agent.hold(trouble="nobody listens")
    until(lambda: agent.condition("RuntimeReachable")[0] == "False", 30, "the trouble")

    assert ("False", "RuntimeUnreachable", "containerd: nobody listens") == agent.condition("Ready")
    assert (observed, 2) == (agent.status()["observedAt"], agent.count())

    agent.hold(images=2)
    until(lambda: agent.condition("RuntimeReachable")[0] == "True", 40, "its end")
    assert observed < agent.status()["observedAt"]


def test_a_token_that_is_replaced_is_used_and_one_that_is_broken_for_a_moment_does_no_harm(agent):
    agent.hold(images=1)
    agent.start()
    until(lambda: agent.count() == 1, 20, "the first report")
    agent.token.write_text("")
    agent.hold(images=2)
    agent.new_token()
    until(lambda: agent.count() == 2, 40, "the second report")

    assert "cannot be" not in agent.publisher.said()


def test_a_node_that_comes_back_under_its_name_is_another(bed, agent):
    agent.hold(images=1)
    agent.start()
    until(lambda: agent.count() == 1, 20, "the first report")
    before = agent.status()["nodeUID"]
    agent.leave()
    agent.join()
    agent.hold(images=2)
    until(lambda: agent.count() == 2, 60, "a report of the new node")
    uid = bed.api("GET", f"/api/v1/nodes/{agent.node}")["metadata"]["uid"]

    assert before != uid == agent.status()["nodeUID"]
    assert [uid] == [owner["uid"] for owner in agent.stored()["metadata"]["ownerReferences"]]


def test_an_object_that_was_deleted_is_there_again_with_the_next_report(bed, agent):
    agent.hold(images=1)
    agent.start()
    until(lambda: agent.count() == 1, 20, "the first report")
    bed.api("DELETE", f"{NODE_LAYERS}/{agent.node}")
    agent.hold(images=2)

    until(lambda: agent.count() == 2, 30, "a new object")


def test_a_report_about_another_node_is_refused_and_said_once(bed, agent):
    agent.publisher = agent.a_publisher("--node", "somebody-else", "--node-uid", "x")
    agent.hold(images=1)
    agent.start()
    until(lambda: "report failed, retrying" in agent.publisher.said(), 20, "the refusal")
    until(lambda: bool(image_layers(bed)), 20, "descriptions, which anybody may write")

    assert "can only write the NodeLayers of that node, not of somebody-else" in agent.publisher.said()
    assert {} == agent.stored()
    assert agent.publisher.running
    assert 1 == agent.publisher.said().count("report failed, retrying")


def test_a_publisher_that_starts_anew_goes_on_where_the_last_one_was(agent):
    agent.hold(images=1)
    agent.start()
    until(lambda: agent.count() == 1, 20, "the first report")
    sequence = agent.status()["sequence"]
    agent.publisher.kill()
    agent.publisher.start()
    until(lambda: agent.status()["sequence"] > sequence, 20, "a report of the new one")

    assert 1 == agent.count()
