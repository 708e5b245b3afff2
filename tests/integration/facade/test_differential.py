"""
The façade answers as a real API server does: random sequences of requests run on both.

``python -m tests.integration.facade.differential --sequences 2000`` runs more of them.
"""

from collections.abc import Iterator

import pytest

from testbed import Testbed
from tests.integration.facade.differential import FLAGS, Differential, run_sequences
from tests.integration.facade.differential_compare import Canonical, differing_fields
from tests.integration.facade.differential_sides import FacadeSide
from tests.integration.facade.differential_steps import make_sequence
from tests.integration.facade.known_differences import KNOWN

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

SEQUENCES = 40
SEED = 1


def test_the_facade_and_a_real_server_give_the_same_answers_and_the_same_events(bed_factory):
    bed: Testbed = bed_factory(flags=FLAGS)
    found = run_sequences(bed, SEED, range(SEQUENCES))

    assert "" == "\n".join(difference.text() for difference in found.differences)
    assert found.requests > 5 * SEQUENCES
    assert found.events > SEQUENCES


def test_a_sequence_depends_on_its_seed_and_number_only():
    assert make_sequence(1, 7) == make_sequence(1, 7)
    assert make_sequence(1, 7) != make_sequence(1, 8)
    assert make_sequence(2, 7).steps != make_sequence(1, 7).steps


class ForgetfulSide(FacadeSide):
    """A server that answers one request in a wrong way."""

    def send(self, method: str, path: str, query: str, content_type: str, body: object) -> tuple[int, object]:
        """Answer deletions with another status."""
        status, found = super().send(method, path, query, content_type, body)
        return (202 if method == "DELETE" and status == 200 else status), found


@pytest.fixture
def numbers() -> Iterator[int]:
    return iter(range(30))


def test_two_equal_servers_do_not_differ(numbers):
    comparison = Differential(FacadeSide(), FacadeSide())
    for number in numbers:
        comparison.run(make_sequence(SEED, number))

    assert ([], {}) == (comparison.differences, dict(comparison.known))


def test_a_server_that_differs_is_found(numbers):
    comparison = Differential(FacadeSide(), ForgetfulSide(), known=())
    for number in numbers:
        comparison.run(make_sequence(SEED, number))

    assert comparison.differences
    assert all("http: façade has 200, real has 202" in one.fields[0] for one in comparison.differences)


def test_versions_and_uids_are_compared_by_their_order():
    one, other = Canonical(), Canonical()
    for canonical, uid, versions in ((one, "u1", ("5", "5", "9")), (other, "u9", ("105", "105", "230"))):
        shown = [
            canonical.object({"kind": "X", "metadata": {"uid": uid, "resourceVersion": version}})
            for version in versions
        ]
        assert ["version 1", "version 1", "version 2"] == [found["metadata"]["resourceVersion"] for found in shown]
        assert {"uid 1"} == {found["metadata"]["uid"] for found in shown}


@pytest.mark.parametrize(
    ("left", "right", "lines"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal"),
        pytest.param({"a": 1}, {}, ["a: façade has 1, real has none"], id="more"),
        pytest.param({}, {"a": 1}, ["a: missing, real has 1"], id="less"),
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, ["a[1]: façade has 2, real has 3"], id="element"),
        pytest.param({"a": True}, {"a": 1}, ["a: façade has True, real has 1"], id="type"),
    ],
)
def test_differing_fields_are_named(left, right, lines):
    assert lines == differing_fields(left, right)


def test_every_known_difference_has_a_reason():
    assert all(one.name and one.reason.endswith(".") for one in KNOWN)
    assert len(KNOWN) == len({one.name for one in KNOWN})
