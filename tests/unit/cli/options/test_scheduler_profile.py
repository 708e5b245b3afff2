"""``--profile``: a configuration of an older version is read, and what to change is said once on standard error."""

import sys
from pathlib import Path

import pytest

from lamina.cli.main import run

FOUNDING = Path(__file__).resolve().parents[4] / "examples" / "founding" / "scenario.yaml"
OLD = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["simulate", FOUNDING, "--profile"], id="simulate"),
        pytest.param(["compare", FOUNDING, "--seeds", "2", "--jobs", "1", "--profiles"], id="compare, in every run"),
        pytest.param(["image", "registry.example/img1:1", "--scenario", FOUNDING, "--profile"], id="image"),
    ],
)
def test_an_old_version_is_warned_about_in_one_line(monkeypatch, capsys, tmp_path, arguments):
    file = tmp_path / "old.yaml"
    file.write_text(OLD, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["lamina", *map(str, arguments), str(file)])

    code = run()
    (warning,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]

    assert 0 == code
    assert (
        f"warning: {file}:1: apiVersion: 'kubescheduler.config.k8s.io/v1beta3' is not read by Kubernetes 1.29 and later; "
        "change it to kubescheduler.config.k8s.io/v1"
    ) == warning


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        pytest.param(["simulate", FOUNDING, "--profile"], "a simulation", id="simulate"),
        pytest.param(["compare", FOUNDING, "--seeds", "2", "--jobs", "1", "--profiles"], "a simulation", id="compare"),
        pytest.param(["scheduler", "--observe", "--config"], "--observe", id="a scheduler that only observes"),
    ],
)
def test_a_configuration_with_extenders_is_refused_in_one_line_where_none_is_called(
    monkeypatch, capsys, tmp_path, arguments, what
):
    file = tmp_path / "extended.yaml"
    file.write_text(OLD.replace("v1beta3", "v1") + "extenders:\n- urlPrefix: http://a\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["lamina", *map(str, arguments), str(file)])

    code = run()

    assert 2 == code
    want = f"{file}: extenders: {what} calls no extenders, and would decide differently without them; remove the list"
    assert want in capsys.readouterr().err
