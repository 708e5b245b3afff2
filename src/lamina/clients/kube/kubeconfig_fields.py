"""
One mapping of a kubeconfig, read field by field: text, yes or no, lists, base64.

Kubeconfigs carry fields and extensions of many tools, so what is not asked for is ignored. What is asked for and has
another shape is a mistake that names file, line and field, and never shows the value: it may be a secret.
"""

import base64
import binascii
from pathlib import Path

from lamina.model import plain
from lamina.model.errors import InputError
from lamina.model.plain import Plain
from lamina.model.yaml_document import YamlDocument, YamlNode


class KubeconfigFields:
    """What stands at one place of a document."""

    def __init__(self, document: YamlDocument, path: plain.Path = ()) -> None:
        """Look at a place that must be a mapping, or nothing. Raises InputError."""
        self.document, self.path = document, path
        place: YamlNode | None = document.root
        for step in path:
            place = place.inside.get(step) if place is not None else None
        value = place.value if place is not None else None
        if value is not None and not isinstance(value, dict):
            raise self.mistake("", "expected fields with names")
        self._value: dict[str, Plain] = value or {}

    @property
    def source(self) -> str:
        """The file, as a person named it."""
        return self.document.source

    def mistake(self, name: str, message: str) -> InputError:
        """Say what is wrong with a field, or with all of it."""
        path = (*self.path, name) if name else self.path
        line = self.document.line(path)
        return InputError.one(self.source, message, path=plain.written_path(path), line=line)

    def has(self, name: str) -> bool:
        """Whether a field is there and says anything."""
        return self._value.get(name) not in (None, "", [], {})

    def text(self, name: str) -> str:
        """Read text; absent is empty."""
        value = self._value.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.mistake(name, "expected text; put it in quotes")
        return value

    def flag(self, name: str) -> bool:
        """Read yes or no; absent is no."""
        value = self._value.get(name)
        if not isinstance(value, bool | None):
            raise self.mistake(name, "expected true or false")
        return bool(value)

    def data(self, name: str) -> bytes | None:
        """Read base64; absent is None."""
        if not (text := self.text(name)):
            return None
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise self.mistake(name, "expected base64, as `base64 -w0 FILE` writes it") from None

    def file(self, name: str) -> Path | None:
        """Read the path of a file; a relative one begins where the kubeconfig is."""
        text = self.text(name)
        if "\0" in text:
            raise self.mistake(name, "expected the path of a file")
        return Path(self.source).parent / text if text else None

    def texts(self, name: str) -> list[str]:
        """Read a list of texts; absent is empty."""
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.mistake(name, "expected a list of texts; put each in quotes")
        return [str(item) for item in value]

    def lists(self, name: str) -> dict[str, list[str]]:
        """Read named lists of texts; absent is empty."""
        inner = self.inside(name)
        return {key: inner.texts(key) for key in inner.names()}

    def inside(self, name: str) -> "KubeconfigFields":
        """Go into a field."""
        return KubeconfigFields(self.document, (*self.path, name))

    def items(self, name: str) -> list["KubeconfigFields"]:
        """Go into each item of a list; absent is empty."""
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.mistake(name, "expected a list")
        return [KubeconfigFields(self.document, (*self.path, name, position)) for position in range(len(value))]

    def names(self) -> list[str]:
        """List the fields there are."""
        return list(self._value)

    def raw(self, name: str) -> Plain:
        """Take a field as it is."""
        return self._value.get(name)
