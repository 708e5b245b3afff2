"""
Registry credentials from Docker's configuration file and from pull secrets.

    auths         {"registry.example/team": {"auth": base64 of user:password}}, or with an identity token
    credHelpers   {"registry.example": "ecr-login"}       run docker-credential-ecr-login
    credsStore    "desktop"                               run this helper for everything without an entry

Entries match as in the kubelet: the host exactly or label by label with ``*`` and ``?``, the port, and a path prefix of
the repository. The longest path is tried first. Any user who can write to a namespace can write pull secrets, so only
their *auths* are used: a pull secret never names a program to run.
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
"""Credentials tried for one image."""
_HUB_NAMES: Final = frozenset({HUB, "index.docker.io", HUB_API, "registry.hub.docker.com"})
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HUB_KEY: Final = "https://index.docker.io/v1/"


class Credential(msgspec.Struct, frozen=True):
    """A name and a password, or an identity token in place of both."""

    username: str = ""
    password: str = ""
    identity_token: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """All values that must never be shown."""
        return (self.password, self.identity_token, self.basic.partition(" ")[2])

    @property
    def basic(self) -> str:
        """The header value for basic authentication."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    def __repr__(self) -> str:
        return "Credential(...)"


class CredentialHelper(msgspec.Struct, frozen=True):
    """A credential helper and the server to query it for."""

    name: str
    """Without the docker-credential- prefix."""
    server: str
    """Server name passed to the helper."""


RegistryLogin: TypeAlias = Credential | CredentialHelper


class _KeyringEntry(msgspec.Struct, frozen=True):
    """A login and the images it is for."""

    host: tuple[str, ...]
    """DNS labels; may contain wildcards."""
    port: str
    path: str
    login: RegistryLogin

    def matches(self, host: Sequence[str], port: str, repository: str) -> bool:
        if len(host) != len(self.host) or port != self.port:
            return False
        if self.path and not f"{repository}/".startswith(f"{self.path}/"):
            return False
        # Brackets belong to an IPv6 address, not to a glob.
        globs = (glob.replace("[", "[[]") for glob in self.host)
        return all(fnmatchcase(label, glob) for label, glob in zip(host, globs, strict=True))


class Keyring:
    """Logins, by the images they are for."""

    def __init__(self, entries: Iterable[_KeyringEntry] = (), store: str = "", unreadable: int = 0) -> None:
        """Use `from_file` or `from_secrets`; an empty keyring means anonymous access."""
        # Longest path first, exact names before wildcards: the reverse of the kubelet's sort order.
        self._entries = sorted(entries, key=lambda one: (one.path, ".".join(one.host), one.port), reverse=True)
        self._store = store
        self.unreadable = unreadable
        """Number of secrets, and entries of secrets, that could not be decoded."""

    @classmethod
    def from_file(cls, path: Path) -> "Keyring":
        """Read Docker's configuration file. Raises InputError that shows nothing of its content."""
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
            raise InputError.one(str(path), f"auths: {wrong} of the entries cannot be decoded: log in again")
        return cls(entries, config.creds_store)

    @classmethod
    def from_secrets(cls, secrets: Iterable[bytes]) -> "Keyring":
        """Read the ``.dockerconfigjson`` of pull secrets; undecodable ones are counted and skipped."""
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
        """Merge keyrings of pull secrets; for the same images, entries of earlier keyrings are tried first."""
        rings = list(rings)
        entries = [entry for ring in rings for entry in ring._entries][:MOST_ENTRIES]  # noqa: SLF001 - same class
        return cls(entries, unreadable=sum(ring.unreadable for ring in rings))

    def for_registry(self, host: str, repository: str = "") -> tuple[RegistryLogin, ...]:
        """Return the logins to try for an image on *host*, best match first; empty for anonymous access."""
        labels, port, _ = _split(host)
        found = [one.login for one in self._entries if one.matches(labels, port, repository)]
        if not found and self._store:
            found = [CredentialHelper(self._store, _HUB_KEY if host in _HUB_NAMES else host)]
        return tuple(dict.fromkeys(found))[:MOST_LOGINS]

    def __repr__(self) -> str:
        return f"Keyring({len(self._entries)} entries)"


def fingerprint_of_logins(logins: Iterable[RegistryLogin]) -> str:
    """Return a hash that identifies a set of logins without revealing them."""
    return hashlib.sha256(msgspec.json.encode([[type(one).__name__, one] for one in logins])).hexdigest()


def _entries(config: DockerConfig) -> tuple[list[_KeyringEntry], int]:
    """Return the entries of *auths*, and the number of undecodable ones."""
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
    """Decode one entry; None if it only records that a helper was used. Raises ValueError."""
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
    """Split a key into host labels, port and path. Keys of old Docker versions are URLs that end in /v1/ or /v2/."""
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
