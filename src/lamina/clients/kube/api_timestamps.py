"""Points in time as the API server wants them written: RFC 3339 in UTC, with microseconds (MicroTime) or without (Time)."""

import functools
import time


@functools.lru_cache(maxsize=4)  # events come in bursts, many in one second
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def whole_time(seconds: float) -> str:
    """Write seconds since 1970 without their fraction."""
    return f"{_second(int(seconds))}Z"


def micro_time(nanos: int) -> str:
    """Write nanoseconds since 1970 as seconds with six digits of their fraction."""
    return f"{_second(nanos // 1_000_000_000)}.{nanos // 1_000 % 1_000_000:06d}Z"
