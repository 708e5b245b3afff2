"""Timestamps as the API server reads them: RFC 3339 in UTC, with microseconds (MicroTime) or without (Time)."""

import functools
import time


@functools.lru_cache(maxsize=4)  # events come in bursts, many in the same second
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def whole_time(seconds: float) -> str:
    """Format seconds since 1970, cut to whole seconds."""
    return f"{_second(int(seconds))}Z"


def micro_time(nanos: int) -> str:
    """Format nanoseconds since 1970, cut to microseconds."""
    return f"{_second(nanos // 1_000_000_000)}.{nanos // 1_000 % 1_000_000:06d}Z"
