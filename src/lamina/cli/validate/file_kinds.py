"""
The kinds of files that Lamina reads: recognized by their content, and checked by the reader of each kind.

Recognition looks at the first bytes, the first line or the fields at the top of the file. The rest need not be valid,
so that a file with a mistake gets the messages of its own reader.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from lamina.cli.options.scenario_profile import chosen_for
from lamina.cli.options.scheduler_profile import MOST_BYTES, read_text
from lamina.cli.simulate.foreign_options import scheduler_of
from lamina.cli.simulate.result_names import TRACE as TRACE_FILE
from lamina.clients.kube.kubeconfig import read_kubeconfig
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.registry_config import RegistryConfig, load_registry_config
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.model.yaml_document import read_yaml
from lamina.scheduling.config.loader import load
from lamina.scheduling.config.schema import KubeSchedulerConfiguration
from lamina.scheduling.plugins.in_tree import agents, registry
from lamina.services.extender.configuration import ExtenderConfiguration, load_configuration
from lamina.services.informers.usage.usage_settings import UsageSettings, load_settings
from lamina.simulator.workloads import load_scenario
from lamina.simulator.workloads.imports.kube_scheduler_simulator import check_simulator_file, is_record
from lamina.simulator.workloads.imports.swf import COMMENT as SWF_COMMENT
from lamina.simulator.workloads.imports.swf import FIELDS as SWF_FIELDS
from lamina.simulator.workloads.imports.swf import read_swf
from lamina.simulator.workloads.scenario_loader import ScenarioFile
from lamina.trace import recording
from lamina.trace.recording_reader import read_recording
from lamina.trace.trace_reader import PREAMBLE, FilePosition, chunks, read_trace
from lamina.trace.trace_records import FORMAT as TRACE_FORMAT
from lamina.wire.catalog_file import is_catalog, read_catalog
from lamina.wire.compressed_lines import GZIP_MAGIC, ReadBounds, read_lines
from lamina.wire.image_sources import kind_of, read_sources

FileKind = Literal[
    "scenario",
    "scheduler",
    "extender",
    "usage",
    "registries",
    "docker-config",
    "kubeconfig",
    "catalog",
    "trace",
    "recording",
    "images",
    "swf",
    "kube-scheduler-simulator",
]

HEAD: Final = 64 * 1024
"""Decompressed bytes at the start of a file that must show its kind, if it is not YAML."""
MOST_TEXT: Final = 64 * 1024**2
"""Most bytes of text to search for fields; readers have their own limits."""
NAMELESS: Final = "validated.example/image:latest"
"""A name for images that have none: `lamina catalog add` takes one from the command line."""
NAME_IT: Final = "if Lamina reads it, set --kind"

_KINDS: Final[Mapping[str, FileKind]] = {
    "KubeSchedulerConfiguration": "scheduler",
    "ExtenderConfiguration": "extender",
    "Config": "kubeconfig",
}
_FIELDS: Final[Mapping[FileKind, frozenset[str]]] = {
    "scenario": frozenset(one.encode_name for one in msgspec.structs.fields(ScenarioFile)),
    "scheduler": frozenset(one.encode_name for one in msgspec.structs.fields(KubeSchedulerConfiguration)),
    "usage": frozenset(one.encode_name for one in msgspec.structs.fields(UsageSettings)),
    "registries": frozenset(one.encode_name for one in msgspec.structs.fields(RegistryConfig)),
    "docker-config": frozenset({"auths", "credHelpers", "credsStore"}),
    "kubeconfig": frozenset({"clusters", "contexts", "users", "current-context"}),
    # The last: of kinds with equally many matching fields the first wins. This kind shares fields with others and,
    # unlike them, must name its kind.
    "extender": frozenset(one.encode_name for one in msgspec.structs.fields(ExtenderConfiguration)),
}
SNAPSHOT: Final = frozenset({"pods", "nodes", "pvs", "pvcs"})
"""Fields of a snapshot of kube-scheduler-simulator."""
_NUMBER: Final = re.compile(rb"-?[0-9]+(\.[0-9]*)?")
_FIELD: Final = re.compile(r"^(?:\"([^\"\n]+)\"|'([^'\n]+)'|([A-Za-z][\w-]*))[ \t]*:(?:[ \t]+([^\s#]+))?", re.MULTILINE)


def recognize(path: Path) -> FileKind:
    """Return the kind of a file or folder. Raises InputError if Lamina does not read it."""
    if path.is_dir():
        return "trace" if (path / TRACE_FILE).is_file() else "images"
    head = _head(path)
    line = head.partition(b"\n")[0]
    if is_catalog(line):
        return "catalog"
    if _format(line) == TRACE_FORMAT:
        return "trace"
    if recording.FORMAT.encode() in head[:HEAD] and not head.startswith((b"{", b"#")) and b"\0" in head[:4]:
        return "recording"
    if kind_of(path) == "archive":
        return "images"
    if is_record(line):
        return "kube-scheduler-simulator"
    if _is_swf(head):
        return "swf"
    return _of_fields(path, read_text(path, HEAD if b"\0" in head else MOST_TEXT))


def check(kind: FileKind, path: Path, data: Path | None = None) -> None:
    """Read *path* as a file of this kind; scenarios find their imports in *data*. Raises InputError."""
    readers: Mapping[FileKind, Callable[[], object]] = {
        "scenario": lambda: _check_scenario(path, data),
        "scheduler": lambda: load(read_text(path, MOST_BYTES), str(path), registry()),
        "extender": lambda: load_configuration(path, agents()),
        "usage": lambda: load_settings(path),
        "registries": lambda: load_registry_config(path),
        "docker-config": lambda: Keyring.from_file(path),
        "kubeconfig": lambda: read_kubeconfig([path]),
        "catalog": lambda: read_catalog(path),
        "trace": lambda: _exhaust(read_trace(path / TRACE_FILE if path.is_dir() else path)),
        "recording": lambda: _exhaust(read_recording(path)),
        "images": lambda: _check_images(path),
        "swf": lambda: read_swf(path),
        "kube-scheduler-simulator": lambda: check_simulator_file(path),
    }
    readers[kind]()


def _head(path: Path) -> bytes:
    """Return the beginning of a file, decompressed. Raises InputError."""
    place = FilePosition(str(path), lines=False)
    try:
        with path.open("rb") as file:
            compressed_lines = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            if not compressed_lines:
                head = bytearray()
                for piece in chunks(place, file, MOST_TEXT):
                    head += piece
                    if len(head) >= HEAD:
                        break
                return bytes(head)
    except OSError as error:
        raise InputError.one(str(path), f"cannot be read: {(error.strerror or 'input error').lower()}") from error
    return next(read_lines(path, ReadBounds(HEAD, HEAD)), (1, b""))[1]


def _is_swf(head: bytes) -> bool:
    """Return whether a file begins with comments of SWF, or with a line of its fields."""
    for line in head.splitlines():
        words = line.split()
        if words and not line.lstrip().startswith(SWF_COMMENT.encode()):
            return len(words) == len(SWF_FIELDS) and all(_NUMBER.fullmatch(word) for word in words)
    return head.lstrip().startswith(SWF_COMMENT.encode())


def _format(line: bytes) -> str:
    try:
        return PREAMBLE.decode(line).format
    except (ValueError, RecursionError):
        return ""


def _of_fields(path: Path, text: str) -> FileKind:
    fields = _fields(text, str(path))
    if not fields:
        raise InputError.one(str(path), f"has no fields, so its kind is not known; {NAME_IT}")
    said = str(fields.get("kind") or "")
    if said in _KINDS:
        return _KINDS[said]
    if said and "apiVersion" in fields:
        message = f"is a {shown(said)}, which Lamina does not read from a separate file; use a file of another kind"
        raise InputError.one(str(path), message)
    if "schemaVersion" in fields:
        return "images"
    if fields.keys() >= SNAPSHOT:
        return "kube-scheduler-simulator"
    if "nb_res" in fields:
        raise InputError.one(str(path), "is a Batsim workload; validate the scenario that imports it")
    shared = {kind: len(known & fields.keys()) for kind, known in _FIELDS.items()}
    best = max(shared, key=lambda kind: shared[kind])
    if not shared[best]:
        listed = ", ".join(list(fields)[:5])
        raise InputError.one(str(path), f"no kind of file that Lamina reads has the fields {listed}; {NAME_IT}")
    return best


def _fields(text: str, source: str) -> dict[str, object]:
    """Return the fields at the top of a YAML or JSON text, with their values if they are short."""
    if text.lstrip().startswith("{"):
        root = read_yaml(text, source).root.value
        return {str(name): value for name, value in root.items()} if isinstance(root, dict) else {}
    # Line by line and not as YAML: the reader of this kind reports mistakes further down.
    return {name: found[4] for found in _FIELD.finditer(text) if (name := found[1] or found[2] or found[3])}


def _check_scenario(path: Path, data: Path | None) -> None:
    scenario = load_scenario(path, 0, data)
    if not scheduler_of(scenario, path):
        chosen_for(scenario, path, None)


def _check_images(path: Path) -> None:
    mistakes: list[Mistake] = []
    for _, found in read_sources([path], NAMELESS):
        mistakes += found.mistakes
    if mistakes:
        raise InputError(mistakes)


def _exhaust(records: Iterator[object]) -> None:
    for _ in records:
        pass
