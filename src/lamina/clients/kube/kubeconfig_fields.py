"""
One mapping of a kubeconfig, with typed access to its fields: text, booleans, lists, base64.

Unknown fields are ignored, because kubeconfigs carry extensions of many tools. A field of the wrong type raises
InputError with file, line and field name. The value is never shown: it may be a secret.
"""

import base64
import binascii
from pathlib import Path

from lamina.model import plain
from lamina.model.errors import InputError
from lamina.model.plain import Plain
from lamina.model.yaml_document import YamlDocument, YamlNode


class KubeconfigFields:
    """The mapping at one path of a YAML document."""

    def __init__(self, document: YamlDocument, path: plain.Path = ()) -> None:
        """Select *path*, which must be a mapping or absent. Raises InputError."""
        self.document, self.path = document, path
        place: YamlNode | None = document.root
        for step in path:
            place = place.inside.get(step) if place is not None else None
        value = place.value if place is not None else None
        if value is not None and not isinstance(value, dict):
            raise self.mistake("", "expected a mapping")
        self._value: dict[str, Plain] = value or {}

    @property
    def source(self) -> str:
        """The file, as the user named it."""
        return self.document.source

    def mistake(self, name: str, message: str) -> InputError:
        """Return an error about a field, or about the whole mapping if *name* is empty."""
        path = (*self.path, name) if name else self.path
        line = self.document.line(path)
        return InputError.one(self.source, message, path=plain.written_path(path), line=line)

    def has(self, name: str) -> bool:
        """Return whether a field is present and not empty."""
        return self._value.get(name) not in (None, "", [], {})

    def text(self, name: str) -> str:
        """Return text; "" if absent."""
        value = self._value.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.mistake(name, "expected text; put it in quotes")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean; False if absent."""
        value = self._value.get(name)
        if not isinstance(value, bool | None):
            raise self.mistake(name, "expected true or false")
        return bool(value)

    def data(self, name: str) -> bytes | None:
        """Return decoded base64; None if absent."""
        if not (text := self.text(name)):
            return None
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise self.mistake(name, "expected base64, as `base64 -w0 FILE` writes it") from None

    def file(self, name: str) -> Path | None:
        """Return a file path, resolved from the kubeconfig's folder; None if absent."""
        text = self.text(name)
        if "\0" in text:
            raise self.mistake(name, "expected the path of a file")
        return Path(self.source).parent / text if text else None

    def texts(self, name: str) -> list[str]:
        """Return a list of strings; empty if absent."""
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.mistake(name, "expected a list of texts; put each in quotes")
        return [str(item) for item in value]

    def lists(self, name: str) -> dict[str, list[str]]:
        """Return a mapping of names to lists of strings; empty if absent."""
        inner = self.inside(name)
        return {key: inner.texts(key) for key in inner.names()}

    def inside(self, name: str) -> "KubeconfigFields":
        """Return the mapping under a field."""
        return KubeconfigFields(self.document, (*self.path, name))

    def items(self, name: str) -> list["KubeconfigFields"]:
        """Return the mapping in each item of a list; empty if absent."""
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.mistake(name, "expected a list")
        return [KubeconfigFields(self.document, (*self.path, name, position)) for position in range(len(value))]

    def names(self) -> list[str]:
        """List the field names."""
        return list(self._value)

    def raw(self, name: str) -> Plain:
        """Return a field's value unchecked."""
        return self._value.get(name)
