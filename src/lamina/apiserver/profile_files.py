"""
Profile files: another scheduler, described in a small YAML file that only the command line can name.

    name: my-batch
    program: /opt/my-batch
    arguments: ["--kubeconfig={kubeconfig}", "--port={port}"]
    schedulerName: my-batch
    settle: sessions
    silence: 0.2
    lines:
      opens: "cycle [0-9]+ begins"
      closes: "cycle [0-9]+ ends"
      places: "picked <([^>]+)>"

``settle`` is ``log`` or ``metrics`` for a program that logs or counts as kube-scheduler does, ``sessions`` for one that
works in periods, or ``silence``. ``lines`` are regular expressions for ``sessions``; the first group of ``places`` is
``namespace/name`` of a pod.
"""

import re
from pathlib import Path
from typing import Final

import msgspec

from lamina.apiserver.scheduler_profiles import SchedulerProfile, SettleKind
from lamina.apiserver.settling.session_log import SessionLines
from lamina.model.conversion import convert
from lamina.model.errors import InputError, Mistake
from lamina.model.yaml_document import read_yaml

LARGEST: Final = 64 * 1024
LONGEST_SILENCE: Final = 60.0


class SchedulerProfileFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Content of a profile file."""

    name: str
    program: str
    about: str = "a scheduler of the user"
    arguments: tuple[str, ...] = ()
    scheduler_name: str = "default-scheduler"
    settle: SettleKind = "silence"
    silence: float = 0.2
    metrics: str = ""
    config: str = ""
    lines: SessionLines = SessionLines()
    barrier: str = ""


def read_profile(path: Path) -> SchedulerProfile:
    """Return the profile in a file. Raises InputError."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError.one(str(path), f"cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise InputError.one(str(path), f"larger than {LARGEST} bytes; is this a scheduler profile?")
    return parse_profile(data.decode("utf-8", "replace"), str(path))


def parse_profile(text: str, source: str) -> SchedulerProfile:
    """Return the profile in a text. Raises InputError with all mistakes."""
    found = convert(read_yaml(text, source), SchedulerProfileFile)
    mistakes = []
    if not 0.0 < found.silence <= LONGEST_SILENCE:
        mistakes.append(Mistake(source, f"silence: {found.silence:g} is not above 0 and at most {LONGEST_SILENCE:g} s"))
    for name in ("opens", "closes", "places"):
        pattern = getattr(found.lines, name)
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            mistakes.append(Mistake(source, f"lines.{name}: {pattern!r} is no regular expression: {error}"))
            continue
        if name == "places" and not groups:
            mistakes.append(Mistake(source, "lines.places: needs a group for namespace/name, such as <([^>]+)>"))
    if found.settle in {"metrics", "lamina"} and not found.metrics:
        mistakes.append(
            Mistake(source, f"settle: {found.settle} needs metrics, such as http://127.0.0.1:{{port}}/metrics")
        )
    if mistakes:
        raise InputError(mistakes)
    return SchedulerProfile(**msgspec.structs.asdict(found))
