"""
Docker credential helpers: ``docker-credential-NAME get`` reads a server name from stdin and prints credentials.

A helper is searched in the absolute folders of PATH and started without a shell; no untrusted text is on its command
line. Its run time and output are bounded, and its output is never shown. Credentials are cached for five minutes,
failures for one.
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
_TOKEN_USER: Final = "<token>"  # noqa: S105 - helpers print this as the name of an identity token


class _Given(msgspec.Struct, frozen=True):
    """The output of a helper."""

    username: str = msgspec.field(name="Username", default="")
    secret: str = msgspec.field(name="Secret", default="")

    def __repr__(self) -> str:
        return "_Given(...)"


class CredentialHelpers:
    """Runs helpers, at most one run at a time for each server, and caches their results."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with an empty cache."""
        self._clock = clock
        self._cache: dict[CredentialHelper, tuple[float, Credential | RegistryError]] = {}
        self._running: dict[CredentialHelper, asyncio.Lock] = {}

    async def ask(self, helper: CredentialHelper) -> Credential:
        """Return a helper's credential. Raises RegistryError."""
        async with self._running.setdefault(helper, asyncio.Lock()):
            until, given = self._cache.get(helper, (0.0, None))
            if given is None or self._clock() >= until:
                given = await self._ask(helper)
        if isinstance(given, RegistryError):
            raise given
        return given

    async def _ask(self, helper: CredentialHelper) -> Credential | RegistryError:
        given: Credential | RegistryError
        try:
            given = _decode(await run(helper))
        except (OSError, ValueError) as error:
            problem = "no output in time" if isinstance(error, TimeoutError) else str(error)
            given = RegistryError(REFUSED, f"docker-credential-{helper.name}: {problem}")
        if len(self._cache) >= MOST_KEPT:
            self._cache.clear()
            self._running = {one: lock for one, lock in self._running.items() if lock.locked()}
        self._cache[helper] = (self._clock() + (KEPT if isinstance(given, Credential) else KEPT_FAILURE), given)
        return given


async def run(helper: CredentialHelper) -> bytes:
    """Run a helper and return its output. Raises OSError or ValueError without any of the output."""
    command = (_program(helper.name), "get")
    ran = await programs.run(command, patience=PATIENCE, limit=PRINTED, stdin_data=helper.server.encode())
    if ran.code != 0:
        raise ValueError(f"it has no credentials, or failed (exit code {ran.code})")
    return ran.stdout


def _program(name: str) -> str:
    """Return the path of a helper, without relative PATH folders, which depend on the working directory."""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if Path(folder).is_absolute()]
    found = shutil.which(f"docker-credential-{name}", path=os.pathsep.join(folders)) if is_helper_name(name) else None
    if found is None or not folders:
        raise ValueError("the program is not on the PATH; install it, or correct credHelpers or credsStore")
    return found


def _decode(stdout: bytes) -> Credential:
    try:
        given = msgspec.json.decode(stdout, type=_Given)
    except (ValueError, RecursionError):
        raise ValueError("its output is not a credential in JSON") from None
    if not given.secret or any(ord(sign) < 32 or ord(sign) == 127 for sign in given.username + given.secret):
        raise ValueError("its output contains no secret")
    if given.username == _TOKEN_USER:
        return Credential(identity_token=given.secret)
    return Credential(given.username, given.secret)
