"""Lists and tables are there as data, and a generated file replaces nothing that is not its like."""

import json

import pytest
import yaml
from click.testing import CliRunner

from lamina.cli.annotate import annotate
from lamina.cli.catalog.command import catalog
from lamina.cli.compare.command import compare
from lamina.cli.extender import extender
from lamina.cli.profiles import profiles
from lamina.cli.version import version
from lamina.model.errors import InputError
from lamina.scheduling.config.named_profiles import DEFAULT, NAMED
from lamina.wire.catalog_file import read_catalog

SCENARIO = """\
images: {app: {base: 1MB}}
nodes: [{name: n, cpu: 4, memory: 1Gi}]
pods: [{name: p, image: app, cpu: 1}]
"""


def printed(command, *words, text=None):
    result = CliRunner().invoke(command, [str(word) for word in words], input=text, catch_exceptions=False)
    assert 0 == result.exit_code, result.output
    return result.stdout


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_profiles_are_listed_as_data(output, read):
    listed = read(printed(profiles, "-o", output))

    assert list(NAMED) == [one["name"] for one in listed]
    assert [DEFAULT] == [one["name"] for one in listed if one["default"]]
    assert all(one["about"] for one in listed)


def test_a_profile_is_printed_as_yaml_or_as_json():
    assert NAMED[DEFAULT][1] == printed(profiles, DEFAULT) == printed(profiles, DEFAULT, "-o", "yaml")
    assert yaml.safe_load(NAMED[DEFAULT][1]) == json.loads(printed(profiles, DEFAULT, "-o=json"))


def test_agents_are_listed_as_data():
    listed = {one["name"]: one for one in json.loads(printed(extender, "--list-agents", "-o", "json"))}

    assert {"layers", "safe", "pigeon", "congestion", "foo"} <= set(listed)
    assert {"name", "about", "filters", "scores"} == set(listed["layers"])


@pytest.mark.parametrize(
    ("command", "words", "line"),
    [
        pytest.param(extender, ["--agents", "layers", "-o", "json"], "--output: json needs --list-agents;", id="serve"),
        pytest.param(annotate, ["allocation", "-o", "yaml"], "--output: yaml needs --dry-run;", id="annotate"),
    ],
)
def test_a_format_without_something_to_print_is_refused(command, words, line):
    with pytest.raises(InputError) as caught:
        printed(command, *words)

    assert str(caught.value).startswith(line)


def test_the_version_is_a_line_or_data():
    assert {"lamina", "python", "platform"} == set(told := json.loads(printed(version, "-o=json")))
    assert f"lamina {told['lamina']}\n" == printed(version)


def test_a_profile_from_standard_input_is_called_stdin_in_a_comparison(tmp_path):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    words = [tmp_path / "s.yaml", "--profiles", "-,kube-default", "--baseline", "-", "--seeds", "1", "--jobs", "1"]
    compared = json.loads(printed(compare, *words, "-o=json", text=NAMED["lamina-local"][1]))

    assert ({"stdin", "kube-default"}, "stdin") == ({row["profile"] for row in compared["rows"]}, compared["baseline"])


# --------------------------------------------------------------------------------------------- catalogs that are generated


@pytest.mark.parametrize("content", [b"nodes: []\n", b"\x28\xb5\x2f\xfd broken", b"\0" * 100], ids=repr)
def test_generate_does_not_overwrite_a_file_that_is_not_a_catalog(tmp_path, content):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(InputError) as caught:
        printed(catalog, "generate", tmp_path / "a.jsonl", "--images", 3)

    message = "exists and is not a catalog; name another file, or remove this one first"
    assert f"{tmp_path}/a.jsonl: {message}" == str(caught.value)
    assert content == (tmp_path / "a.jsonl").read_bytes()


@pytest.mark.parametrize("before", ["another catalog", "an empty file"])
def test_generate_replaces_what_loses_nothing_else(tmp_path, before):
    file = tmp_path / "a.jsonl.zst"
    if before == "an empty file":
        file.touch()
    else:
        printed(catalog, "generate", file, "--images", 3)
    printed(catalog, "generate", file, "--images", 5, "--seed", 1)

    assert 5 == len(read_catalog(file))
