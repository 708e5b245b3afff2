"""The façade and a real API server get the same SEQUENCES (2000) random sequences of requests, drawn with SEED (1)."""

import os
from typing import Any

from testbed import Testbed
from tests.integration.facade.differential import FLAGS, run_sequences

NAME = "differential"
SUMMARY = "The façade and a real API server get the same SEQUENCES (2000) random sequences of requests; SEED (1)."
NEEDS = ()


def main() -> dict[str, Any]:
    """Run the sequences; raise if an answer differs and no entry of `known_differences` explains it."""
    count, seed = int(os.environ.get("SEQUENCES", "2000")), int(os.environ.get("SEED", "1"))
    with Testbed.start(flags=FLAGS) as bed:
        found = run_sequences(bed, seed, range(count))
    for difference in found.differences:
        print(difference.text())
    assert not found.differences, f"{len(found.differences)} differences"
    return found.report(count)
