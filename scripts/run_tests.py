"""
Run pytest with the given arguments; in CI, repeat failed tests that depend on real time.

    python scripts/run_tests.py -n 2 --dist worksteal

A failed test without the marker `realtime` fails the run at once. One or two failed tests with the marker run again,
one after the other, after all other tests. The run passes only if they pass then, and each is printed as `FLAKY
<nodeid>`. Three or more fail the run. tests/realtime.py has the part inside pytest, whose closing line is printed last.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import realtime  # noqa: E402 - found only with the line above

# The slowest tests, for a reader of CI's output who wants to make it faster.
SLOWEST = ("--durations=20", "--durations-min=5")


def main(words: Sequence[str], folder: Path = ROOT) -> int:
    """Run the tests in *folder*; return pytest's exit code, that of the second run if there was one."""
    if os.environ.get("CI", "").lower() not in {"true", "1"}:
        return pytest(words, folder, {})
    with tempfile.TemporaryDirectory(prefix="lamina-tests-") as temporary:
        note = Path(temporary) / "failed.json"
        code = pytest([*SLOWEST, *words], folder, {realtime.FAILED_TO: str(note)})
        failed = realtime.read(note)
    if code != 1 or failed is None or not failed.deserves_second_look:
        return code
    # One process, whatever the first run used; the classic summary is enough.
    return pytest(["-n", "0", *failed.realtime], folder, {realtime.SECOND_LOOK: "yes"})


def pytest(words: Sequence[str], folder: Path, more: dict[str, str]) -> int:
    """Run pytest once."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=folder, env={**os.environ, **more}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
