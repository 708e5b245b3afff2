"""
Docker's configuration file, as far as it says who one is to registries.

The same shape is in pull secrets of type ``kubernetes.io/dockerconfigjson``, and its *auths* alone in the older
``kubernetes.io/dockercfg``. Messages name the place of a mistake and nothing that stands there: it may be a password.
"""

import re
from typing import Final

import msgspec

from lamina.model.errors import InputError

FILE_LIMIT: Final = 1024 * 1024
"""Bytes; a secret has at most as many."""
_HELPER: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PLACE: Final = re.compile(r"at `([^`]{1,100})`")


class DockerAuth(msgspec.Struct, frozen=True):
    """One entry of *auths*."""

    auth: str = ""
    """Base64 of name, colon and password."""
    username: str = ""
    password: str = ""
    identity_token: str | None = msgspec.field(name="identitytoken", default=None)

    def __repr__(self) -> str:
        return "Auth(...)"


class DockerConfig(msgspec.Struct, frozen=True):
    """The file."""

    auths: dict[str, DockerAuth] = {}
    cred_helpers: dict[str, str] = msgspec.field(name="credHelpers", default_factory=dict)
    creds_store: str = msgspec.field(name="credsStore", default="")

    def __repr__(self) -> str:
        return "DockerConfig(...)"


class _Shape(msgspec.Struct, frozen=True):
    """Which of the two shapes it is."""

    auths: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    cred_helpers: msgspec.Raw | msgspec.UnsetType = msgspec.field(name="credHelpers", default=msgspec.UNSET)
    creds_store: msgspec.Raw | msgspec.UnsetType = msgspec.field(name="credsStore", default=msgspec.UNSET)


def is_helper_name(name: str) -> bool:
    """Whether this can be the name of a helper: it becomes a part of a program's name, and of nothing else."""
    return _HELPER.fullmatch(name) is not None and ".." not in name


def decode_docker_config(data: bytes, source: str) -> DockerConfig:
    """Read a configuration. Raises InputError, which shows nothing of what is in it."""
    if len(data) > FILE_LIMIT:
        raise InputError.one(source, f"too large; at most {FILE_LIMIT // 1024} KiB are read")
    try:
        shape = msgspec.json.decode(data, type=_Shape)
        return DockerConfig(_old(data)) if shape == _Shape() else msgspec.json.decode(data, type=DockerConfig)
    except (ValueError, RecursionError) as error:
        place = _PLACE.search(str(error))
        where = f" at {place.group(1)}" if place else ""
        raise InputError.one(source, f"is no Docker configuration in JSON{where}: log in again") from None


def check_helpers(config: DockerConfig, source: str) -> None:
    """See that every program that is named can be one. Raises InputError."""
    for name in (*config.cred_helpers.values(), *filter(None, [config.creds_store])):
        if not is_helper_name(name):
            raise InputError.one(source, "credHelpers or credsStore: a name has only a-z, 0-9, dots and dashes")


def _old(data: bytes) -> dict[str, DockerAuth]:
    """Read a file of *auths* alone; other fields of a newer file that has none are no entries."""
    found: dict[str, DockerAuth] = {}
    for key, raw in msgspec.json.decode(data, type=dict[str, msgspec.Raw]).items():
        if "." in key or ":" in key or key == "localhost":
            found[key] = msgspec.json.decode(raw, type=DockerAuth)
    return found
