"""Lamina places pods with claims in kube-scheduler's own integration cases as these demand."""

import pytest

from tests.upstream_cases.case_model import differences
from tests.upstream_cases.lamina_cluster import play
from tests.upstream_cases.volume_cases import cases, preemption_cases


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in (*cases(), *preemption_cases())])
def test_a_case_of_upstream_with_claims_ends_as_upstream_demands(case):
    assert differences(case, play(case)) == []
