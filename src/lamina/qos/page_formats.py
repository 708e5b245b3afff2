"""
Text of the debug page and lines of the log, byte for byte in the formats of the original QoS plugin.

Durations are printed as Go prints them: whole seconds if they are longer than one second, milliseconds otherwise and if
they are negative. Pure functions from data to text.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.qos.incarnation import FinishedIncarnation
from lamina.qos.qos_view import QosView
from lamina.qos.standing import QosTimes

LOG_COLUMNS: Final = (
    "time,pod,controller,slo,replica,approach,created,waiting_ms,binding_ms,running_ms,succeeded,"
    "qos,metric,controller_waiting_ms,controller_binding_ms,controller_effective_ms,controller_discarded_ms"
)
"""Names of the columns of `log_line`; the original file has no header."""

_TABLE: Final = ("CONTROLLER", "QOS/SLO", "TTV", "RUNNING", "WAITING", "BINDING")
_TABLE_WIDTHS: Final = (20, 9, 20, 20, 20, 20)
_REPLICAS: Final = (
    "CONTROLLER",
    "QOS/SLO",
    "PREEMPTION OVERHEAD",
    "QOS APPROACH",
    "POD PHASE",
    "QOS METRIC",
    "EFF RUNNING",
    "DIS RUNNING",
    "WAITING",
    "BINDING",
)
_REPLICA_WIDTHS: Final = (20, 9, 19, 15, 15, 15, 20, 20, 20, 20)
_QUOTED: Final = frozenset(',"\n\r')


def go_duration(seconds: float) -> str:
    """Return a duration as the original page prints it, for example ``2h4m6s``, ``591ms`` or ``-2m22.541s``."""
    if math.isinf(seconds):
        return "+Inf" if seconds > 0 else "-Inf"
    sign = "-" if seconds < 0 else ""
    milliseconds = int(round(abs(seconds) * 1e6) / 1000)
    if not sign and milliseconds > 1000:
        milliseconds -= milliseconds % 1000
    if milliseconds == 0:
        return "0s"
    if milliseconds < 1000:
        return f"{sign}{milliseconds}ms"
    whole, part = divmod(milliseconds, 1000)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest}.{part:03}".rstrip("0") if part else str(rest)
    before = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{before}{text}s"


def controller_table(view: QosView) -> str:
    """Return the first format of the page: one line for each controller."""
    lines = [
        (
            each.name,
            f"{each.qos:4.2f}/{each.promise.slo:4.2f}",
            go_duration(each.slack),
            go_duration(each.times.effective + each.times.discarded),
            go_duration(each.times.waiting),
            go_duration(each.times.binding),
        )
        for each in view.controllers
    ]
    return _aligned([_TABLE, *lines], _TABLE_WIDTHS) + _note(view)


def replica_table(view: QosView) -> str:
    """Return the later format of the page: one line for each replica that has a pod."""
    lines = [
        (
            each.name,
            f"{each.qos:4.2f}/{each.promise.slo:4.2f}",
            f"{each.preemption_overhead:9.2f}/{each.promise.overhead_limit:<9.2f}",
            each.promise.approach,
            each.phase,
            _go_number(each.metric),
            *map(go_duration, (each.times.effective, each.times.discarded, each.times.waiting, each.times.binding)),
        )
        for each in view.replicas
    ]
    return _aligned([_REPLICAS, *lines], _REPLICA_WIDTHS) + _note(view)


def json_page(view: QosView) -> bytes:
    """Return the page as JSON; infinite values are null."""
    return msgspec.json.format(msgspec.json.encode(view), indent=2) + b"\n"


def log_line(finished: FinishedIncarnation) -> str:
    """Return the CSV line of a finished incarnation, in the columns of the original file."""
    times, total = finished.times, finished.controller_times
    fields = (
        str(int(finished.at)),
        finished.pod,
        str(finished.controller),
        f"{finished.slo:g}",
        str(finished.slot),
        str(finished.approach),
        str(int(finished.created_at)),
        *map(_milliseconds, (times.waiting, times.binding, _running(times))),
        "true" if finished.succeeded else "false",
        f"{finished.qos:.6f}",
        _go_number(finished.metric),
        *map(_milliseconds, (total.waiting, total.binding, total.effective, total.discarded)),
    )
    return ",".join(map(_field, fields)) + "\n"


def _note(view: QosView) -> str:
    return f"{view.omitted} more controllers and replicas are not shown\n" if view.omitted else ""


def _running(times: QosTimes) -> float:
    return times.effective + times.discarded


def _milliseconds(seconds: float) -> str:
    return str(int(round(seconds * 1e6) / 1000))


def _go_number(number: float) -> str:
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return f"{number:.4f}"


def _field(text: str) -> str:
    """Quote a CSV field where it is necessary."""
    return '"' + text.replace('"', '""') + '"' if _QUOTED & set(text) else text


def _aligned(lines: Iterable[tuple[str, ...]], widths: tuple[int, ...]) -> str:
    """Return lines of right-aligned columns with two spaces between them; long texts are not cut."""
    return "".join(
        "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) + "\n" for line in lines
    )
