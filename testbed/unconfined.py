"""
Stands between containerd and runc: takes the filter of system calls out of what a container is to be run with.

Our runc is built without the C library that such filters need, and refuses a container that asks for one; the sandbox
of every pod does. A testbed's containers do nothing but idle.

Started as a program, so it needs nothing but the standard library:

    unconfined.py <runc> <runc's own arguments>
"""

import json
import os
import sys
from pathlib import Path

BUNDLE = "--bundle"


def lift(bundle: Path) -> None:
    """Take the filter out of a bundle's configuration."""
    path = bundle / "config.json"
    config = json.loads(path.read_bytes())
    if config.get("linux", {}).pop("seccomp", None) is not None:
        path.write_text(json.dumps(config), encoding="utf-8")


def main(runc: str, arguments: list[str]) -> None:
    """Become runc, after a look at the container it is to make."""
    if BUNDLE in arguments:
        lift(Path(arguments[arguments.index(BUNDLE) + 1]))
    os.execv(runc, [runc, *arguments])  # noqa: S606 - the runc that the testbed built


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
