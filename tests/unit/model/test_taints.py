"""Taints and tolerations: who puts up with what."""

import pytest

from lamina.model.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    UNSCHEDULABLE_TAINT,
    Taint,
    Toleration,
    tolerates,
    untolerated,
)

GPU = Taint("gpu", "a100", NO_SCHEDULE)
DRAIN = Taint("drain", "", NO_EXECUTE)
BUSY = Taint("busy", "", PREFER_NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        pytest.param(Toleration("gpu", "Equal", "a100", NO_SCHEDULE), True, id="all equal"),
        pytest.param(Toleration("gpu", "", "a100", NO_SCHEDULE), True, id="no operator means Equal"),
        pytest.param(Toleration("gpu", value="a100"), True, id="no effect means any"),
        pytest.param(Toleration("gpu", "Equal", "h100", NO_SCHEDULE), False, id="another value"),
        pytest.param(Toleration("cpu", "Equal", "a100", NO_SCHEDULE), False, id="another key"),
        pytest.param(Toleration("gpu", "Equal", "a100", NO_EXECUTE), False, id="another effect"),
        pytest.param(Toleration("gpu", "Exists"), True, id="Exists asks for no value"),
        pytest.param(Toleration("gpu", "Exists", "h100"), True, id="Exists ignores the value"),
        pytest.param(Toleration("cpu", "Exists"), False, id="Exists with another key"),
        pytest.param(Toleration("", "Exists"), True, id="no key with Exists means any taint"),
        pytest.param(Toleration("", "Exists", "", NO_EXECUTE), False, id="no key, another effect"),
        pytest.param(Toleration("", "Equal", "a100"), True, id="no key with Equal: the values decide"),
        pytest.param(Toleration("", "Equal", ""), False, id="no key with Equal and no value"),
        pytest.param(Toleration("gpu", "exists"), False, id="operators have capitals"),
        pytest.param(Toleration("gpu", "In", "a100"), False, id="an operator of something else"),
    ],
)
def test_a_toleration_covers_a_taint_by_key_value_and_effect(toleration, want):
    """What is left empty stands for any, and Exists for any value."""
    assert want == toleration.tolerates(GPU)


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        pytest.param("Gt", "5", id="the taint's 10 is greater than 5"),
        pytest.param("Lt", "50", id="the taint's 10 is less than 50"),
    ],
)
def test_numeric_operators_tolerate_nothing(operator, value):
    """Kubernetes 1.36 has them behind a gate that is off."""
    assert not Toleration("score", operator, value).tolerates(Taint("score", "10", NO_SCHEDULE))


@pytest.mark.parametrize(
    ("tolerations", "want"),
    [
        pytest.param([], False, id="none"),
        pytest.param([Toleration("cpu", "Exists")], False, id="one that does not"),
        pytest.param([Toleration("cpu", "Exists"), Toleration("gpu", "Exists")], True, id="one of two that does"),
    ],
)
def test_one_toleration_is_enough(tolerations, want):
    """Tolerations are alternatives."""
    assert want == tolerates(tolerations, GPU)


@pytest.mark.parametrize(
    ("tolerations", "effects", "want"),
    [
        pytest.param([], [NO_SCHEDULE, NO_EXECUTE], GPU, id="the first of two"),
        pytest.param([Toleration("gpu", "Exists")], [NO_SCHEDULE, NO_EXECUTE], DRAIN, id="the first is covered"),
        pytest.param([Toleration("", "Exists")], [NO_SCHEDULE, NO_EXECUTE], None, id="all are covered"),
        pytest.param([], [PREFER_NO_SCHEDULE], BUSY, id="only the effects asked about"),
        pytest.param([], [], None, id="no effect asked about"),
    ],
)
def test_the_first_untolerated_taint_is_returned(tolerations, effects, want):
    """In the node's order, among the effects asked about."""
    assert want == untolerated([BUSY, GPU, DRAIN], tolerations, effects)


def test_a_node_without_taints_has_nothing_against_anyone():
    """No taints, nothing to tolerate."""
    assert untolerated([], [], [NO_SCHEDULE]) is None


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        pytest.param(
            Toleration("node.kubernetes.io/unschedulable", "Exists", "", NO_SCHEDULE), True, id="daemon set's"
        ),
        pytest.param(Toleration("node.kubernetes.io/unschedulable"), True, id="Equal with no value"),
        pytest.param(Toleration("node.kubernetes.io/not-ready", "Exists"), False, id="another taint of the system"),
    ],
)
def test_a_cordoned_node_counts_as_tainted(toleration, want):
    """A pod may be placed on it only when it tolerates the taint cordoning stands for."""
    assert want == tolerates([toleration], UNSCHEDULABLE_TAINT)
