"""`lamina scheduler`: every mistake of the command line is one line and exit code 2, before anything runs."""

import asyncio
import gc
import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.cli import scheduler as command
from lamina.cli.main import run
from lamina.cli.options.scheduler_profile import configuration
from lamina.clients.kube.access import load_access
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.model.errors import InputError, WiringError
from lamina.scheduling.config.loader import load
from lamina.scheduling.plugins.in_tree import registry
from lamina.services.log_lines import Verbosity
from lamina.services.scheduler import wiring
from lamina.services.scheduler.options import SchedulerOptions
from tests.unit.clients.kube.kubeconfigs import config, saved

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch, tmp_path) -> Iterator[None]:
    """No cluster by accident; logging and the garbage collector as they were found."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    root = logging.getLogger("lamina")
    before = root.handlers[:], root.propagate, root.level, Verbosity.level, gc.get_threshold()
    yield
    root.handlers[:], root.propagate, Verbosity.level = before[0], before[1], before[3]
    root.setLevel(before[2])
    gc.unfreeze()
    gc.set_threshold(*before[4])
    gc.enable()


@pytest.fixture
def kubeconfig(tmp_path) -> Path:
    """Names a server where nobody is."""
    return saved(tmp_path / "kubeconfig", config(cluster={"server": "http://127.0.0.1:1"}))


@pytest.fixture
def served(monkeypatch) -> list[SchedulerOptions]:
    """What would have been run."""
    found: list[SchedulerOptions] = []

    async def serve(options: SchedulerOptions) -> None:
        found.append(options)

    monkeypatch.setattr(wiring, "serve", serve)
    return found


def lamina(monkeypatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["lamina", "scheduler", *map(str, arguments)])
    return run()


def one_line(capsys) -> str:
    err: str = capsys.readouterr().err
    assert 1 == len(err.splitlines()), err
    return err


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    "listen",
    [
        "10259",
        ":10259",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:-1",
        "127.0.0.1:65536",
        "127.0.0.1:1e3",
        "h:\u0661",
    ],
)
def test_an_address_that_is_none_is_one_line(monkeypatch, capsys, kubeconfig, served, listen):
    assert 2 == lamina(monkeypatch, "--kubeconfig", kubeconfig, "--listen", listen)
    assert "is not ADDRESS:PORT; write for example 127.0.0.1:10259" in one_line(capsys)
    assert [] == served


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("0.0.0.0:10259", ("0.0.0.0", 10259)),
        ("[::1]:10259", ("::1", 10259)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(listen, address):
    assert address == command._address(listen, "--listen")


def test_a_file_and_a_profile_do_not_go_together(monkeypatch, capsys, tmp_path, kubeconfig, served):
    path = tmp_path / "config.yaml"
    path.write_text(HEAD, encoding="utf-8")

    assert 2 == lamina(monkeypatch, "--config", path, "--profile", "lamina-balanced", "--kubeconfig", kubeconfig)
    assert "not together with --config" in one_line(capsys)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "cannot be read: No such file", id="missing"),
        pytest.param(b"\xff\xfe", "is not a text file", id="no text"),
        pytest.param(b"x" * (1024 * 1024 + 1), "larger than", id="huge"),
        pytest.param(b"[]", "config.yaml", id="a list"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_one_line(monkeypatch, capsys, tmp_path, served, content, words):
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)

    assert 2 == lamina(monkeypatch, "--config", path)
    assert words in one_line(capsys)
    assert [] == served


def test_a_folder_is_no_configuration(monkeypatch, capsys, tmp_path, kubeconfig, served):
    assert 2 == lamina(monkeypatch, "--config", tmp_path, "--kubeconfig", kubeconfig)
    assert "Is a directory" in one_line(capsys)


def test_an_unknown_profile_is_one_line(monkeypatch, capsys, kubeconfig, served):
    assert 2 == lamina(monkeypatch, "--profile", "lamina-balancd", "--kubeconfig", kubeconfig)
    assert "lamina-balanced" in one_line(capsys)


def test_without_a_cluster_nothing_runs(monkeypatch, capsys, served):
    assert 2 == lamina(monkeypatch)
    assert "no cluster configured" in one_line(capsys)


@pytest.mark.parametrize("content", [None, b"\xff", b"{}"], ids=["missing", "no text", "empty"])
def test_a_kubeconfig_that_cannot_be_used_is_one_line(monkeypatch, capsys, tmp_path, served, content):
    path = tmp_path / "kc"
    if content is not None:
        path.write_bytes(content)

    assert 2 == lamina(monkeypatch, "--kubeconfig", path)
    assert "kc" in one_line(capsys)


def test_an_unknown_context_is_one_line(monkeypatch, capsys, kubeconfig, served):
    assert 2 == lamina(monkeypatch, "--kubeconfig", kubeconfig, "--context", "nowhere")
    assert "nowhere" in one_line(capsys)


@pytest.mark.filterwarnings("ignore:shutdown_timeout")
def test_a_port_that_is_taken_is_one_line(monkeypatch, capsys, kubeconfig):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = lamina(monkeypatch, "--kubeconfig", kubeconfig, "--no-leader-elect", "--listen", f"127.0.0.1:{port}")

    assert 2 == code
    assert f"cannot listen on 127.0.0.1:{port}: " in one_line(capsys)


@pytest.mark.filterwarnings("ignore:shutdown_timeout")
@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.name.invalid"], ids=["not ours", "no such name"])
def test_an_address_that_is_not_ours_is_one_line(monkeypatch, capsys, kubeconfig, host):
    assert 2 == lamina(monkeypatch, "--kubeconfig", kubeconfig, "--no-leader-elect", "--listen", f"{host}:10259")
    assert f"cannot listen on {host}:10259: " in one_line(capsys)


@pytest.mark.filterwarnings("ignore:shutdown_timeout")
def test_a_host_name_nobody_can_have_is_one_line_too(monkeypatch, capsys, kubeconfig):
    host = "a" * 70
    assert 2 == lamina(monkeypatch, "--kubeconfig", kubeconfig, "--no-leader-elect", "--listen", f"{host}:10259")
    assert "cannot listen" in one_line(capsys)


# --------------------------------------------------------------------------------------------------------------- options


def test_without_options_pods_of_lamina_are_placed(monkeypatch, kubeconfig, served):
    assert 0 == lamina(monkeypatch, "--kubeconfig", kubeconfig)
    (options,) = served

    assert ["lamina"] == [one.scheduler_name for one in options.configuration.config.profiles]
    assert ("127.0.0.1", 10259, "savings", None, None, False) == (
        options.host,
        options.port,
        options.detail,
        options.seed,
        options.leader_elect,
        options.observe,
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--scheduler-name", "mine"], {"name": "mine"}),
        (["--observe"], {"observe": True}),
        (["--leader-elect"], {"leader_elect": True}),
        (["--no-leader-elect"], {"leader_elect": False}),
        (["-v", "10"], {"detail": "full"}),
        (["-v", "9"], {"detail": "savings"}),
        (["--seed", "7"], {"seed": 7}),
        (["--listen", "[::1]:0"], {"host": "::1", "port": 0}),
        ([], {"rules": RegistryConfig(), "keyring": None, "registry_deadline": 2.0}),
        (["--no-registries"], {"rules": None}),
        (["--registry-deadline", "0.5"], {"registry_deadline": 0.5}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_are_heeded(monkeypatch, kubeconfig, served, arguments, expected):
    assert 0 == lamina(monkeypatch, "--kubeconfig", kubeconfig, *arguments)
    (options,) = served

    found: dict[str, Any] = {"name": options.configuration.config.profiles[0].scheduler_name}
    found |= {name: getattr(options, name) for name in expected if name != "name"}
    assert expected == {name: found[name] for name in expected}


def test_registries_and_credentials_come_from_files(monkeypatch, tmp_path, kubeconfig, served):
    (tmp_path / "r.yaml").write_text("fromNodes: false\nregistries: [{host: quay.io}]\n", encoding="utf-8")
    (tmp_path / "d.json").write_text('{"auths": {"quay.io": {"auth": "dTpw"}}}', encoding="utf-8")
    words = ("--registries", tmp_path / "r.yaml", "--docker-config", tmp_path / "d.json")

    assert 0 == lamina(monkeypatch, "--kubeconfig", kubeconfig, *words)
    assert RegistryConfig(registries=(RegistrySettings("quay.io"),), from_nodes=False) == served[0].rules
    assert 1 == len(served[0].keyring.for_registry("quay.io"))
    assert "dTpw" not in repr(served[0])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--registries", "no-such-file"), "no-such-file: cannot be read"),
        (("--docker-config", "no-such-file"), "no-such-file: cannot be read"),
        (("--registry-deadline", "nan"), "--registry-deadline: nan is not a number of seconds"),
        (("--no-registries", "--registries", "r.yaml"), "--no-registries: not together with --registries"),
        (("--no-registries", "--docker-config", "d.json"), "--no-registries: not together with --docker-config"),
    ],
    ids=["no rules", "no login", "no number", "none and some", "none and a login"],
)
def test_a_mistake_about_registries_is_one_line(monkeypatch, capsys, kubeconfig, served, words, told):
    assert 2 == lamina(monkeypatch, "--kubeconfig", kubeconfig, *words)
    assert told in one_line(capsys)


def test_the_kubeconfig_of_the_configuration_is_used_unless_another_is_named(monkeypatch, tmp_path, kubeconfig, served):
    path = tmp_path / "config.yaml"
    path.write_text(f"{HEAD}clientConnection: {{kubeconfig: {kubeconfig}}}\n", encoding="utf-8")

    assert 0 == lamina(monkeypatch, "--config", path)
    assert "http://127.0.0.1:1" == served[0].access.server


def test_a_relative_file_is_a_file_and_no_profile(monkeypatch, tmp_path, kubeconfig, served):
    (tmp_path / "lamina-balanced").write_text(HEAD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert 0 == lamina(monkeypatch, "--config", "lamina-balanced", "--kubeconfig", kubeconfig)
    assert ["default-scheduler"] == [one.scheduler_name for one in served[0].configuration.config.profiles]


def test_a_scheduler_name_beside_a_file_is_a_mistake(monkeypatch, capsys, tmp_path, kubeconfig, served):
    path = tmp_path / "config.yaml"
    path.write_text(HEAD, encoding="utf-8")

    assert 2 == lamina(monkeypatch, "--config", path, "--scheduler-name", "mine", "--kubeconfig", kubeconfig)


@pytest.mark.parametrize("name", ["", "My Scheduler", "x" * 300])
def test_a_scheduler_name_no_pod_can_have_is_a_mistake(monkeypatch, kubeconfig, served, name):
    assert 2 == lamina(monkeypatch, "--scheduler-name", name, "--kubeconfig", kubeconfig)


# --------------------------------------------------------------------------------------------------------- configuration


def loaded(text: str):
    return load(HEAD + text, "config.yaml", registry(entry_points=False))


def mistakes(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        loaded(text)
    return [str(one) for one in caught.value.mistakes]


def test_a_configuration_with_one_profile_may_be_called_otherwise():
    before = loaded("")
    after = before.called("mine")

    assert ["mine"] == [one.scheduler_name for one in after.config.profiles]
    assert ["default-scheduler"] == [one.scheduler_name for one in before.config.profiles]
    assert before.config.leader_election == after.config.leader_election


def test_of_several_profiles_nobody_knows_which_is_meant():
    with pytest.raises(WiringError, match="one profile"):
        loaded("profiles: [{schedulerName: a}, {schedulerName: b}]").called("mine")


@pytest.mark.parametrize(
    ("election", "words"),
    [
        ("leaseDuration: 10s, renewDeadline: 10s", "leaderElection.leaseDuration: must be longer than renewDeadline"),
        ("leaseDuration: 15s, renewDeadline: 20s", "leaderElection.leaseDuration: must be longer than renewDeadline"),
        ("renewDeadline: 2.4s", "leaderElection.renewDeadline: must be longer than 1.2 times retryPeriod"),
        ("retryPeriod: 0s", "leaderElection.retryPeriod: must be more than 0"),
        ("retryPeriod: soon", "leaderElection.retryPeriod: 'soon' is not a duration"),
        ("leaseDuration: -15s", "leaderElection.leaseDuration: '-15s' is negative"),
        ("resourceLock: endpoints", "leaderElection.resourceLock: only leases are supported"),
    ],
)
def test_times_that_do_not_fit_together_are_told_where_they_stand(election, words):
    found = mistakes(f"leaderElection: {{{election}}}\n")

    assert any(words in one and one.startswith("config.yaml:3") for one in found), found


def test_times_that_fit_together_are_taken():
    loaded("leaderElection: {leaseDuration: 1m, renewDeadline: 2.5s, retryPeriod: 2s}\n")


def test_all_mistakes_of_leader_election_are_told_at_once():
    found = mistakes("leaderElection: {retryPeriod: soon, resourceLock: endpoints}\n")

    assert 2 == len(found)


def test_who_elects_nobody_may_have_any_times():
    loaded("leaderElection: {leaderElect: false, leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s}\n")


# ---------------------------------------------------------------------------------------------------------------- running


@pytest.mark.filterwarnings("ignore:shutdown_timeout")
async def test_a_scheduler_that_reaches_nobody_starts_says_so_and_stops(kubeconfig, monkeypatch):
    """Put together as in the command: pages are there, nothing is decided, and stopping leaves nothing open."""
    options = SchedulerOptions(
        configuration=configuration("lamina-balanced").called("lamina"),
        access=load_access(kubeconfig),
        leader_elect=False,
        port=0,
    )
    service = wiring.SchedulerService(options)
    task = asyncio.create_task(service.run())
    while service.port == 0 and not task.done():
        await asyncio.sleep(0.01)
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"not everything was seen yet: Node, Pod" in answer

    service.stop()
    await asyncio.wait_for(task, 10.0)
    assert not service._may_decide()


def test_nothing_is_used_that_is_on_its_way_out(monkeypatch, capsys, kubeconfig):
    lamina(monkeypatch, "--kubeconfig", kubeconfig, "--no-leader-elect", "--listen", "192.0.2.1:10259")


async def test_asked_twice_it_stops_at_once(kubeconfig, monkeypatch):
    options = SchedulerOptions(configuration=configuration("lamina-balanced"), access=load_access(kubeconfig), port=0)
    service = wiring.SchedulerService(options)
    service.stop()

    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    service.stop()

    assert [1] == ended
