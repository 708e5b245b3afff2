"""
Credentials in Docker's configuration file.

Pull secrets of type ``kubernetes.io/dockerconfigjson`` have the same format; ``kubernetes.io/dockercfg`` contains only
its *auths*. Messages name the field of a mistake and never its value, which may be a password.
"""

import re
from typing import Final

import msgspec

from lamina.model.errors import InputError

FILE_LIMIT: Final = 1024 * 1024
"""Bytes of a file; Kubernetes limits a Secret to the same size."""
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
        return "DockerAuth(...)"


class DockerConfig(msgspec.Struct, frozen=True):
    """The fields of the file that concern credentials."""

    auths: dict[str, DockerAuth] = {}
    cred_helpers: dict[str, str] = msgspec.field(name="credHelpers", default_factory=dict)
    creds_store: str = msgspec.field(name="credsStore", default="")

    def __repr__(self) -> str:
        return "DockerConfig(...)"


class _Shape(msgspec.Struct, frozen=True):
    """Top-level fields, to recognise which of the two formats it is."""

    auths: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    cred_helpers: msgspec.Raw | msgspec.UnsetType = msgspec.field(name="credHelpers", default=msgspec.UNSET)
    creds_store: msgspec.Raw | msgspec.UnsetType = msgspec.field(name="credsStore", default=msgspec.UNSET)


def is_helper_name(name: str) -> bool:
    """Return whether *name* is safe as part of a helper's program name."""
    return _HELPER.fullmatch(name) is not None and ".." not in name


def decode_docker_config(data: bytes, source: str) -> DockerConfig:
    """Decode a configuration. Raises InputError that shows nothing of its content."""
    if len(data) > FILE_LIMIT:
        raise InputError.one(source, f"too large; at most {FILE_LIMIT // 1024} KiB are allowed")
    try:
        shape = msgspec.json.decode(data, type=_Shape)
        return DockerConfig(_old(data)) if shape == _Shape() else msgspec.json.decode(data, type=DockerConfig)
    except (ValueError, RecursionError) as error:
        place = _PLACE.search(str(error))
        where = f" at {place.group(1)}" if place else ""
        raise InputError.one(source, f"is not a Docker configuration in JSON{where}: log in again") from None


def check_helpers(config: DockerConfig, source: str) -> None:
    """Check the names of all helpers. Raises InputError."""
    for name in (*config.cred_helpers.values(), *filter(None, [config.creds_store])):
        if not is_helper_name(name):
            raise InputError.one(source, "credHelpers or credsStore: a helper name has only a-z, 0-9, dots and dashes")


def _old(data: bytes) -> dict[str, DockerAuth]:
    """Decode the older format; skip fields of a newer file without *auths*, which are not entries."""
    found: dict[str, DockerAuth] = {}
    for key, raw in msgspec.json.decode(data, type=dict[str, msgspec.Raw]).items():
        if "." in key or ":" in key or key == "localhost":
            found[key] = msgspec.json.decode(raw, type=DockerAuth)
    return found
