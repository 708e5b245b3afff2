"""What the doctor says of an API server."""

import pytest

from lamina.clients.kube.errors import ApiError
from lamina.services.doctor import cluster_checks
from tests.unit.services.doctor.asked import Asked, refused

ESTABLISHED = {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
DENYING = {"spec": {"validationActions": ["Deny"]}}


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        pytest.param({"major": "1", "minor": "36", "gitVersion": "v1.36.3"}, "ok", id="current"),
        pytest.param({"major": "1", "minor": "30", "gitVersion": "v1.30.0"}, "ok", id="the oldest that will do"),
        pytest.param({"major": "1", "minor": "29", "gitVersion": "v1.29.9"}, "fix", id="too old"),
        pytest.param({"major": "1", "minor": "31+", "gitVersion": "v1.31.2-eks"}, "ok", id="a provider's spelling"),
        pytest.param({"gitVersion": "v9"}, "warn", id="no number"),
    ],
)
async def test_a_server_is_judged_by_its_version(version, verdict):
    assert verdict == (await cluster_checks.check_version(Asked(version=version))).verdict


@pytest.mark.parametrize(
    ("there", "verdict", "told"),
    [
        pytest.param(
            {"nodelayers.lamina.dev": ESTABLISHED, "imagelayers.lamina.dev": ESTABLISHED},
            "ok",
            "NodeLayers and ImageLayers are installed",
            id="both",
        ),
        pytest.param(
            {"nodelayers.lamina.dev": ESTABLISHED}, "fix", "imagelayers.lamina.dev is not installed", id="one missing"
        ),
        pytest.param(
            {"nodelayers.lamina.dev": {}, "imagelayers.lamina.dev": {}},
            "fix",
            "nodelayers.lamina.dev and imagelayers.lamina.dev are not installed",
            id="not yet established",
        ),
        pytest.param({"nodelayers.lamina.dev": refused(403)}, "skip", "permission denied", id="not allowed to look"),
    ],
)
async def test_kinds_are_there_when_both_are_established(there, verdict, told):
    found = await cluster_checks.check_custom_resources(Asked(**there))

    assert ("kinds", verdict) == (found.subject, found.verdict)
    assert told in found.told


@pytest.mark.parametrize(
    ("answers", "verdict", "told"),
    [
        pytest.param([DENYING, DENYING], "ok", "its own node only", id="there"),
        pytest.param([None], "fix", "no validatingadmissionpolicies lamina-nodelayers", id="no policy"),
        pytest.param([DENYING, None], "fix", "no validatingadmissionpolicybindings", id="not bound"),
        pytest.param(
            [DENYING, {"spec": {"validationActions": ["Audit"]}}], "fix", "denies nothing (Audit)", id="only audits"
        ),
        pytest.param([refused(403)], "skip", "permission denied", id="not allowed to look"),
    ],
)
async def test_a_policy_counts_when_it_is_bound_and_denies(answers, verdict, told):
    left = list(answers)

    found = await cluster_checks.check_policy(Asked(**{"lamina-nodelayers": lambda body, query: left.pop(0)}))

    assert ("policy", verdict) == (found.subject, found.verdict)
    assert told in found.told


NOON = 1772366400.0


@pytest.mark.parametrize(
    ("here", "verdict", "told", "ahead"),
    [
        pytest.param(NOON + 0.3, "ok", "agree to 1 s", 0.0, id="together"),
        pytest.param(NOON - 3.0, "ok", "agree to 3 s", 3.0, id="a little behind"),
        pytest.param(NOON - 90.0, "fix", "this machine is 90 s behind the API server", 90.0, id="behind"),
        pytest.param(NOON + 3601.0, "fix", "this machine is 3600 s ahead of the API server", -3600.0, id="ahead"),
    ],
)
async def test_clocks_are_compared_by_the_time_of_a_review(here, verdict, told, ahead):
    review = {"metadata": {"creationTimestamp": "2026-03-01T12:00:00Z"}}

    found, by = await cluster_checks.check_clock(Asked(selfsubjectreviews=review), lambda: here)

    assert (verdict, ahead) == (found.verdict, by)
    assert told in found.told


@pytest.mark.parametrize("answer", [refused(403), None, {"metadata": {}}], ids=["forbidden", "too old", "no time"])
async def test_a_server_that_does_not_tell_the_time_is_not_judged(answer):
    found, by = await cluster_checks.check_clock(Asked(selfsubjectreviews=answer))

    assert ("skip", None) == (found.verdict, by)


async def test_a_server_in_trouble_is_not_mistaken_for_one_without_a_policy():
    with pytest.raises(ApiError):
        await cluster_checks.check_policy(Asked(**{"lamina-nodelayers": refused(500)}))
