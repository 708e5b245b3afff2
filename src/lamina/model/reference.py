"""
Image references: the names in pod specs, made comparable.

    reference  := [registry "/"] repository [":" tag] ["@" digest]
    registry   := host [":" port]          host: DNS name, IPv4 address, or IPv6 address in square brackets
    repository := component {"/" component}
    component  := words of a-z 0-9, joined by one of  .  _  __  or by dashes

The grammar is that of the distribution project, which runtimes use. The text before the first slash is a registry when
it contains a dot, a colon or an upper-case letter, or is ``localhost``; otherwise the image is on Docker Hub. Parsing
takes linear time, because any user who can create a pod can choose the text.
"""

import reprlib
import string
from itertools import groupby
from typing import Final

import msgspec

from lamina.model.digest import Digest, DigestError, parse_digest
from lamina.model.errors import LaminaError

MAX_LENGTH: Final = 4096
"""Longest text that is parsed."""
MAX_REPOSITORY_LENGTH: Final = 255
MAX_TAG_LENGTH: Final = 128

DOCKER_HUB: Final = "docker.io"
DEFAULT_TAG: Final = "latest"

_LEGACY_DOCKER_HUB: Final = "index.docker.io"
_OFFICIAL: Final = "library"
_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_COMPONENT_WORD: Final = frozenset(string.ascii_lowercase + string.digits)
_COMPONENT_JOINTS: Final = (".", "_", "__")
_IDENTIFIER_LENGTH: Final = 64

_QUOTE: Final = reprlib.Repr()
_QUOTE.maxstring = 120


class ReferenceFormatError(ValueError, LaminaError):
    """Text that is not an image reference; *problem* gives the reason and what to write instead."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(text, problem)
        self.text, self.problem = text, problem

    def __str__(self) -> str:
        return f"{_QUOTE.repr(self.text)} is not an image reference: {self.problem}"


class ImageReference(msgspec.Struct, frozen=True, gc=False):
    """A reference with all defaults filled in; `parse_reference` returns one."""

    registry: str
    repository: str
    tag: str | None = None
    digest: Digest | None = None

    @property
    def name(self) -> str:
        """Registry and repository, without tag and digest."""
        return f"{self.registry}/{self.repository}"

    @property
    def familiar(self) -> str:
        """The shortest equivalent text: ``nginx:1.27``."""
        if self.registry != DOCKER_HUB:
            return str(self)
        owner, _, rest = self.repository.partition("/")
        if owner == _OFFICIAL and "/" not in rest:
            return rest + self._version
        # Without "docker.io/" in front, this owner would be read as a registry.
        return str(self) if _names_a_registry(owner) else self.repository + self._version

    @property
    def _version(self) -> str:
        tag = self.tag or ("" if self.digest else DEFAULT_TAG)
        return (f":{tag}" if tag else "") + (f"@{self.digest}" if self.digest else "")

    def __str__(self) -> str:
        return self.name + self._version


def parse_reference(text: str) -> ImageReference:
    """
    Parse a reference and fill in its defaults. Raises ReferenceFormatError.

    Without a tag and a digest, the tag is ``latest``. A reference with only a digest gets no tag.
    """
    _reject_obvious_errors(text)
    registry, path = _split_registry(text)
    name_and_tag, at, digest_text = path.partition("@")
    repository, colon, tag = name_and_tag.partition(":")
    if repository != repository.lower():
        meant = text[: len(text) - len(path)] + repository.lower() + path[len(repository) :]
        raise ReferenceFormatError(text, f"repository names are lower case; did you mean {_QUOTE.repr(meant)}?")
    if registry == DOCKER_HUB and "/" not in repository:
        repository = f"{_OFFICIAL}/{repository}"
    _check_repository(text, repository)
    if colon:
        _check_tag(text, tag)
    digest = _read_digest(text, digest_text) if at else None
    return ImageReference(registry, repository, tag if colon else None if digest else DEFAULT_TAG, digest)


def is_reference(text: str) -> bool:
    """Return whether text is an image reference."""
    try:
        parse_reference(text)
    except ReferenceFormatError:
        return False
    return True


def locality_name(name: str) -> str:
    """
    Return the name by which kube-scheduler's ImageLocality looks up an image.

    It only adds a missing tag and does not expand Docker Hub's short names. Expanding them would give other scores than
    upstream's.
    """
    return name if name.rfind(":") > name.rfind("/") else f"{name}:{DEFAULT_TAG}"


def _reject_obvious_errors(text: str) -> None:
    if not text:
        raise ReferenceFormatError(text, "it is empty; write for example nginx:1.27")
    if len(text) > MAX_LENGTH:
        raise ReferenceFormatError(text, f"it is longer than {MAX_LENGTH} characters")
    if text.startswith(("http://", "https://")):
        meant = text.partition("://")[2]
        raise ReferenceFormatError(text, f"leave out the protocol and write {_QUOTE.repr(meant)}")
    if len(text) == _IDENTIFIER_LENGTH and not text.strip("0123456789abcdef"):
        raise ReferenceFormatError(text, f"this is an image id; write its repository and @sha256:{text}")


def _split_registry(text: str) -> tuple[str, str]:
    first, slash, rest = text.partition("/")
    if not slash or not _names_a_registry(first):
        return DOCKER_HUB, text
    if not _is_registry(first):
        raise ReferenceFormatError(text, f"{_QUOTE.repr(first)} is not a registry; write host or host:port")
    return (DOCKER_HUB if first == _LEGACY_DOCKER_HUB else first), rest


def _names_a_registry(first: str) -> bool:
    return "." in first or ":" in first or first == "localhost" or first != first.lower()


def _is_registry(text: str) -> bool:
    if text.startswith("["):
        host, bracket, port = text[1:].partition("]")
        sound = bool(host and bracket) and not host.strip(string.hexdigits + ":")
    else:
        host, colon, port = text.partition(":")
        port = colon + port
        sound = all(
            label and not label.strip(_ALPHANUMERIC + "-") and label[0] != "-" and label[-1] != "-"
            for label in host.split(".")
        )
    return sound and (not port or (port[0] == ":" and len(port) > 1 and not port[1:].strip(string.digits)))


def _check_repository(text: str, repository: str) -> None:
    if len(repository) > MAX_REPOSITORY_LENGTH:
        raise ReferenceFormatError(text, f"the repository is longer than {MAX_REPOSITORY_LENGTH} characters")
    for component in repository.split("/"):
        if not component:
            raise ReferenceFormatError(text, "a part of the repository is empty; write for example team/app:1.0")
        runs = [(word, "".join(run)) for word, run in groupby(component, _COMPONENT_WORD.__contains__)]
        joined = all(word or run in _COMPONENT_JOINTS or not run.strip("-") for word, run in runs)
        if not (joined and runs[0][0] and runs[-1][0]):
            raise ReferenceFormatError(
                text,
                f"{_QUOTE.repr(component)} cannot be part of a repository; use a-z and 0-9, with . _ __ or - between",
            )


def _check_tag(text: str, tag: str) -> None:
    if not tag:
        raise ReferenceFormatError(text, "nothing follows the colon; write a tag, or leave the colon out")
    if len(tag) > MAX_TAG_LENGTH:
        raise ReferenceFormatError(text, f"the tag is longer than {MAX_TAG_LENGTH} characters")
    if tag[0] in ".-" or tag.strip(_ALPHANUMERIC + "_.-"):
        raise ReferenceFormatError(
            text,
            f"{_QUOTE.repr(tag)} is not a tag; use letters, digits, _ . and -, and begin with none of the last two",
        )


def _read_digest(text: str, digest_text: str) -> Digest:
    try:
        return parse_digest(digest_text)
    except DigestError as error:
        raise ReferenceFormatError(text, str(error)) from error
