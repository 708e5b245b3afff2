"""
Token buckets: a bounded rate with bursts, for everything that may be done only so often.

The caller passes `now`, in seconds by any clock that never goes back, and so decides which clock counts. Clients, services
and the simulator use these; `lamina.clients.rate_limit` adds the waiting.
"""

from collections import OrderedDict


class TokenBucket:
    """Holds up to *burst* tokens and gains *per_second* of them each second; starts full."""

    __slots__ = ("_at", "_burst", "_level", "_per_second")

    def __init__(self, per_second: float, burst: float) -> None:
        """Start full. At a rate of 0 or less there is no limit."""
        self._per_second = per_second
        self._burst = float(burst)
        self._level = self._burst
        self._at = 0.0

    def has(self, now: float) -> bool:
        """Return whether there is a token; it is not taken."""
        return self._per_second <= 0 or self._filled(now) >= 1.0

    def take(self, now: float) -> bool:
        """Take a token if there is one, and return whether there was."""
        if not self.has(now):
            # Nothing is stored, so that asking often adds no rounding errors.
            return False
        self.reserve(now)
        return True

    def reserve(self, now: float) -> float:
        """Take a token, also one that is not there yet; return in how many seconds it will be."""
        if self._per_second <= 0:
            return 0.0
        self._level = self._filled(now) - 1.0
        self._at = now
        # Below zero: as many callers have reserved tokens already and wait for them.
        return -self._level / self._per_second if self._level < 0 else 0.0

    def _filled(self, now: float) -> float:
        return min(self._level + (now - self._at) * self._per_second, self._burst)


class TokenBuckets:
    """One bucket for each key; the key that was used longest ago is forgotten first, and starts full again."""

    def __init__(self, per_second: float, burst: float, most: int) -> None:
        """Remember *most* keys."""
        self._per_second = per_second
        self._burst = burst
        self._most = most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def __len__(self) -> int:
        """Count the keys that are remembered."""
        return len(self._buckets)

    def take(self, key: str, now: float) -> bool:
        """Take a token of *key*'s if there is one, and return whether there was."""
        bucket = self._buckets.pop(key, None) or TokenBucket(self._per_second, self._burst)
        self._buckets[key] = bucket
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return bucket.take(now)
