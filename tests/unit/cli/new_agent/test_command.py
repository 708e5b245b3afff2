"""`lamina new-agent`: the folder it writes works as it is, and names that cannot work are refused."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import lamina
from lamina.cli.extender import extender
from lamina.cli.new_agent.command import new_agent
from lamina.cli.new_agent.folder import FILES, TEMPLATES, check_name, class_of, files
from lamina.model.errors import InputError
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.plugins.agents.foo import Foo
from lamina.services.extender.kube_scheduler_config import ExtenderTarget, kube_configuration
from lamina.wire.extender.arguments import decode_extender_args

SHIPPED = Path(__file__).resolve().parents[4] / "deploy" / "extender" / "one-process.yaml"
LONGEST = "x" * 32
NAMES = [
    pytest.param("quiet-nodes", id="two words"),
    pytest.param("ab", id="the shortest"),
    pytest.param(LONGEST, id="the longest"),
    pytest.param("a-1--b", id="digits and dashes"),
    pytest.param("none", id="a word of Python's, capitalised"),
    pytest.param("final", id="a word the plugin uses, capitalised"),
]


def made(out: Path, name: str = "quiet-nodes") -> Path:
    """Run the command."""
    new_agent.main([name, "--out", str(out)], standalone_mode=False)
    return out / name


def texts(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program in a folder that was not installed; Lamina itself is found where it lies."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    environment |= {"PYTHONPATH": str(Path(lamina.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    # Whatever else is installed here has no say.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


# ------------------------------------------------------------------------------------------------------- what is written


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quiet-nodes", LONGEST])
def test_the_tests_of_a_new_agent_pass(tmp_path, name):
    ended = run(made(tmp_path, name), "pytest", "-q", "-p", "no:cacheprovider", "-W", "error")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "10 passed" in ended.stdout


@pytest.mark.slow
@pytest.mark.needs("ruff")
@pytest.mark.parametrize("name", NAMES)
def test_a_new_agent_is_clean(tmp_path, name):
    folder = made(tmp_path, name)

    for arguments in (["check"], ["format", "--check"]):
        ended = run(folder, "ruff", *arguments, "--no-cache", ".")
        assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.needs("mypy")
def test_the_types_of_a_new_agent_are_right(tmp_path):
    ended = run(made(tmp_path), "mypy", "--strict", "--cache-dir", os.devnull, "src")

    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("name", NAMES)
def test_modules_of_a_new_agent_are_python(name):
    for path, text in files(name).items():
        if path.endswith(".py"):
            compile(text, path, "exec")


def test_the_same_name_gives_the_same_bytes(tmp_path):
    assert texts(made(tmp_path / "one")) == texts(made(tmp_path / "two"))


def test_every_text_is_used_and_every_word_filled_in(tmp_path):
    there = {path.name for path in (Path(lamina.__file__).parent / "cli" / TEMPLATES).iterdir()}
    written = texts(made(tmp_path))

    assert there == set(FILES.values())
    assert len(FILES) == len(written)
    assert [] == [
        path for path, text in written.items() for word in (b"@name@", b"@module@", b"@Class@") if word in text
    ]


def test_both_entry_points_name_what_is_there(tmp_path, monkeypatch):
    folder = made(tmp_path)
    points = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]

    assert {
        "lamina.agents": {"quiet-nodes": "quiet_nodes:AGENT"},
        "lamina.plugins": {"QuietNodes": "quiet_nodes.plugin:QuietNodesPlugin"},
    } == points
    assert "\nAGENT: Final = SchedulingAgent(\n" in (folder / "src/quiet_nodes/__init__.py").read_text(encoding="utf-8")
    assert "\nclass QuietNodesPlugin:\n" in (folder / "src/quiet_nodes/plugin.py").read_text(encoding="utf-8")


def test_the_manifest_asks_as_the_extender_would_have_it(tmp_path):
    """What it carries about the extender is what `--print-config` prints."""
    documents = list(yaml.safe_load_all((made(tmp_path) / "deploy.yaml").read_text(encoding="utf-8")))
    carried = next(one for one in documents if one["kind"] == "ConfigMap")["data"]["scheduler.yaml"]
    verbs = {"quiet-nodes": Foo.name}
    agent = SchedulingAgent(name="quiet-nodes", summary="", plugins=(Foo,), predicates=verbs, priorities=verbs)
    printed = kube_configuration(
        [ExtenderTarget((agent,))], ["quiet-nodes-scheduler"], namespace="quiet-nodes-scheduler"
    )

    assert yaml.safe_load(printed) == yaml.safe_load(carried)


def test_the_manifest_says_how_to_print_what_it_carries(tmp_path):
    """With the command's own words."""
    (line,) = re.findall("^# lamina extender (.*)$", files("quiet-nodes")["deploy.yaml"], re.MULTILINE)
    said = extender.make_context("extender", line.split()).params

    assert ("quiet-nodes", ("quiet-nodes-scheduler",), "quiet-nodes-scheduler", True) == (
        said["names"],
        said["scheduler_names"],
        said["namespace"],
        said["print_config"],
    )


def test_the_lease_of_the_manifest_is_the_one_that_its_role_names():
    documents = [one for one in yaml.safe_load_all(files("quiet-nodes")["deploy.yaml"]) if one]
    role = next(one for one in documents if one["kind"] == "Role")
    carried = next(one for one in documents if one["kind"] == "ConfigMap")["data"]["scheduler.yaml"]
    election = yaml.safe_load(carried)["leaderElection"]

    assert (role["metadata"]["namespace"], role["rules"][1]["resourceNames"]) == (
        election["resourceNamespace"],
        [election["resourceName"]],
    )


def test_probes_of_the_manifest_look_at_pages_that_the_kubelet_reaches():
    """And the pod is as those of deploy/extender are: the extender first, tolerations, bounds."""
    documents = [one for one in yaml.safe_load_all(files("quiet-nodes")["deploy.yaml"]) if one]
    pod = next(one for one in documents if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    shipped = next(
        one for one in yaml.safe_load_all(SHIPPED.read_text(encoding="utf-8")) if one["kind"] == "Deployment"
    )
    theirs = shipped["spec"]["template"]["spec"]
    name, *words = pod["initContainers"][0]["args"]

    assert "0.0.0.0:5411" == extender.make_context(name, words).params["pages"]
    for kind in ("initContainers", "containers"):
        assert looked_at(theirs[kind][0]) == looked_at(pod[kind][0])
        assert theirs[kind][0]["resources"] == pod[kind][0]["resources"]
    assert ("Always", theirs["tolerations"]) == (pod["initContainers"][0]["restartPolicy"], pod["tolerations"])


def looked_at(container):
    """Where each probe of a container looks, and at which ports it can."""
    probes = {word: one["httpGet"] for word, one in container.items() if word.endswith("Probe")}
    return probes, container["ports"]


@pytest.mark.parametrize("name", NAMES)
def test_objects_of_the_manifest_have_names_that_kubernetes_takes(name):
    documents = [one for one in yaml.safe_load_all(files(name)["deploy.yaml"]) if one]

    assert {"Namespace", "ServiceAccount", "ClusterRole", "Deployment"} <= {one["kind"] for one in documents}
    assert [] == [one["metadata"]["name"] for one in documents if len(one["metadata"]["name"]) > 63]


def test_the_question_to_try_is_one(tmp_path):
    asked = decode_extender_args((made(tmp_path) / "ask.json").read_bytes())

    assert ["plain", "liked", "closed"] == asked.names
    assert asked.pod.name == "web"


def test_the_question_to_try_names_the_annotations_that_are_read(tmp_path):
    question = json.loads(files("quiet-nodes")["ask.json"])
    keys = {key for node in question["Nodes"]["items"] for key in node["metadata"].get("annotations", {})}

    assert all(f'"{key}"' in files("quiet-nodes")["src/quiet_nodes/plugin.py"] for key in keys)
    assert len(keys) == 2


def test_whoever_made_one_is_told_where_it_is(tmp_path, capsys):
    folder = made(tmp_path)

    assert f"{folder}: 8 files. Next: cd {folder}, and follow README.md\n" == capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(
            pytest.param(name, "is not a valid agent name; write 2 to 32 lowercase letters, digits and dashes", id=id_)
            for name, id_ in [
                ("x", "one letter"),
                ("Quiet", "a capital letter"),
                ("quiet_nodes", "an underscore"),
                ("quiet-", "a dash last"),
                ("3d", "a digit first"),
                ("x" * 33, "too long"),
                ("../quiet", "a path"),
                ("quiet nodes", "a space"),
                ("quiet\n", "a line break"),
                ("stille-knöten", "a letter of another alphabet"),
            ]
        ),
        pytest.param("json", "would be the module json, which exists; try json-agent", id="stdlib"),
        pytest.param("class", "would be the module class, which exists", id="a keyword"),
        pytest.param("lamina", "would be the module lamina, which exists", id="Lamina itself"),
        pytest.param("test", "would be the module test, which exists; try test-agent", id="tests of Python"),
        pytest.param("yaml", "would be the module yaml, which exists; try yaml-agent", id="somebody else's"),
        pytest.param(
            "prometheus-client", "would be the module prometheus_client, which exists", id="with an underscore"
        ),
        pytest.param("foo", "is an agent or a verb of Lamina; try my-foo", id="an agent"),
        pytest.param("pigeon-holing", "is an agent or a verb of Lamina", id="a verb"),
        pytest.param("node-name", "would be the plugin NodeName, which Lamina has; try my-node-name", id="a plugin"),
    ],
)
def test_a_name_that_cannot_work_is_refused_in_one_line(tmp_path, name, words):
    with pytest.raises(InputError) as refused:
        made(tmp_path, name)

    assert words in str(refused.value)
    assert 1 == len(str(refused.value).splitlines())
    assert [] == list(tmp_path.iterdir())


def test_what_is_suggested_instead_is_not_refused():
    for name in ("quiet-nodes", "json-agent", "test-agent", "my-foo", "my-node-name"):
        check_name(name)


@pytest.mark.parametrize(("name", "expected"), [("quiet-nodes", "QuietNodes"), ("a-1--b", "A1B"), ("ab", "Ab")])
def test_a_plugin_is_called_by_the_words_of_the_name(name, expected):
    assert expected == class_of(name)


@pytest.mark.parametrize("there", ["folder", "file", "dangling link"])
def test_what_is_there_already_is_left_alone(tmp_path, there):
    target = tmp_path / "quiet-nodes"
    if there == "folder":
        target.mkdir()
        (target / "mine").write_text("mine", encoding="utf-8")
    elif there == "file":
        target.write_text("mine", encoding="utf-8")
    else:
        target.symlink_to(tmp_path / "nowhere")
    before = texts(tmp_path)

    with pytest.raises(InputError, match="exists; choose another NAME, or another folder with --out"):
        made(tmp_path)

    assert before == texts(tmp_path)


def test_a_place_where_nothing_can_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(InputError, match="cannot be written: Not a directory"):
        made(tmp_path / "file")
