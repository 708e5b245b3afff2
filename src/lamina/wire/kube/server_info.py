"""
Decoders of API server metadata: version, custom resources, admission policies, permissions, time.

Each function decodes one response and raises `WireError` if it is invalid. `lamina doctor` uses them.
"""

from typing import Final, TypeVar

import msgspec

from lamina.wire.errors import WireError

T = TypeVar("T")


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """``/version``."""

    git_version: str = ""
    major: str = ""
    minor: str = ""

    @property
    def number(self) -> tuple[int, int]:
        """Major and minor version; (0, 0) if either is not a number."""
        # Some providers write 30+.
        parts = ["".join(filter(str.isdecimal, part)) for part in (self.major, self.minor)]
        return (int(parts[0]), int(parts[1])) if all(parts) else (0, 0)


class _DefinitionCondition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _DefinitionStatus(msgspec.Struct, frozen=True):
    conditions: tuple[_DefinitionCondition, ...] = ()


class _Definition(msgspec.Struct, frozen=True):
    status: _DefinitionStatus = _DefinitionStatus()


class _Actions(msgspec.Struct, frozen=True, rename="camel"):
    validation_actions: tuple[str, ...] = ()


class _Binding(msgspec.Struct, frozen=True):
    spec: _Actions = _Actions()


class _CreatedMeta(msgspec.Struct, frozen=True, rename="camel"):
    creation_timestamp: str | None = None


class _Created(msgspec.Struct, frozen=True):
    metadata: _CreatedMeta = _CreatedMeta()


class _Allowed(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Allowed = _Allowed()


_VERSION: Final = msgspec.json.Decoder(ServerVersion)
_DEFINITION: Final = msgspec.json.Decoder(_Definition)
_BINDING: Final = msgspec.json.Decoder(_Binding)
_CREATED: Final = msgspec.json.Decoder(_Created)
_REVIEW: Final = msgspec.json.Decoder(_Review)


def decode_version(data: bytes) -> ServerVersion:
    """Return the decoded ``/version``."""
    return _read("version", _VERSION, data)


def decode_established(data: bytes) -> bool:
    """Return whether the API server accepts objects of a CustomResourceDefinition."""
    conditions = _read("CustomResourceDefinition", _DEFINITION, data).status.conditions
    return any(one.type == "Established" and one.status == "True" for one in conditions)


def decode_validation_actions(data: bytes) -> tuple[str, ...]:
    """Return the validation actions of a ValidatingAdmissionPolicyBinding."""
    return _read("ValidatingAdmissionPolicyBinding", _BINDING, data).spec.validation_actions


def decode_creation_timestamp(data: bytes) -> str:
    """Return an object's creation timestamp as text; empty when it has none."""
    return _read("object", _CREATED, data).metadata.creation_timestamp or ""


def decode_allowed(data: bytes) -> bool:
    """Return whether a SubjectAccessReview allows the request."""
    return _read("SubjectAccessReview", _REVIEW, data).status.allowed


def _read(kind: str, decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError(kind, str(error)) from None
