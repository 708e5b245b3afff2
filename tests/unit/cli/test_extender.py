"""`lamina extender`: what it lists and prints, and how it says no; nothing is served here."""

import importlib.metadata
from importlib.metadata import EntryPoint

import pytest
import yaml

from lamina.cli.extender import extender
from lamina.cli.options.cli_command import EMPTY
from lamina.model.errors import InputError

TLS = ("--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "ca", "--client-name", "kube-scheduler")


def run(*words):
    extender.main(list(words), standalone_mode=False)


def printed(capsys, *words):
    run("--agents", "safe", "--print-config", *words)
    return yaml.safe_load(capsys.readouterr().out)


@pytest.fixture
def broken(monkeypatch):
    """Pretend that somebody has installed an agent that is no Python."""
    entry = EntryPoint("odd", "lamina.nowhere:AGENT", "lamina.agents")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    return (
        "entry point 'odd' (lamina.nowhere:AGENT) of an unknown distribution cannot be used: "
        "ModuleNotFoundError: No module named 'lamina.nowhere': fix or uninstall it"
    )


def test_agents_are_listed_with_what_they_are_for_and_what_they_can_be_asked(capsys):
    run("--list-agents")
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}

    assert ["layers", "safe", "pigeon", "congestion", "foo"] == list(lines)
    assert [] == [line for line in lines.values() if not line[13].isupper() or ". (" not in line]
    assert lines["layers"].endswith(" (scores: layers)")
    assert " (filters: safe-overload; scores: safe-overload, safe-balance, " in lines["safe"]


def test_a_broken_agent_is_told_beside_the_others(broken, capsys):
    run("--list-agents")
    said = capsys.readouterr()

    assert (5, f"{broken}\n") == (len(said.out.splitlines()), said.err)


def test_a_broken_agent_that_nobody_wants_is_only_warned_about(broken, capsys):
    run("--agents", "safe", "--print-config")
    said = capsys.readouterr()

    assert f"{broken}\n" == said.err
    assert yaml.safe_load(said.out)["extenders"]


def test_a_broken_agent_that_is_wanted_is_one_clear_line(broken):
    with pytest.raises(InputError) as caught:
        run("--agents", "safe,odd", "--print-config")

    assert f"--agents: {broken}" == str(caught.value)


def test_everybody_who_asks_gets_a_profile_and_the_lease_is_where_one_says(capsys):
    got = printed(capsys, "--scheduler-name", "one", "--scheduler-name", "two", "--namespace", "mine")

    assert ["one", "two"] == [one["schedulerName"] for one in got["profiles"]]
    assert {"leaderElect": True, "resourceName": "one", "resourceNamespace": "mine"} == got["leaderElection"]


@pytest.mark.parametrize(
    ("words", "url"),
    [
        pytest.param((), "http://127.0.0.1:5401/scheduler", id="where it listens"),
        pytest.param(("--asked-at", "extender.svc:80"), "http://extender.svc:80/scheduler", id="a Service"),
        pytest.param(
            ("--listen", "0.0.0.0:5401", "--asked-at", "[fd00::1]:80", *TLS),
            "https://[fd00::1]:80/scheduler",
            id="by certificates",
        ),
        pytest.param(("--listen", "0.0.0.0:5401", *TLS), "https://0.0.0.0:5401/scheduler", id="nobody said where"),
    ],
)
def test_the_scheduler_is_told_where_to_ask(capsys, words, url):
    entries = printed(capsys, *words)["extenders"]

    assert {url} == {one["urlPrefix"] for one in entries}
    assert {url.startswith("https")} == {one.get("enableHTTPS", False) for one in entries}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(
            ("--asked-at", "extender.svc"),
            "--asked-at: 'extender.svc' is not ADDRESS:PORT, for example 127.0.0.1:5401",
            id="a Service without a port",
        ),
        pytest.param(("--namespace", ""), f"--namespace: {EMPTY}", id="no namespace"),
        pytest.param(("--scheduler-name", ""), f"--scheduler-name: {EMPTY}", id="no scheduler"),
        pytest.param(
            ("--prometheus", "blah"),
            "--prometheus: 'blah' is not a usable URL; write it as http://prometheus.monitoring:9090",
            id="no address",
        ),
        pytest.param(
            ("--prometheus", "http://p:99999"),
            "--prometheus: 'http://p:99999' is not a usable URL; write it as http://prometheus.monitoring:9090",
            id="no port",
        ),
        pytest.param(
            ("--prometheus", "http://p/?a=b"),
            "--prometheus: 'http://p/?a=b' contains a query: end it before the question mark",
            id="a query",
        ),
        pytest.param(
            ("--prometheus", "http://me:secret@p:9090"),
            "--prometheus: contains a user or a password; set them beside `url` in a file, as "
            "docs/scheduling-agents-data.md shows",
            id="a password, which is not repeated",
        ),
    ],
)
def test_what_cannot_be_is_one_clear_line(words, told):
    with pytest.raises(InputError) as caught:
        run("--agents", "safe", "--print-config", *words)

    assert told == str(caught.value)
