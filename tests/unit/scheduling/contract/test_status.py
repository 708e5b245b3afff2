"""Status: an answer in words."""

import pytest

from lamina.scheduling.contract.status import SKIP, SUCCESS, Code, Status, failed, unresolvable, unschedulable


@pytest.mark.parametrize(
    ("status", "code", "ok"),
    [
        pytest.param(SUCCESS, Code.SUCCESS, True, id="success"),
        pytest.param(SKIP, Code.SKIP, True, id="skipping is going on"),
        pytest.param(unschedulable("full"), Code.UNSCHEDULABLE, False, id="unschedulable"),
        pytest.param(unresolvable("never"), Code.UNRESOLVABLE, False, id="unresolvable"),
        pytest.param(failed("broken"), Code.ERROR, False, id="failed"),
    ],
)
def test_only_success_and_skip_let_a_pod_go_on(status, code, ok):
    """Everything else is a refusal or a failure."""
    assert (code, ok) == (status.code, status.ok)


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(SUCCESS, "", id="no reason"),
        pytest.param(unschedulable("full"), "full", id="one"),
        pytest.param(unresolvable("too small", "too old"), "too small, too old", id="several, in order"),
    ],
)
def test_reasons_are_read_in_one_line(status, want):
    """As upstream joins them."""
    assert want == status.message


def test_a_status_can_say_which_plugin_it_comes_from():
    """The answer itself stays as it is."""
    anonymous = unschedulable("full")

    assert Status(Code.UNSCHEDULABLE, ("full",), "Fit") == anonymous.of("Fit")
    assert "" == anonymous.plugin


@pytest.mark.parametrize(
    ("code", "word"),
    [
        pytest.param(Code.SUCCESS, "Success", id="success"),
        pytest.param(Code.ERROR, "Error", id="error"),
        pytest.param(Code.UNSCHEDULABLE, "Unschedulable", id="unschedulable"),
        pytest.param(Code.UNRESOLVABLE, "UnschedulableAndUnresolvable", id="unresolvable"),
        pytest.param(Code.SKIP, "Skip", id="skip"),
    ],
)
def test_codes_are_called_as_upstream_calls_them(code, word):
    """So that logs and traces can be compared."""
    assert word == code.value
