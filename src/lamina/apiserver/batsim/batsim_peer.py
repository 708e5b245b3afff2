"""
The decision process of a run, as a user names it after ``--scheduler batsim:``.

    batsim:tcp://127.0.0.1:28000     one that listens there already, or soon
    batsim:pybatsim easyBackfill     a command that Lamina starts and stops

In a command, ``{endpoint}`` stands for the address at which the program must listen, and ``{port}`` for its port. Known
programs get the address as arguments.
"""

import re
import shlex
from pathlib import PurePath
from typing import Final

import msgspec

from lamina.model.conversion import suggest
from lamina.model.duration import seconds
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.simulator.batsim.batsim_settings import BatsimSettings

PREFIX: Final = "batsim:"
OPTION: Final = "--scheduler"
SETTINGS: Final = "--batsim"
TIMEOUT: Final = "timeout"
SCHED_CONFIG: Final = "sched-config"
USUAL_TIMEOUT: Final = 300.0
"""Real seconds that a decision process may take for a message."""

_ENDPOINT: Final = re.compile(r"(tcp|ipc|inproc)://\S+")
_SOCKET: Final = ("-s", "{endpoint}")

ARGUMENTS: Final[dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]] = {
    # By default PyBatsim listens on all interfaces, and gives up after 2 s.
    "pybatsim": ((("-t", "--timeout"), ("-t", "0")), (("-s", "--socket-endpoint"), _SOCKET)),
    "batsched": ((("-s", "--socket-endpoint"), _SOCKET),),
    "lamina": ((("-s", "--socket-endpoint"), _SOCKET),),
}
"""Arguments that known programs get, each with the options that the user may write instead."""

SWITCHES: Final = {
    "compute-sharing": "compute_sharing",
    "dynamic-jobs": "dynamic_jobs",
    "acknowledge": "acknowledge",
    "forward-profiles": "forward_profiles",
    "forward-unknown-events": "forward_unknown_events",
}
"""Settings without a value, and their fields."""


class BatsimPeer(msgspec.Struct, frozen=True, kw_only=True):
    """A decision process."""

    name: str
    endpoint: str = ""
    """Where it listens; empty: Lamina chooses, and starts *command*."""
    command: tuple[str, ...] = ()
    settings: BatsimSettings = BatsimSettings()
    timeout: float = USUAL_TIMEOUT
    """Real seconds that it may take for a message; infinity: any time."""


def is_batsim(text: str) -> bool:
    """Return whether the value of ``--scheduler`` names a decision process of Batsim's."""
    return text.startswith(PREFIX)


def batsim_peer(text: str, chosen: tuple[str, ...] = ()) -> BatsimPeer:
    """Return the decision process for the values of ``--scheduler`` and ``--batsim``. Raises InputError."""
    settings, timeout = _settings(chosen)
    rest = text.removeprefix(PREFIX).strip()
    if _ENDPOINT.fullmatch(rest):
        if "*" in rest:
            raise InputError.one(OPTION, f"{rest} is no address to connect to; write 127.0.0.1 for *")
        return BatsimPeer(name="batsim", endpoint=rest, settings=settings, timeout=timeout)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise InputError.one(OPTION, f"cannot be read: {error}; check the quotes") from None
    if not words:
        message = "names no decision process; write batsim:tcp://127.0.0.1:28000, or batsim: and a command"
        raise InputError.one(OPTION, message)
    command = tuple(_completed(words))
    return BatsimPeer(name=_name(words), command=command, settings=settings, timeout=timeout)


def _completed(words: list[str]) -> list[str]:
    """Return a command with the arguments that it lacks. Raises InputError if the program would not know its address."""
    if any("{endpoint}" in word or "{port}" in word for word in words):
        return words
    known = ARGUMENTS.get(PurePath(words[0]).name)
    if known is None:
        message = f"{words[0]} would not know where to listen; write {{endpoint}} or {{port}} in the command"
        raise InputError.one(OPTION, message)
    added: list[str] = []
    for names, arguments in known:
        given = next((word for word in words[1:] if word.partition("=")[0] in names), "")
        if given and arguments == _SOCKET:
            raise InputError.one(OPTION, f"omit {given}, or write {{endpoint}} after it: Lamina chooses the address")
        if not given:
            added += arguments
    return [*words, *added]


def _name(words: list[str]) -> str:
    """Return the program and what it runs, such as ``pybatsim easyBackfill``."""
    program = PurePath(words[0]).name
    return f"{program} {words[1]}" if len(words) > 1 and not words[1].startswith("-") else program


def _settings(chosen: tuple[str, ...]) -> tuple[BatsimSettings, float]:
    fields: dict[str, str | bool] = {}
    timeout = USUAL_TIMEOUT
    mistakes: list[Mistake] = []
    for text in chosen:
        name, given, value = text.partition("=")
        if name in SWITCHES and not given:
            fields[SWITCHES[name]] = True
        elif name == SCHED_CONFIG and given:
            fields["sched_config"] = value
        elif name == TIMEOUT and given:
            try:
                timeout = seconds(value) or float("inf")
            except ValueError as error:
                mistakes.append(Mistake(SETTINGS, f"{TIMEOUT}: {error}; 0 waits for ever"))
        elif name in SWITCHES:
            mistakes.append(Mistake(SETTINGS, f"{name} takes no value; write {name}"))
        elif name in {SCHED_CONFIG, TIMEOUT}:
            mistakes.append(Mistake(SETTINGS, f"{name} needs a value; write {name}=VALUE"))
        else:
            hint = suggest(name, [*SWITCHES, SCHED_CONFIG, TIMEOUT])
            mistakes.append(Mistake(SETTINGS, f"there is no setting {shown(name)}; {hint}"))
    if fields.get("acknowledge") and not fields.get("dynamic_jobs"):
        mistakes.append(Mistake(SETTINGS, "acknowledge is about registered jobs; add dynamic-jobs"))
    if mistakes:
        raise InputError(mistakes)
    return msgspec.convert(fields, BatsimSettings), timeout
