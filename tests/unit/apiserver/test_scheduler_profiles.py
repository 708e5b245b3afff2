"""Schedulers are started as their kind and their version need it."""

import pytest
from msgspec.structs import replace

from lamina.apiserver.facade_run import filled
from lamina.apiserver.profile_files import parse_profile, read_profile
from lamina.apiserver.scheduler_profiles import (
    KUBE_SCHEDULER,
    KUBE_SCHEDULER_JSON,
    PROFILES,
    kube_scheduler_profile,
    profile_of,
)
from lamina.apiserver.scheduler_version import minor_of, parse_version
from lamina.model.errors import InputError

GOOD = """
name: mine
program: /opt/mine
arguments: ["--kubeconfig={kubeconfig}"]
schedulerName: mine
settle: sessions
lines: {opens: begins, closes: ends, places: "picked <([^>]+)>"}
"""


@pytest.mark.parametrize(
    ("text", "name", "command"),
    [
        pytest.param("kube-scheduler", "kube-scheduler", ["kube-scheduler"], id="a name"),
        pytest.param("/opt/kube-scheduler --v=2", "kube-scheduler", ["/opt/kube-scheduler", "--v=2"], id="a path"),
        pytest.param("kube-scheduler-json", "kube-scheduler-json", ["kube-scheduler"], id="a variant"),
        pytest.param("lamina scheduler --seed 1", "lamina", ["lamina", "--seed", "1"], id="our own"),
        pytest.param("lamina", "lamina", ["lamina"], id="our own by name"),
        pytest.param("./mine 'a b'", "mine", ["./mine", "a b"], id="an unknown command"),
    ],
)
def test_a_command_is_matched_by_its_program(text, name, command):
    profile, words = profile_of(text)

    assert (name, command) == (profile.name, words)


@pytest.mark.parametrize("text", [pytest.param("", id="empty"), pytest.param("a 'b", id="an open quote")])
def test_a_command_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="--scheduler"):
        profile_of(text)


def test_only_unknown_commands_are_settled_by_silence():
    assert "silence" not in {one.settle for one in PROFILES.values()}
    assert "silence" == profile_of("./mine")[0].settle


@pytest.mark.parametrize(
    ("text", "version", "minor"),
    [
        pytest.param("Kubernetes v1.36.3\n", "1.36.3", 36, id="a release"),
        pytest.param("Kubernetes v1.30.14-dirty", "1.30.14", 30, id="a build with changes"),
        pytest.param("no version here", "", 0, id="none"),
    ],
)
def test_the_version_is_what_the_program_tells(text, version, minor):
    found = parse_version(text)

    assert (version, minor) == (found, minor_of(found))


@pytest.mark.parametrize(
    ("profile", "minor", "config", "words"),
    [
        pytest.param(KUBE_SCHEDULER, 36, False, "", id="1.36 with flags"),
        pytest.param(KUBE_SCHEDULER, 33, False, "", id="1.33 with flags"),
        pytest.param(KUBE_SCHEDULER, 30, True, "podMaxBackoffSeconds: 1\n", id="1.30 waits out its back-off"),
        pytest.param(KUBE_SCHEDULER_JSON, 36, True, "contentType: application/json", id="1.36 with JSON"),
        pytest.param(KUBE_SCHEDULER_JSON, 30, True, "podMaxBackoffSeconds: 1\n", id="1.30 with JSON"),
    ],
)
def test_older_versions_need_a_configuration(profile, minor, config, words):
    found = kube_scheduler_profile(profile, minor)

    assert minor == found.minor
    assert config == ("--config={config}" in found.arguments)
    assert config == ("--kubeconfig={kubeconfig}" not in found.arguments)
    assert words in found.config


def test_metrics_of_an_old_version_count_no_events():
    with pytest.raises(InputError, match=r"1\.30 counts no events"):
        kube_scheduler_profile(replace(KUBE_SCHEDULER, settle="metrics"), 30)


def test_placeholders_are_filled_in():
    assert "--a=/x --b={other}" == filled("--a={kubeconfig} --b={other}", {"kubeconfig": "/x"})


def test_a_profile_file_describes_a_scheduler():
    found = parse_profile(GOOD, "mine.yaml")

    assert ("mine", "/opt/mine", "sessions", "begins") == (found.name, found.program, found.settle, found.lines.opens)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("name: x", "program", id="no program"),
        pytest.param(GOOD + "sleep: 3", "sleep", id="an unknown field"),
        pytest.param(GOOD.replace("sessions", "soon"), "soon", id="an unknown method"),
        pytest.param(GOOD.replace("begins", "'('"), "no regular expression", id="a broken pattern"),
        pytest.param(GOOD.replace("picked <([^>]+)>", "picked"), "needs a group", id="a pattern without a pod"),
        pytest.param(GOOD + "silence: 900", "at most 60", id="a long silence"),
        pytest.param(GOOD.replace("sessions", "metrics"), "needs metrics", id="metrics without an address"),
    ],
)
def test_a_profile_file_with_a_mistake_is_refused_in_one_line(text, words):
    with pytest.raises(InputError, match=r"mine\.yaml") as caught:
        parse_profile(text, "mine.yaml")

    assert words in str(caught.value)


def test_a_profile_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_profile(tmp_path / "none.yaml")
