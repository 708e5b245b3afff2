"""
Modules that a person starts by NAME from a list: benchmarks and end-to-end stories.

A runnable is a module that states NAME and SUMMARY (and NEEDS, if it needs programs) as plain literals at its top
level. Its `main() -> dict` prints a report and returns the data for the JSON line. Listing reads the literals without
importing the module, so a list is quick and a broken module does not hide others. Called by bench.py and e2e.py.
"""

import ast
import difflib
import importlib.util
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
STATED: Final = {"NAME", "SUMMARY", "NEEDS"}


@dataclass(frozen=True, slots=True)
class Runnable:
    """A module that can be run by its name."""

    path: Path
    name: str
    summary: str
    needs: tuple[str, ...] = ()


class MalformedError(Exception):
    """A module among the runnables does not state what a runnable must."""

    def __init__(self, path: Path, lacking: str) -> None:
        super().__init__(path, lacking)
        self.path, self.lacking = path, lacking

    def __str__(self) -> str:
        return f"{self.path.name} has no {self.lacking}: a runnable states NAME and SUMMARY and has main() -> dict"


def read(path: Path) -> Runnable:
    """Read a module's literals without importing it."""
    stated: dict[str, Any] = {}
    functions = set()
    for statement in ast.parse(path.read_text(encoding="utf-8"), filename=str(path)).body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if name in STATED:
                stated[name] = ast.literal_eval(value)
            case ast.FunctionDef(name=name):
                functions.add(name)
    for lacking in ("NAME", "SUMMARY"):
        if not stated.get(lacking):
            raise MalformedError(path, lacking)
    if "main" not in functions:
        raise MalformedError(path, "main")
    return Runnable(path, stated["NAME"], stated["SUMMARY"], tuple(stated.get("NEEDS", ())))


def find(folder: Path) -> list[Runnable]:
    """Return every runnable of a folder, by name; modules that start with an underscore or with test are skipped."""
    paths = [path for path in folder.glob("*.py") if not path.name.startswith(("_", "test", "conftest"))]
    return sorted((read(path) for path in paths), key=lambda runnable: runnable.name)


def run(runnable: Runnable) -> dict[str, Any]:
    """Import a runnable, run it and return the result of its main."""
    # Its own folder comes first on the path, as for a script; then the checkout, for the testbed.
    sys.path[:0] = [str(runnable.path.parent), str(ROOT)]
    spec = importlib.util.spec_from_file_location(runnable.path.stem, runnable.path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[runnable.path.stem] = module
    spec.loader.exec_module(module)
    return dict(module.main() or {})


def command(kind: str, plural: str, folder: Path, arguments: Sequence[str]) -> int:
    """
    List the runnables of *folder*, or run the named one.

    A run ends with one line of JSON, whose key *kind* is the name of the runnable. Exit codes: 0 done, 1 it cannot run
    here, 2 there is no runnable of this name.
    """
    try:
        known = {runnable.name: runnable for runnable in find(folder)}
    except MalformedError as error:
        print(f"lamina: {error}", file=sys.stderr)
        return 1
    if not arguments:
        print(listing(plural, list(known.values())))
        return 0
    name = arguments[0]
    if len(arguments) > 1 or name not in known:
        print(f"lamina: {unknown(kind, ' '.join(arguments), list(known))}", file=sys.stderr)
        return 2
    missing = [program for program in known[name].needs if shutil.which(program) is None]
    if missing:
        print(f"lamina: {name} needs {', '.join(missing)} on the PATH", file=sys.stderr)
        return 1
    result = run(known[name])
    print(json.dumps({kind: name, **result}), flush=True)
    return 0


def listing(plural: str, known: Sequence[Runnable]) -> str:
    """Return the list of runnables as text."""
    if not known:
        return f"There are no {plural} yet."
    width = max(len(runnable.name) for runnable in known)
    return "\n".join(f"  {runnable.name:<{width}}  {runnable.summary}" for runnable in known)


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """Return the message for an unknown name."""
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return f"there is no {kind} {name!r}; " + (f"the nearest is {nearest[0]!r}" if nearest else "there is none at all")
