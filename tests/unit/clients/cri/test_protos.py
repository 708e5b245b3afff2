"""The generated modules say what the .proto files beside them say, and nothing there can change a runtime."""

import importlib
import re
from pathlib import Path

import pytest

from lamina.clients.cri import protos

FOLDER = Path(protos.__file__).parent
SOURCES = sorted(FOLDER.glob("*.proto"))
MESSAGE = re.compile(r"^message (\w+) \{(.*?)\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"(\w+) = (\d+);")
CHANGING = re.compile(r"Create|Update|Delete|Remove|Write|Abort|Pull|Prepare|Commit|Publish|Cleanup|Run|Stop|Start")


def name(path):
    return path.stem


def written(source):
    """Messages of a .proto file: their fields by number."""
    text = source.read_text(encoding="utf-8")
    return {
        called: {field: int(number) for field, number in FIELD.findall(body)} for called, body in MESSAGE.findall(text)
    }


def test_there_is_something_to_look_at():
    assert len(SOURCES) >= 9


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_a_module_was_generated_from_what_the_file_says_now(source):
    module = importlib.import_module(f"lamina.clients.cri.protos.{source.stem}_pb2")
    generated = {
        called: {field.name: field.number for field in message.fields}
        for called, message in module.DESCRIPTOR.message_types_by_name.items()
    }

    assert written(source) == generated
    assert f"from {source.name}:" in str(module.__doc__)


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_no_request_changes_anything(source):
    requests = [called for called in written(source) if called.endswith("Request")]

    assert [] == [called for called in requests if CHANGING.search(called)]
