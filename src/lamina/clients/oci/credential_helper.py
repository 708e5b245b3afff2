"""
Programs that know credentials: ``docker-credential-NAME get``, asked by name of a server on standard input.

A program is looked up on the absolute folders of the PATH and started without a shell, with nothing of a stranger's on
its command line; its time and its output are bounded. What it prints is never shown. What it gave is kept for some
minutes, what it failed at for one.
"""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from lamina.clients import programs
from lamina.clients.oci.docker_config import is_helper_name
from lamina.clients.oci.keyring import Credential, CredentialHelper
from lamina.clients.oci.lookup_results import REFUSED, RegistryError

PATIENCE: Final = 5.0
PRINTED: Final = 64 * 1024
KEPT: Final = 300.0
KEPT_FAILURE: Final = 60.0
MOST_KEPT: Final = 1_000
_TOKEN_USER: Final = "<token>"  # noqa: S105 - what helpers write in place of a name beside an identity token


class _Given(msgspec.Struct, frozen=True):
    """What a helper prints."""

    username: str = msgspec.field(name="Username", default="")
    secret: str = msgspec.field(name="Secret", default="")

    def __repr__(self) -> str:
        return "_Given(...)"


class CredentialHelpers:
    """Asks helpers, one run at a time for each question."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Run nothing yet."""
        self._clock = clock
        self._kept: dict[CredentialHelper, tuple[float, Credential | RegistryError]] = {}
        self._running: dict[CredentialHelper, asyncio.Lock] = {}

    async def ask(self, helper: CredentialHelper) -> Credential:
        """Return what a helper knows. Raises RegistryError."""
        async with self._running.setdefault(helper, asyncio.Lock()):
            until, given = self._kept.get(helper, (0.0, None))
            if given is None or self._clock() >= until:
                given = await self._ask(helper)
        if isinstance(given, RegistryError):
            raise given
        return given

    async def _ask(self, helper: CredentialHelper) -> Credential | RegistryError:
        given: Credential | RegistryError
        try:
            given = _judge(await run(helper))
        except (OSError, ValueError) as error:
            said = "it did not answer in time" if isinstance(error, TimeoutError) else str(error)
            given = RegistryError(REFUSED, f"docker-credential-{helper.name}: {said}")
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
            self._running = {one: lock for one, lock in self._running.items() if lock.locked()}
        self._kept[helper] = (self._clock() + (KEPT if isinstance(given, Credential) else KEPT_FAILURE), given)
        return given


async def run(helper: CredentialHelper) -> bytes:
    """Run a helper and return what it printed. Raises OSError or ValueError in our own words."""
    command = (_program(helper.name), "get")
    ran = await programs.run(command, patience=PATIENCE, limit=PRINTED, said=helper.server.encode())
    if ran.code != 0:
        raise ValueError(f"it knows nothing, or failed (exit code {ran.code})")
    return ran.printed


def _program(name: str) -> str:
    """Find a helper in the folders that do not depend on where we were started."""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if Path(folder).is_absolute()]
    found = shutil.which(f"docker-credential-{name}", path=os.pathsep.join(folders)) if is_helper_name(name) else None
    if found is None or not folders:
        raise ValueError("there is no such program on the PATH; install it, or correct credHelpers or credsStore")
    return found


def _judge(printed: bytes) -> Credential:
    try:
        given = msgspec.json.decode(printed, type=_Given)
    except (ValueError, RecursionError):
        raise ValueError("what it printed is no credential in JSON") from None
    if not given.secret or any(ord(sign) < 32 or ord(sign) == 127 for sign in given.username + given.secret):
        raise ValueError("what it printed is no credential")
    if given.username == _TOKEN_USER:
        return Credential(identity_token=given.secret)
    return Credential(given.username, given.secret)
