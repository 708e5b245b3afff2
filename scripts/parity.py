"""
Compare Lamina with the recorded answers of kube-scheduler: `parity.py [--differences N] [FAMILY...]`.

Prints the first N differences in words, those that are not known ones first, and ends with one line of JSON. Needs no Go and no kube-scheduler. Called by
`make parity`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.parity.case_files import recordings  # noqa: E402 - the path is set above
from tests.parity.parity_report import ParityReport, compare_files  # noqa: E402

SHOWN: Final = 20
"""Differences that are printed unless another number is requested."""


def main(arguments: list[str]) -> int:
    """Compare the requested families; all if none is named."""
    parser = argparse.ArgumentParser(description="Compare Lamina with recorded answers of kube-scheduler.")
    parser.add_argument("--differences", type=int, default=SHOWN, metavar="N", help="differences to print")
    parser.add_argument("families", nargs="*")
    options = parser.parse_args(arguments)
    paths = [path for path in recordings() if not options.families or path.name.partition(".")[0] in options.families]
    found = ParityReport()
    for one in compare_files(paths):
        found.add(one)
    shown = sorted(found.different, key=lambda one: not one.unknown)
    for one in shown[: options.differences]:
        print(f"{one.family} {one.number}: {'; '.join(one.differences)}")
    print(json.dumps(found.figures()))
    return 1 if found.unsound or found.unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
