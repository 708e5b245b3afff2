"""A program can run as if it were in a pod, and the machine does not notice."""

import subprocess
from pathlib import Path

import pytest

from testbed import MissingError, in_cluster

pytestmark = pytest.mark.realtime


@pytest.fixture
def files(tmp_path):
    """A service account."""
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text(f"the {name}")
    return tmp_path


@pytest.mark.needs("unshare", root=True)
def test_a_program_finds_its_service_account_and_the_machine_does_not(files):
    command = in_cluster.command(files, ["cat", f"{in_cluster.ACCOUNT}/token", f"{in_cluster.ACCOUNT}/ca.crt"])

    run = subprocess.run(command, capture_output=True, text=True, check=True)

    assert run.stdout == "the tokenthe ca.crt"
    assert not Path(in_cluster.ACCOUNT).exists()


@pytest.mark.needs("unshare", root=True)
def test_the_program_has_the_pid_of_the_command(files):
    with subprocess.Popen(
        in_cluster.command(files, ["sh", "-c", "echo $$"]), stdout=subprocess.PIPE, text=True
    ) as process:
        told, _ = process.communicate()

    assert told == f"{process.pid}\n"


def test_the_environment_names_the_server():
    assert in_cluster.environment("https://127.0.0.1:6443") == {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": "6443",
    }


def test_a_missing_unshare_is_told_with_its_package(monkeypatch, files):
    monkeypatch.setenv("PATH", str(files))

    with pytest.raises(MissingError, match=r"^unshare is not installed; try `apt-get install util-linux`$"):
        in_cluster.command(files, ["true"])
