"""deploy/: what `kubectl apply -f deploy/rbac` grants, and the order and the effect of the steps of its README."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
README = (DEPLOY / "README.md").read_text(encoding="utf-8")
OPTIONAL = sorted((DEPLOY / "rbac" / "optional").glob("*.yaml"))
OURS = "registry.example/lamina:set-me"
THEIRS = "registry.example/kube-scheduler:set-me"


def commands() -> list[str]:
    """Return the commands of the README in the order of the page."""
    return [
        line for block in re.findall(r"```sh cluster\n(.*?)```", README, flags=re.DOTALL) for line in block.splitlines()
    ]


def rules(folder: Path) -> set[tuple[str, str]]:
    """Return (verb, resource) of all roles in the files of a folder, as kubectl reads it: without the folders below."""
    documents = [one for path in folder.glob("*.yaml") for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return {
        (verb, resource)
        for one in documents
        if one["kind"] in {"ClusterRole", "Role"}
        for rule in one["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        pytest.param("delete", "pods", id="delete pods"),
        pytest.param("create", "pods/eviction", id="evict pods"),
        pytest.param("patch", "nodes", id="patch nodes"),
        pytest.param("get", "secrets", id="read secrets"),
    ],
)
def test_a_strong_permission_is_in_the_optional_folder_only(verb, resource):
    assert (verb, resource) not in rules(DEPLOY / "rbac")
    assert (verb, resource) in rules(DEPLOY / "rbac" / "optional")


@pytest.mark.parametrize("path", OPTIONAL, ids=lambda path: path.stem)
def test_an_optional_file_says_what_it_grants_and_what_needs_it(path):
    first, second, *rest = path.read_text(encoding="utf-8").splitlines()
    head = "\n".join([first, second, *rest[:3]])

    assert first.startswith("# Optional: ")
    assert "grants" in first
    assert "# Needed by: " in head
    assert f"`rbac/optional/{path.name}`" in README


def test_the_image_is_set_before_anything_is_applied():
    lines = commands()
    applied = next(number for number, line in enumerate(lines) if line.startswith("kubectl apply"))

    assert any(OURS in line for line in lines[:applied])
    extender = next(number for number, line in enumerate(lines) if "apply" in line and "deploy/extender" in line)
    assert any(THEIRS in line for line in lines[:extender])


@pytest.mark.parametrize(
    ("variable", "placeholder"),
    [pytest.param("IMAGE", OURS, id="ours"), pytest.param("SCHEDULER", THEIRS, id="kube-scheduler")],
)
def test_the_commands_that_set_an_image_leave_no_placeholder_and_no_other_file(tmp_path, variable, placeholder):
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    before = sorted((tmp_path / "deploy").rglob("*"))
    image = "registry.example/team/it@sha256:" + "0" * 64
    first = next(number for number, line in enumerate(commands()) if line.startswith("find") and placeholder in line)
    text = "\n".join([f"{variable}={image}", *commands()[first : first + 2]])
    subprocess.run(["bash", "-euc", text], cwd=tmp_path, check=True)

    assert before == sorted((tmp_path / "deploy").rglob("*"))
    written = [path.read_text(encoding="utf-8") for path in before if path.suffix == ".yaml"]
    assert not any(placeholder in one for one in written)
    assert any(f"image: {image}\n" in one for one in written)


def test_every_file_of_the_readme_is_there():
    named = {word for line in commands() for word in re.findall(r"-f (deploy/[\w./-]+)", line)}

    assert [] == sorted(one for one in named if not (ROOT / one).exists())
