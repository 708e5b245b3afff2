"""Injected faults: which requests a rule applies to, for how long, and which rules are refused."""

import msgspec
import pytest

from lamina.apiserver.api_faults import MOST_RULES, REASONS, ApiFaults, FaultRule, decode_rule
from lamina.simulator.facade.api_errors import StatusError

PODS = "/api/v1/namespaces/default/pods"


def test_a_rule_applies_to_as_many_requests_as_it_says():
    faults = ApiFaults()
    faults.add(FaultRule(status=500, times=2))

    assert [500, 500, None] == [rule and rule.status for rule in (faults.take("GET", PODS, watch=False) for _ in "abc")]


def test_of_two_rules_the_older_one_applies_first():
    faults = ApiFaults()
    faults.add(FaultRule(status=410))
    faults.add(FaultRule(status=429))

    assert [410, 429] == [faults.take("GET", PODS, watch=False).status for _ in "ab"]


@pytest.mark.parametrize(
    ("rule", "method", "path", "watch", "applies"),
    [
        pytest.param(FaultRule(status=500), "GET", PODS, False, True, id="no condition"),
        pytest.param(FaultRule("GET", status=500), "GET", PODS, False, True, id="the method"),
        pytest.param(FaultRule("GET", status=500), "POST", PODS, False, False, id="another method"),
        pytest.param(FaultRule(path=PODS, status=500), "GET", PODS, False, True, id="the path"),
        pytest.param(
            FaultRule(path="/api/v1/*/pods", status=500), "GET", PODS, False, True, id="a star, also for slashes"
        ),
        pytest.param(FaultRule(path="/api/v1/nodes", status=500), "GET", PODS, False, False, id="another path"),
        pytest.param(FaultRule(watch=True, status=500), "GET", PODS, False, False, id="watches only"),
        pytest.param(FaultRule(watch=False, status=500), "GET", PODS, True, False, id="no watches"),
        pytest.param(FaultRule(watch=True, status=500), "GET", PODS, True, True, id="a watch"),
    ],
)
def test_a_rule_applies_to_requests_that_match_it(rule, method, path, watch, applies):
    faults = ApiFaults()
    faults.add(rule)

    assert applies is (faults.take(method, path, watch=watch) is not None)


@pytest.mark.parametrize("status", REASONS)
def test_an_error_is_a_status_object_as_a_real_server_gives_it(status):
    found = FaultRule(status=status).error().status()

    assert (status, "Status", "Failure") == (found["code"], found["kind"], found["status"])
    assert found["reason"]
    assert (status in {429, 503, 504}) is ("retryAfterSeconds" in (found.get("details") or {}))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        pytest.param(FaultRule(status=299), "299 is no error", id="a status that is no error"),
        pytest.param(FaultRule(), "has no effect", id="nothing to do"),
        pytest.param(FaultRule("get", status=500), "write GET", id="lower case"),
        pytest.param(FaultRule(close_watches=True, delay=1.0), "remove the delay", id="a late end of watches"),
    ],
)
def test_a_rule_without_sense_is_refused(rule, said):
    with pytest.raises(StatusError, match=said) as raised:
        ApiFaults().add(rule)
    assert 400 == raised.value.code


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"statuss": 500}, id="unknown field"),
        pytest.param({"status": "500"}, id="text for a number"),
        pytest.param({"status": 500, "times": 0}, id="no times"),
        pytest.param({"status": 500, "delay": 31}, id="too long a delay"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(rule):
    with pytest.raises(StatusError, match="cannot be read"):
        decode_rule(msgspec.json.encode(rule))


def test_the_number_of_rules_is_bounded():
    faults = ApiFaults()
    for _ in range(MOST_RULES):
        faults.add(FaultRule(status=500))

    with pytest.raises(StatusError, match="which is the limit"):
        faults.add(FaultRule(status=500))
