"""
What people are told about scenarios that cannot run, letter by letter.

Each file of tests/data/scenarios/bad has one beside it that ends in .expected and holds the full message. A new file
without one fails.
"""

from pathlib import Path

import pytest

from lamina.model.errors import InputError
from lamina.model.yaml_document import MAX_BYTES
from lamina.simulator.workloads import load_scenario
from lamina.simulator.workloads.scenario_files import MOST_FILES

BAD = Path(__file__).resolve().parents[3] / "data" / "scenarios" / "bad"
FILES = sorted(path.name for path in BAD.glob("*.yaml"))


def test_there_are_bad_scenarios_and_none_without_its_message():
    assert len(FILES) > 10
    assert FILES == sorted(path.with_suffix(".yaml").name for path in BAD.glob("*.expected"))


@pytest.mark.parametrize("name", FILES)
def test_all_mistakes_are_told_at_once_with_file_line_and_field(name, monkeypatch):
    monkeypatch.chdir(BAD)
    with pytest.raises(InputError) as caught:
        load_scenario(name)

    assert (BAD / name).with_suffix(".expected").read_text(encoding="utf-8") == f"{caught.value}\n"


def told(path: Path) -> str:
    """Load a scenario that cannot be loaded; return the message without the folder."""
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    return str(caught.value).replace(f"{path.parent}/", "")


def test_a_file_that_is_not_there_is_told_with_the_nearest_that_is(tmp_path):
    (tmp_path / "founding.yaml").touch()

    assert "fuonding.yaml: there is no such file; did you mean 'founding.yaml'?" == told(tmp_path / "fuonding.yaml")


def test_a_folder_is_no_scenario(tmp_path):
    (tmp_path / "folder").mkdir()

    assert "folder: is not a file" == told(tmp_path / "folder")


def test_a_file_in_a_folder_that_is_not_there_is_told(tmp_path):
    assert "x.yaml: there is no such file" == told(tmp_path / "nowhere" / "x.yaml")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)

    assert "large.yaml: too large; at most 16 MiB are read" == told(tmp_path / "large.yaml")


def test_a_file_that_is_no_text_is_told_with_the_line(tmp_path):
    (tmp_path / "latin.yaml").write_bytes("name: x\nabout: größe\n".encode("latin-1"))

    assert "latin.yaml:2: is not text in UTF-8; save it as such" == told(tmp_path / "latin.yaml")


def test_too_many_files_are_not_read(tmp_path):
    """Each file includes the next."""
    for number in range(MOST_FILES + 5):
        (tmp_path / f"f{number}.yaml").write_text(f"include: [f{number + 1}.yaml]\n", encoding="utf-8")

    assert f"f{MOST_FILES - 1}.yaml:1: include[0]: too many files; at most {MOST_FILES} are read" == told(
        tmp_path / "f0.yaml"
    )


def test_a_way_around_by_another_name_is_found(tmp_path):
    """A link to a file is that file."""
    (tmp_path / "a.yaml").write_text("include: [b.yaml]\n", encoding="utf-8")
    (tmp_path / "b.yaml").symlink_to(tmp_path / "a.yaml")

    assert "a.yaml:1: include[0]: the files include each other: a.yaml → a.yaml; remove one of these includes" == told(
        tmp_path / "a.yaml"
    )
