"""
Where tests depend on real time: found in their source, for the rule in tests/unit/test_time_rules.py.

A test depends on real time when it reads a clock of the machine or rests for a fixed while. It does not when it

- looks again and again until something is so, at whatever pace: a rest inside a `while` that reads no clock;
- rests "for ever" (half a minute or more), as a stub does that never answers;
- rests on a loop that leaps over waiting: the module names one of VIRTUAL.
"""

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

CLOCKS: Final = {
    f"{name}{unit}"
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    for unit in ("", "_ns")
}
VIRTUAL: Final = {"leaping", "LeapingLoop", "VirtualLoop"}
FOR_EVER: Final = 30.0
MARKER: Final = "realtime"

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Found(NamedTuple):
    """One place that depends on real time."""

    line: int
    what: str


def found(source: str) -> list[Found]:
    """The places in a module that depend on real time and are not under the marker, in their order."""
    module = ast.parse(source)
    if _whole(module):
        return []
    virtual = any(isinstance(node, ast.Name) and node.id in VIRTUAL for node in ast.walk(module))
    return sorted(_places(module, virtual, patient=False))


def marks_whole_module(source: str) -> bool:
    """Whether every test of a module is under the marker."""
    return _whole(ast.parse(source))


def _whole(module: ast.Module) -> bool:
    marks = [
        statement.value
        for statement in module.body
        if isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in statement.targets)
    ]
    return any(_names_marker(mark) for mark in marks)


def _names_marker(expression: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == MARKER for node in ast.walk(expression))


def _places(node: ast.AST, virtual: bool, patient: bool) -> Iterator[Found]:
    """What stands in *node*; *patient* inside a loop that looks until something is so."""
    if isinstance(node, Function | ast.ClassDef) and any(_names_marker(each) for each in node.decorator_list):
        return
    if isinstance(node, Function):
        patient = False
    elif isinstance(node, ast.While):
        patient = not any(_reads_clock(inner) for inner in ast.walk(node))
    if _reads_clock(node):
        assert isinstance(node, ast.Call)
        yield Found(node.lineno, ast.unparse(node))
    elif isinstance(node, ast.Call) and not patient and _rests(node, virtual):
        yield Found(node.lineno, ast.unparse(node))
    for child in ast.iter_child_nodes(node):
        yield from _places(child, virtual, patient)


def _reads_clock(node: ast.AST) -> bool:
    """time.monotonic() and its siblings."""
    return isinstance(node, ast.Call) and _is_of(node.func, "time", CLOCKS)


def _rests(call: ast.Call, virtual: bool) -> bool:
    """A rest for a fixed while that really passes."""
    really = _is_of(call.func, "time", {"sleep"}) or (_is_of(call.func, "asyncio", {"sleep"}) and not virtual)
    if not really or not call.args:
        return really
    length = call.args[0]
    if isinstance(length, ast.Constant) and isinstance(length.value, int | float):
        return 0 < length.value < FOR_EVER
    return True


def _is_of(function: ast.expr, module: str, names: set[str]) -> bool:
    """Whether *function* is one of a module's; `from time import ...` is refused by test_time_rules.py."""
    return (
        isinstance(function, ast.Attribute)
        and function.attr in names
        and isinstance(function.value, ast.Name)
        and function.value.id == module
    )
