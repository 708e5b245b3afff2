"""
List the benchmarks, or run one: `bench.py [NAME]`.

Benchmarks are the modules of benchmarks/. Each prints its own table and ends with one line of JSON, whose key
"benchmark" is its name. The numbers are for people and for comparison; no test fails on them.
"""

import os
import sys
from pathlib import Path

import runnables

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"

if __name__ == "__main__":
    # As the command `lamina` does, and before a benchmark imports numpy.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(runnables.command("benchmark", "benchmarks", BENCHMARKS, sys.argv[1:]))
