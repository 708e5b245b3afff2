"""Writes: what a patch holds, how fast they come, and what ends a round."""

import itertools
import json
import random

import pytest

from lamina.services.annotator.annotation_plan import MOVED, AnnotationWrite
from lamina.services.annotator.annotation_writer import AnnotationWriter
from tests.unit.services.fakes import LOST, ScriptedClient, leaping, refused


def changes(count):
    return [AnnotationWrite(f"n{n}", f"u{n}", {"a": "1", "b": None}, MOVED) for n in range(count)]


def write(client, count, per_second=5.0):
    writer = AnnotationWriter(client, per_second, random.Random(1))
    return leaping(writer.write(changes(count))), writer


def test_a_patch_holds_annotations_and_whom_they_are_meant_for():
    client = ScriptedClient()
    outcome, _ = write(client, 1)
    (asked,) = client.asked

    assert (["n0"], "PATCH", "/api/v1/nodes/n0") == (outcome.written, asked.method, asked.path)
    assert {"metadata": {"uid": "u0", "annotations": {"a": "1", "b": None}}} == json.loads(asked.body)


@pytest.mark.parametrize("per_second", [0.5, 5.0, 100.0])
def test_no_more_are_written_in_a_second_than_allowed(per_second):
    client = ScriptedClient()
    write(client, 50, per_second)
    times = [one.at for one in client.asked]
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]

    assert min(pauses) >= 1 / per_second - 1e-9
    assert max(pauses) <= 1.5 / per_second + 1e-9
    assert len(set(pauses)) > 10, "they keep no step with anybody"


def test_a_node_that_is_gone_or_another_one_now_is_passed_over():
    client = ScriptedClient(
        refused(404),
        refused(409, "Precondition failed: UID in precondition: u1"),
        refused(422, 'Node "n2" is invalid: metadata.uid: Invalid value: "u2": field is immutable'),
    )
    outcome, writer = write(client, 4)

    assert (["n3"], {}, {MOVED: 1, "gone": 3}) == (outcome.written, outcome.refused, writer.counts)


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(refused(422, 'Node "n0" is invalid: metadata.annotations: Too long'), id="too long"),
        pytest.param(refused(422, 'Node "druid-1" is invalid: metadata.annotations: Too long'), id="a uid in its name"),
        pytest.param(refused(403, "a webhook does not want that"), id="a webhook"),
        pytest.param(refused(409, "the object has been modified"), id="a conflict"),
    ],
)
def test_a_node_that_refuses_is_counted_and_the_others_are_written(refusal):
    outcome, writer = write(ScriptedClient(refusal), 3)

    assert (["n1", "n2"], {"n0": refusal}, None) == (outcome.written, outcome.refused, outcome.ended)
    assert {MOVED: 2, "refused": 1} == writer.counts


@pytest.mark.parametrize(
    "failure",
    [refused(401), refused(429, retry_after=7.0), refused(500), refused(503), LOST],
    ids=["not known", "too fast", "a fault", "not ready", "no answer"],
)
def test_what_would_befall_everybody_ends_the_round(failure):
    client = ScriptedClient(b"{}", failure)
    outcome, _ = write(client, 3)

    assert (["n0"], {}, failure, "n1") == (outcome.written, outcome.refused, outcome.ended, outcome.stuck)
    assert 2 == len(client.asked)
    assert (7.0 if failure is not LOST and failure.status == 429 else 0.0) == outcome.retry_after


def test_the_same_refusal_many_times_in_a_row_ends_the_round():
    client = ScriptedClient(*[refused(403)] * 19, b"{}", *[refused(403), refused(422)] * 10, then=refused(403))
    outcome, _ = write(client, 100)

    # 19 alike, one that went well, 20 of two kinds by turns, and twenty alike.
    assert (19 + 1 + 20 + 20, ["n19"]) == (len(client.asked), outcome.written)
    assert "20 annotation writes in a row rejected: 403 Reason" == str(outcome.ended)
