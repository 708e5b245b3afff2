"""
The files of `lamina new-agent`: paths, templates and names.

The templates are in `new_agent_files`. They have three placeholders: ``@name@`` as given, and ``@module@`` and
``@Class@`` derived from it. The same name always gives the same bytes.
"""

import importlib.util
import keyword
import re
import shutil
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

from lamina.model.errors import InputError
from lamina.model.plain import shown

TEMPLATES: Final = "new_agent_files"
# Path in the folder → name of its template.
FILES: Final = {
    "README.md": "README.md.in",
    "pyproject.toml": "pyproject.toml.in",
    "Containerfile": "Containerfile.in",
    "deploy.yaml": "deploy.yaml.in",
    "ask.json": "ask.json.in",
    "src/@module@/__init__.py": "init.py.in",
    "src/@module@/plugin.py": "plugin.py.in",
    "tests/test_plugin.py": "test_plugin.py.in",
}
# Short enough for every object name in the manifest, and for the lines that contain it.
NAME: Final = re.compile(r"[a-z][-a-z0-9]{0,30}[a-z0-9]")
# Modules that the package needs or is installed beside: a module of the same name would shadow them.
NEEDED: Final = frozenset({"hatchling", "lamina", "msgspec", "numpy", "pip", "pytest", "ruff", "src", "tests"})


def check_name(name: str) -> None:
    """Raise InputError for a name that is not valid, or already in use."""
    from lamina.scheduling.plugins.in_tree import agents, registry

    if not NAME.fullmatch(name):
        raise _wrong(
            name,
            "is not a valid agent name; write 2 to 32 lowercase letters, digits and dashes, a letter first, as in quiet-nodes",
        )
    module = module_of(name)
    if keyword.iskeyword(module) or module in NEEDED or _is_there(module):
        raise _wrong(name, f"would be the module {module}, which exists; try {name}-agent")
    known = agents(entry_points=False)
    verbs = {verb for one in known for verb in (*known[one].predicates, *known[one].priorities)}
    if name in known or name in verbs:
        raise _wrong(name, f"is an agent or a verb of Lamina; try my-{name}")
    if class_of(name) in registry(entry_points=False):
        raise _wrong(name, f"would be the plugin {class_of(name)}, which Lamina has; try my-{name}")


def module_of(name: str) -> str:
    """Return the name of the agent's module."""
    return name.replace("-", "_")


def class_of(name: str) -> str:
    """Return the name of the agent's plugin."""
    return "".join(part.capitalize() for part in name.split("-"))


def files(name: str) -> dict[str, str]:
    """Return the text of every file, by its path in the folder."""
    folder = resources.files("lamina.cli").joinpath(TEMPLATES)
    return {
        _filled(path, name): _filled(folder.joinpath(text).read_text(encoding="utf-8"), name)
        for path, text in FILES.items()
    }


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the files into a new folder. Raises InputError if it exists, and removes it again if writing fails."""
    try:
        folder.mkdir(parents=True)
        try:
            for path, text in texts.items():
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
        except BaseException:
            # A half-written package would block the next attempt.
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except FileExistsError as error:
        where = str(error.filename or folder)
        raise InputError.one(where, "exists; choose another NAME, or another folder with --out") from None
    except OSError as error:
        raise InputError.one(str(error.filename or folder), f"cannot be written: {error.strerror or error}") from None


def _is_there(module: str) -> bool:
    """Return whether a module of this name can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:
        # The module is loaded but has no spec.
        return True


def _filled(text: str, name: str) -> str:
    return text.replace("@name@", name).replace("@module@", module_of(name)).replace("@Class@", class_of(name))


def _wrong(name: str, problem: str) -> InputError:
    return InputError.one("NAME", f"{shown(name)} {problem}")
