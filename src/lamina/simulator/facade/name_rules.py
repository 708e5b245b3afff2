"""What the API server accepts as the name of an object, with the words of its refusals."""

import re
from typing import Final

from lamina.simulator.facade.resource_type import ResourceType

_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM: Final = rf"{_LABEL_FORM}(\.{_LABEL_FORM})*"
_LABEL: Final = re.compile(_LABEL_FORM)
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_FORM)
_LABEL_WORDS: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL_FORM}')"
)
_SUBDOMAIN_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_FORM}')"
)

MAX_LABEL_NAME: Final = 63
MAX_SUBDOMAIN_NAME: Final = 253

# Names of these become a part of a host name or of another object's label.
_LABEL_KINDS: Final = frozenset({("", "namespaces"), ("", "services"), ("apps", "statefulsets")})
# Names of these may have any characters that a path can have, such as system:node.
_PATH_GROUPS: Final = frozenset({"rbac.authorization.k8s.io"})


def object_name_problems(type_: ResourceType, name: str) -> list[str]:
    """Return what the API server objects to in the name of an object; an empty list means that it accepts it."""
    if type_.group in _PATH_GROUPS:
        return path_segment_problems(name)
    if (type_.group, type_.resource) in _LABEL_KINDS:
        return dns_label_problems(name)
    return dns_subdomain_problems(name)


def dns_label_problems(name: str) -> list[str]:
    """Return what is wrong with a name that must be a DNS label."""
    if "." in name:
        return ["must not contain dots"]
    problems = []
    if len(name) > MAX_LABEL_NAME:
        problems.append(f"must be no more than {MAX_LABEL_NAME} characters")
    if not _LABEL.fullmatch(name):
        problems.append(_LABEL_WORDS)
    return problems


def dns_subdomain_problems(name: str) -> list[str]:
    """Return what is wrong with a name that must be a DNS subdomain."""
    problems = []
    if len(name) > MAX_SUBDOMAIN_NAME:
        problems.append(f"must be no more than {MAX_SUBDOMAIN_NAME} characters")
    if not _SUBDOMAIN.fullmatch(name):
        problems.append(_SUBDOMAIN_WORDS)
    return problems


def path_segment_problems(name: str) -> list[str]:
    """Return what is wrong with a name that must be a part of a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{each}'" for each in ("/", "%") if each in name]
