"""
Run pytest with the arguments given; in CI, look a second time at failed tests that need real time.

    python scripts/run_tests.py -n 2 --dist worksteal

A test that fails without the marker `realtime` fails the run at once. One or two with the marker run once more, one after
the other, when all the rest is done: the run passes only if they pass then, and each is printed as `FLAKY <nodeid>`. Three
or more fail the run. tests/realtime.py has the part that lives inside pytest, whose closing line is the last one printed.
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

# What a reader of CI's words looks for who wants it to be quicker.
SLOWEST = ("--durations=20", "--durations-min=5")


def main(words: Sequence[str], folder: Path = ROOT) -> int:
    """Run the tests in *folder*; returns pytest's exit code, the second run's if there was one."""
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
