"""Writes: what a patch holds, how fast they come, and what ends a round."""

import itertools
import json
import random

import pytest

from lamina.services.annotator.planning import MOVED, Change
from lamina.services.annotator.writing import Writer
from tests.unit.services.fakes import ScriptedClient, leaping, refused


def changes(count):
    return [Change(f"n{n}", f"u{n}", {"a": "1", "b": None}, MOVED) for n in range(count)]


def write(client, count, per_second=5.0):
    writer = Writer(client, per_second, random.Random(1))
    return leaping(writer.write(changes(count))), writer


def test_a_patch_holds_annotations_and_whom_they_are_meant_for():
    client = ScriptedClient()
    written, _ = write(client, 1)
    (asked,) = client.asked

    assert (1, "PATCH", "/api/v1/nodes/n0") == (written, asked.method, asked.path)
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
    client = ScriptedClient(refused(404), refused(409, "Precondition failed: UID in precondition: u1"))
    written, writer = write(client, 3)

    assert (1, {MOVED: 1, "gone": 2}) == (written, writer.counts)


@pytest.mark.parametrize("status", [403, 429, 500])
def test_any_other_refusal_ends_the_round(status):
    client = ScriptedClient(refused(status))
    with pytest.raises(type(refused(status))):
        write(client, 3)

    assert 1 == len(client.asked)
