"""
How much work a call is, counted and not timed: the same on every machine, however busy.

Counted are the steps of the interpreter. A step into code written in C is one step, whatever that code does, so this tells
whether our own code goes over its input again and again, and not whether a regular expression does.
"""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(call: Callable[[], object]) -> int:
    """How many instructions of Python *call* takes, in this thread; what it returns or raises is dropped."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            count += 1
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    # A collection would run the finalizers of whatever earlier tests left behind.
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    except Exception:  # noqa: BLE001 - a refusal is work as well
        pass
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count
