"""
What `lamina new-agent` writes: which files, from which texts, under which names.

The texts lie in `new_agent_files`. They know three words: ``@name@`` as given, ``@module@`` and ``@Class@`` made of it. The
same name gives the same bytes.
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
# Path in the folder → the text it is made of.
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
# Short enough for every object in the manifest, and for lines that contain it.
NAME: Final = re.compile(r"[a-z][-a-z0-9]{0,30}[a-z0-9]")
# Modules the package needs, or sits beside, wherever it is installed: one of the same name would be taken for them.
NEEDED: Final = frozenset({"hatchling", "lamina", "msgspec", "numpy", "pip", "pytest", "ruff", "src", "tests"})


def check_name(name: str) -> None:
    """Refuse a name nothing can be called by, or that somebody has."""
    from lamina.scheduling.plugins.in_tree import agents, registry

    if not NAME.fullmatch(name):
        raise _wrong(
            name,
            "is no name for an agent; write 2 to 32 small letters, digits and dashes, a letter first, as in quiet-nodes",
        )
    module = module_of(name)
    if keyword.iskeyword(module) or module in NEEDED or _is_there(module):
        raise _wrong(name, f"would be a module {module}, which there is already; try {name}-agent")
    known = agents(entry_points=False)
    verbs = {verb for one in known for verb in (*known[one].predicates, *known[one].priorities)}
    if name in known or name in verbs:
        raise _wrong(name, f"is an agent or a verb that comes with Lamina; try my-{name}")
    if class_of(name) in registry(entry_points=False):
        raise _wrong(name, f"would be a plugin {class_of(name)}, which comes with Lamina; try my-{name}")


def module_of(name: str) -> str:
    """Say what the agent's module is called."""
    return name.replace("-", "_")


def class_of(name: str) -> str:
    """Say what the agent's plugin is called."""
    return "".join(part.capitalize() for part in name.split("-"))


def files(name: str) -> dict[str, str]:
    """Return the texts of all files, by their path in the folder."""
    folder = resources.files("lamina.cli").joinpath(TEMPLATES)
    return {
        _filled(path, name): _filled(folder.joinpath(text).read_text(encoding="utf-8"), name)
        for path, text in FILES.items()
    }


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write them into a folder that is not there yet."""
    try:
        folder.mkdir(parents=True)
        try:
            for path, text in texts.items():
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
        except BaseException:
            # Half a package would only be in the way of the next try.
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except FileExistsError as error:
        where = str(error.filename or folder)
        raise InputError.one(where, "is there already; choose another NAME, or another place with --out") from None
    except OSError as error:
        raise InputError.one(str(error.filename or folder), f"cannot be written: {error.strerror or error}") from None


def _is_there(module: str) -> bool:
    """Whether somebody who imports a module of this name gets one."""
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:
        # It is there, and does not say where it comes from.
        return True


def _filled(text: str, name: str) -> str:
    return text.replace("@name@", name).replace("@module@", module_of(name)).replace("@Class@", class_of(name))


def _wrong(name: str, problem: str) -> InputError:
    return InputError.one("NAME", f"{shown(name)} {problem}")
