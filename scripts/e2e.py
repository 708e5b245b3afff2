"""
List the end-to-end stories, or run one: `e2e.py [NAME]`.

Stories are the modules of tests/e2e/. Each lists in NEEDS the programs it starts, prints its progress, and ends with
one line of JSON whose key "story" is its name. A story that fails raises.
"""

import sys
from pathlib import Path

import runnables

STORIES = Path(__file__).resolve().parent.parent / "tests" / "e2e"

if __name__ == "__main__":
    sys.exit(runnables.command("story", "end-to-end stories", STORIES, sys.argv[1:]))
