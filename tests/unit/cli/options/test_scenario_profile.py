"""The profile of a run: the command line's before the scenario's, and a mistake in either is reported where it stands."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from lamina.cli.image.command import image
from lamina.cli.options.scenario_profile import chosen_for
from lamina.cli.simulate.command import simulate
from lamina.model.errors import InputError
from lamina.scheduling.config.named_profiles import DEFAULT, NAMED
from lamina.simulator.workloads import load_scenario

SCENARIO = """\
images: {app: {base: 1MB}}
nodes: [{name: n, cpu: 4, memory: 1Gi}]
pods: [{name: p, image: app, cpu: 1}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return tmp_path / "s.yaml"


@pytest.mark.parametrize(
    ("written", "option", "chosen"),
    [
        pytest.param("", None, DEFAULT, id="neither says one"),
        pytest.param("profile: lamina-local\n", None, "lamina-local", id="the scenario does"),
        pytest.param("profile: lamina-local\n", "kube-default", "kube-default", id="the command line wins"),
        pytest.param("profile: lamina-locl\n", "kube-default", "kube-default", id="also over one that is not there"),
    ],
)
def test_the_profile_that_counts(scenario, written, option, chosen):
    scenario.write_text(SCENARIO + written)

    assert chosen == chosen_for(load_scenario(scenario), scenario, option)[0]


@pytest.mark.parametrize("command", [[simulate], [image, "app", "--scenario"]], ids=["simulate", "image"])
@pytest.mark.parametrize(
    ("profile", "line"),
    [
        pytest.param("lamina-locl", r"4: profile: .*did you mean 'lamina-local'\?", id="a name"),
        pytest.param("./gone.yaml", r"4: profile: ./gone.yaml cannot be read: .*", id="a file that is missing"),
    ],
)
def test_a_profile_of_a_scenario_that_cannot_be_used_is_reported_with_file_and_line(scenario, command, profile, line):
    scenario.write_text(f"{SCENARIO}profile: {profile}\n")
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(command[0], [*command[1:], str(scenario)], catch_exceptions=False)

    assert re.fullmatch(f"{re.escape(str(scenario))}:{line}", str(caught.value)), caught.value


def test_the_line_is_that_of_the_file_that_counts(scenario):
    """An included file's, if the including file does not say another."""
    (scenario.parent / "part.yaml").write_text("about: a part\nprofile: gone\n")
    scenario.write_text(f"include: [part.yaml]\n{SCENARIO}")
    with pytest.raises(InputError) as caught:
        chosen_for(load_scenario(scenario), scenario, None)

    assert str(caught.value).startswith(f"{scenario.parent / 'part.yaml'}:2: profile: there is no profile 'gone'")


def test_a_mistake_inside_of_a_profile_file_is_reported_there(scenario):
    mine = scenario.parent / "mine.yaml"
    mine.write_text(NAMED[DEFAULT][1] + "profilez: []\n")
    scenario.write_text(f"{SCENARIO}profile: {mine}\n")
    with pytest.raises(InputError) as caught:
        chosen_for(load_scenario(scenario), scenario, None)

    assert str(caught.value).startswith(f"{mine}:{len(mine.read_text().splitlines())}: profilez")
