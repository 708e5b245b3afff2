"""
Lamina decides kube-scheduler's own integration cases as these demand.

The end-to-end story `upstream-cases` gives the same cases to the real kube-scheduler, which proves that they are retold
correctly.
"""

from collections import Counter

import pytest

from tests.upstream_cases.all_cases import all_cases, plain_cases
from tests.upstream_cases.case_model import differences
from tests.upstream_cases.lamina_cluster import play


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in plain_cases()])
def test_a_case_of_upstream_ends_as_upstream_demands(case):
    assert differences(case, play(case)) == []


def test_every_case_has_an_id_of_its_own():
    names = Counter(case.id for case in all_cases())

    assert [name for name, count in names.items() if count > 1] == []
