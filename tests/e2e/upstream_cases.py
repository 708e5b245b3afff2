"""
kube-scheduler and Lamina get the cases that are retold from kube-scheduler's own integration tests.

kube-scheduler's results prove that the cases are retold correctly. CASES selects those whose name contains a text, and
VERSION another kube-scheduler than the testbed's.
"""

import asyncio
import os
from typing import Any

from testbed import building
from tests.e2e import _upstream_kube
from tests.upstream_cases import lamina_cluster
from tests.upstream_cases.all_cases import all_cases
from tests.upstream_cases.case_model import UpstreamCase, differences

NAME = "upstream-cases"
SUMMARY = (
    "kube-scheduler and Lamina get retold cases of kube-scheduler's integration tests; CASES selects some by name."
)
NEEDS = ()


def main() -> dict[str, Any]:
    """Play all cases; raise if kube-scheduler or Lamina differs."""
    version, text = os.environ.get("VERSION", ""), os.environ.get("CASES", "")
    program = str(building.ensure("kube-scheduler", version) if version else building.ensure("kube-scheduler"))
    chosen = [case for case in all_cases() if text in case.id]
    ours = [differences(case, lamina_cluster.play(case)) for case in chosen]
    theirs = [asyncio.run(decided(case, program)) for case in chosen]
    for name, found in (("lamina", ours), ("kube-scheduler", theirs)):
        for line in (line for one in found for line in one):
            print(f"  {name}: {line}", flush=True)
    assert not any(ours), "Lamina differs"
    assert not any(theirs), "a case is not retold correctly: kube-scheduler differs"
    return {
        "cases": len(chosen),
        "lamina_equal": sum(not one for one in ours),
        "kube_scheduler_equal": sum(not one for one in theirs),
    }


async def decided(case: UpstreamCase, program: str) -> list[str]:
    """Return what kube-scheduler does differently in a case."""
    found = differences(case, await _upstream_kube.play(case, program))
    print(f"  {'differs' if found else 'equal'}: {case.id}", flush=True)
    return found
