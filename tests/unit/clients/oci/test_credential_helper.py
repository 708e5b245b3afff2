"""Programs that know credentials: found by name on the PATH, bounded, and never quoted."""

import asyncio
import os
from pathlib import Path

import pytest

from lamina.clients.oci import credential_helper
from lamina.clients.oci.credential_helper import KEPT, KEPT_FAILURE, CredentialHelpers
from lamina.clients.oci.keyring import Credential, CredentialHelper
from lamina.clients.oci.lookup_results import REFUSED, RegistryError
from tests.unit.clients.oci.registry_stub import Clock

HELPER = CredentialHelper("test", "registry.example")
GIVES = """#!/bin/sh
read server
echo run >> "$0.runs"
printf '{"ServerURL": "%s", "Username": "ada", "Secret": "pw-%s-%s"}' "$server" "$server" "$1"
"""


def is_running(process):
    """Whether it does anything still; its parent may not have noticed its end."""
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a program on the PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def write(text, name="test"):
        path = tmp_path / f"docker-credential-{name}"
        path.write_text(text)
        path.chmod(0o700)
        return path

    return write


async def refusal(helpers, helper=HELPER):
    with pytest.raises(RegistryError) as caught:
        await helpers.ask(helper)
    assert caught.value.reason == REFUSED
    return caught.value.detail


async def test_a_helper_is_asked_about_a_server_on_its_standard_input(install):
    install(GIVES)

    assert Credential("ada", "pw-registry.example-get") == await CredentialHelpers(Clock()).ask(HELPER)


async def test_a_helper_may_give_an_identity_token(install):
    install("""#!/bin/sh\nprintf '{"Username": "<token>", "Secret": "refresh"}'\n""")

    assert Credential(identity_token="refresh") == await CredentialHelpers(Clock()).ask(HELPER)


async def test_what_it_gave_is_kept_for_some_minutes(install):
    path, clock = install(GIVES), Clock()
    helpers = CredentialHelpers(clock)
    await asyncio.gather(*(helpers.ask(HELPER) for _ in range(5)))
    once = path.with_name(f"{path.name}.runs").read_text()
    clock.now += KEPT
    await helpers.ask(HELPER)

    assert ("run\n", "run\nrun\n") == (once, path.with_name(f"{path.name}.runs").read_text())


async def test_what_it_failed_at_is_kept_for_a_minute(install):
    path, clock = install('#!/bin/sh\necho run >> "$0.runs"\nexit 1\n'), Clock()
    helpers = CredentialHelpers(clock)
    for later in (0.0, 1.0, KEPT_FAILURE):
        clock.now += later
        assert "exit code 1" in await refusal(helpers)

    assert "run\nrun\n" == path.with_name(f"{path.name}.runs").read_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("#!/bin/sh\necho canary\n", "is not a credential in JSON", id="no JSON"),
        pytest.param(
            '#!/bin/sh\necho \'{"Secret": 5, "Username": "canary"}\'\n', "is not a credential in JSON", id="shape"
        ),
        pytest.param('#!/bin/sh\necho \'{"Username": "canary"}\'\n', "contains no secret", id="no secret"),
        pytest.param(
            '#!/bin/sh\nprintf \'{"Secret": "canary\\\\r\\\\nX: y"}\'\n', "contains no secret", id="line breaks"
        ),
        pytest.param("#!/bin/sh\necho canary >&2; exit 3\n", "exit code 3", id="fails"),
        pytest.param(
            "#!/bin/sh\nwhile :; do echo canarycanarycanary; done\n", "printed more than 64 KiB", id="endless"
        ),
        pytest.param("canary", "", id="no program"),
    ],
)
async def test_a_helper_that_gives_nothing_is_told_without_what_it_printed(install, text, told):
    install(text)
    detail = await refusal(CredentialHelpers(Clock()))

    assert told in detail
    assert "canary" not in detail


async def test_a_helper_that_takes_too_long_is_ended_with_its_children(install, monkeypatch):
    monkeypatch.setattr(credential_helper, "PATIENCE", 0.3)
    path = install('#!/bin/sh\nsh -c "echo \\$\\$ > $0.child; sleep 3600" &\nwait\n')

    assert "no output in time" in await refusal(CredentialHelpers(Clock()))
    child = int(path.with_name(f"{path.name}.child").read_text())
    async with asyncio.timeout(20):
        while is_running(child):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("name", ["missing", "../test", "a/b", "test; true", ""])
async def test_a_helper_that_is_not_on_the_path_is_told(install, name):
    install(GIVES)

    assert "the program is not on the PATH" in await refusal(
        CredentialHelpers(Clock()), CredentialHelper(name, "registry.example")
    )


async def test_folders_that_depend_on_where_we_are_do_not_count(install, tmp_path, monkeypatch):
    install(GIVES)
    monkeypatch.chdir(tmp_path)
    for path in (".", "", f".{os.pathsep}"):
        monkeypatch.setenv("PATH", path)
        assert "the program is not on the PATH" in await refusal(CredentialHelpers(Clock()))
