"""
Build wheel and sdist, install each into an empty environment and run it there: `make dist`.

Ends with one line of JSON: the files in dist/, their sizes, and the version that each reports after its installation.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
DIST: Final = ROOT / "dist"
TIMES: Final = {"SOURCE_DATE_EPOCH": "315532800"}
"""The first time that a zip file can hold, so that the same sources give the same files."""


def main() -> int:
    """Build, install, run, print."""
    DIST.mkdir(exist_ok=True)
    for path in DIST.iterdir():
        path.unlink()
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(DIST)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env={**os.environ, **TIMES})
    report = {path.name: tried(path) for path in sorted(DIST.iterdir())}
    print(json.dumps({"dist": report}))
    return 0


def tried(path: Path) -> dict[str, Any]:
    """Install one file into an empty environment, and return what it says and does there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"--constraint={ROOT / 'constraints.txt'}", str(path)], check=True, cwd=folder)
        lamina = str(python.with_name("lamina"))
        version = subprocess.run([lamina, "--version"], check=True, cwd=folder, capture_output=True, text=True).stdout
        # Needs the examples, which are in the package.
        tour = subprocess.run([lamina, "demo"], check=False, cwd=folder, capture_output=True, text=True)
    return {"bytes": path.stat().st_size, "version": version.strip(), "demo": tour.returncode == 0}


if __name__ == "__main__":
    sys.exit(main())
