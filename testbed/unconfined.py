"""
Runs between containerd and runc: removes the seccomp filter from a container's configuration.

Our runc is built without the C library for such filters, and rejects a container that has one, as the sandbox of every
pod does. The containers of a testbed only idle.

Started as a program, so it uses the standard library only:

    unconfined.py <runc> <runc's own arguments>
"""

import json
import os
import sys
from pathlib import Path

BUNDLE = "--bundle"


def lift(bundle: Path) -> None:
    """Remove the filter from a bundle's configuration."""
    path = bundle / "config.json"
    config = json.loads(path.read_bytes())
    if config.get("linux", {}).pop("seccomp", None) is not None:
        path.write_text(json.dumps(config), encoding="utf-8")


def main(runc: str, arguments: list[str]) -> None:
    """Remove the filter if runc is to create a container; then replace this process by runc."""
    if BUNDLE in arguments:
        lift(Path(arguments[arguments.index(BUNDLE) + 1]))
    os.execv(runc, [runc, *arguments])  # noqa: S606 - the runc that the testbed built


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
