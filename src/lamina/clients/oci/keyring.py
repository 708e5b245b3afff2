"""
Who we are to registries: credentials from Docker's configuration file and from pull secrets.

    auths         {"registry.example/team": {"auth": base64 of user:password}}, or with an identity token
    credHelpers   {"registry.example": "ecr-login"}       ask docker-credential-ecr-login
    credsStore    "desktop"                               ask it for everything that has no entry

Entries match as the kubelet has it: the host exactly, or label by label with ``*`` and ``?``, the port, and a path that
the repository begins with; the longest is tried first. Pull secrets are written by whoever may write to a namespace, so
of them only *auths* count: nobody else's text ever names a program to run.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from lamina.clients.oci.docker_config import FILE_LIMIT, DockerAuth, DockerConfig, check_helpers, decode_docker_config
from lamina.clients.oci.hosts import HUB, HUB_API
from lamina.model.errors import InputError

MOST_ENTRIES: Final = 1_000
MOST_LOGINS: Final = 4
"""Credentials that are tried for one image."""
_HUB_NAMES: Final = frozenset({HUB, "index.docker.io", HUB_API, "registry.hub.docker.com"})
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HUB_KEY: Final = "https://index.docker.io/v1/"


class Credential(msgspec.Struct, frozen=True):
    """A name and a password, or an identity token that stands for both."""

    username: str = ""
    password: str = ""
    identity_token: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything that must never be shown."""
        return (self.password, self.identity_token, self.basic.partition(" ")[2])

    @property
    def basic(self) -> str:
        """The header of HTTP's basic authentication."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    def __repr__(self) -> str:
        return "Credential(...)"


class CredentialHelper(msgspec.Struct, frozen=True):
    """A program that knows the credentials."""

    name: str
    """Without docker-credential- in front."""
    server: str
    """What it is asked about."""


RegistryLogin: TypeAlias = Credential | CredentialHelper


class _KeyringEntry(msgspec.Struct, frozen=True):
    """For which images a credential is."""

    host: tuple[str, ...]
    """Labels; may hold wildcards."""
    port: str
    path: str
    login: RegistryLogin

    def matches(self, host: Sequence[str], port: str, repository: str) -> bool:
        if len(host) != len(self.host) or port != self.port:
            return False
        if self.path and not f"{repository}/".startswith(f"{self.path}/"):
            return False
        # Brackets are those of an IPv6 address.
        globs = (glob.replace("[", "[[]") for glob in self.host)
        return all(fnmatchcase(label, glob) for label, glob in zip(host, globs, strict=True))


class Keyring:
    """Credentials, by the images they are for."""

    def __init__(self, entries: Iterable[_KeyringEntry] = (), store: str = "", unreadable: int = 0) -> None:
        """Use `from_file` or `from_secrets`; a keyring of nothing is anonymous."""
        # The longest path first, names before wildcards: as the kubelet sorts its keys, backwards.
        self._entries = sorted(entries, key=lambda one: (one.path, ".".join(one.host), one.port), reverse=True)
        self._store = store
        self.unreadable = unreadable
        """Secrets, and entries of secrets, of which nothing could be made."""

    @classmethod
    def from_file(cls, path: Path) -> "Keyring":
        """Read Docker's configuration file. Raises InputError, which shows nothing of what is in it."""
        try:
            with path.open("rb") as file:
                config = decode_docker_config(file.read(FILE_LIMIT + 1), str(path))
        except OSError as error:
            raise InputError.one(str(path), f"cannot be read: {(error.strerror or 'input error').lower()}") from None
        check_helpers(config, str(path))
        entries, wrong = _entries(config)
        for key, name in config.cred_helpers.items():
            entries.append(_KeyringEntry(*_split(key), CredentialHelper(name, _asked_about(key))))
        if wrong:
            raise InputError.one(str(path), f"auths: {wrong} of the entries cannot be read: log in again")
        return cls(entries, config.creds_store)

    @classmethod
    def from_secrets(cls, secrets: Iterable[bytes]) -> "Keyring":
        """Read the ``.dockerconfigjson`` of pull secrets; what cannot be read is counted and left out."""
        entries: list[_KeyringEntry] = []
        unreadable = 0
        for secret in secrets:
            try:
                found, wrong = _entries(decode_docker_config(secret, "pull secret"))
            except InputError:
                unreadable += 1
                continue
            entries += found[: MOST_ENTRIES - len(entries)]
            unreadable += wrong
        return cls(entries, unreadable=unreadable)

    @classmethod
    def joined(cls, rings: Iterable["Keyring"]) -> "Keyring":
        """Put keyrings of pull secrets together: of entries for the same images those of the first are tried first."""
        rings = list(rings)
        entries = [entry for ring in rings for entry in ring._entries][:MOST_ENTRIES]  # noqa: SLF001 - of our own
        return cls(entries, unreadable=sum(ring.unreadable for ring in rings))

    def for_registry(self, host: str, repository: str = "") -> tuple[RegistryLogin, ...]:
        """Return what to try for an image on *host*, the most fitting first; nothing when it is to be anonymous."""
        labels, port, _ = _split(host)
        found = [one.login for one in self._entries if one.matches(labels, port, repository)]
        if not found and self._store:
            found = [CredentialHelper(self._store, _HUB_KEY if host in _HUB_NAMES else host)]
        return tuple(dict.fromkeys(found))[:MOST_LOGINS]

    def __repr__(self) -> str:
        return f"Keyring({len(self._entries)} entries)"


def fingerprint_of_logins(logins: Iterable[RegistryLogin]) -> str:
    """Tell sets of logins apart without keeping them: the same text for the same logins only."""
    return hashlib.sha256(msgspec.json.encode([[type(one).__name__, one] for one in logins])).hexdigest()


def _entries(config: DockerConfig) -> tuple[list[_KeyringEntry], int]:
    """Return what *auths* holds, and how many entries nothing could be made of."""
    entries, wrong = [], max(0, len(config.auths) - MOST_ENTRIES)
    for key, auth in list(config.auths.items())[:MOST_ENTRIES]:
        try:
            credential = _credential(auth)
        except ValueError:
            wrong += 1
            continue
        if credential is not None:
            entries.append(_KeyringEntry(*_split(key), credential))
    return entries, wrong


def _credential(auth: DockerAuth) -> Credential | None:
    """Read one entry; None for one that only says where a helper was used. Raises ValueError."""
    username, password = auth.username, auth.password
    if auth.auth:
        try:
            text = base64.b64decode(auth.auth.rstrip("\0\n "), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise ValueError("not base64") from None
        username, colon, password = text.partition(":")
        if not colon:
            raise ValueError("no colon between name and password")
    credential = Credential(username, password.rstrip("\0"), auth.identity_token or "")
    if any(map(_CONTROL.search, msgspec.structs.astuple(credential))):
        raise ValueError("control characters")
    return credential if credential != Credential() else None


def _split(key: str) -> tuple[tuple[str, ...], str, str]:
    """Take a key apart: labels of the host, port, path. Old keys are addresses with /v1/ or /v2/ behind."""
    place = key.removeprefix("https://").removeprefix("http://")
    host, _, path = place.partition("/")
    path = path.strip("/")
    if path in {"v1", "v2"}:
        path = ""
    name, colon, port = host.lower().rpartition(":") if "]" not in host or "]:" in host else (host.lower(), "", "")
    name = name if colon else host.lower()
    if name in _HUB_NAMES:
        name = HUB
    return tuple(name.split(".")), port if colon else "", path.removeprefix("v2/").removeprefix("v1/")


def _asked_about(key: str) -> str:
    return _HUB_KEY if _split(key)[0] == tuple(HUB.split(".")) else key
