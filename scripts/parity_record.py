"""
Record the answers of a real kube-scheduler to generated cases: `parity_record.py [VERSION [COUNT [FAMILY...]]]`.

Writes tests/data/parity/FAMILY.jsonl.zst, one file for each family. Called by `make parity-record`.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from testbed import building, parts  # noqa: E402 - the path is set above
from tests.parity.case_files import DATA, RecordedCase, RecordingHeader, write_recording  # noqa: E402
from tests.parity.case_generator import FAMILIES, SEED, draw_cases, fixtures  # noqa: E402
from tests.parity.recording.recorder import GATES, CaseRecorder  # noqa: E402

COUNT: Final = 450
"""Cases of each family, unless `COUNTS` has another number."""
COUNTS: Final = {"inter-pod-affinity": 700, "preemption": 900, "mixed": 700}
"""Families with more cases: only some of their cases show what the family is about."""


BATCHING_SINCE: Final = (1, 35)
"""First version of Kubernetes with the feature gate that `GATES` switches off."""


def gates_of(version: str) -> tuple[str, ...]:
    """Return the flags for feature gates that this version knows."""
    return GATES if tuple(map(int, version.split(".")[:2])) >= BATCHING_SINCE else ()


async def record_family(family: str, count: int, version: str, folder: Path) -> int:
    """Record one family with a scheduler of its own; return the number of cases."""
    program = str(building.ensure("kube-scheduler", version))
    shared = fixtures(family)
    recorder = CaseRecorder()
    found: list[RecordedCase] = []
    cases = list(draw_cases(family, count))
    async with recorder.running(program, shared, gates_of(version), cases):
        async for one in recorder.record(cases):
            found.append(one)  # noqa: PERF401 - a comprehension would hide how far a failed recording came
    header = RecordingHeader(f"kube-scheduler {version}", SEED, shared)
    write_recording(folder / f"{family}.jsonl.zst", header, found)
    return len(found)


def main(arguments: list[str]) -> int:
    """Record the requested families."""
    version = arguments[0] if arguments else parts.KUBERNETES
    count = int(arguments[1]) if len(arguments) > 1 else 0
    began, cases = time.monotonic(), 0
    for family in arguments[2:] or list(FAMILIES):
        started = time.monotonic()
        recorded = asyncio.run(record_family(family, count or COUNTS.get(family, COUNT), version, DATA))
        cases += recorded
        print(f"{family}: {recorded} cases in {time.monotonic() - started:.1f} s", flush=True)
    seconds = time.monotonic() - began
    size = sum(path.stat().st_size for path in DATA.glob("*.zst"))
    print(json.dumps({"cases": cases, "seconds": round(seconds, 1), "bytes": size, "version": version}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
