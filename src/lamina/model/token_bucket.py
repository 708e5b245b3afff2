"""
Token buckets: rate limits with bursts.

The caller passes `now`, in seconds of any monotonic clock, and thereby chooses the clock. Clients, services and the
simulator use them; `lamina.clients.rate_limit` adds the waiting.
"""

from collections import OrderedDict


class TokenBucket:
    """Bucket of up to *burst* tokens that gains *per_second* tokens each second."""

    __slots__ = ("_at", "_burst", "_level", "_per_second")

    def __init__(self, per_second: float, burst: float) -> None:
        """Start full. At a rate of 0 or less there is no limit."""
        self._per_second = per_second
        self._burst = float(burst)
        self._level = self._burst
        self._at = 0.0

    def has(self, now: float) -> bool:
        """Return whether a token is available, without taking it."""
        return self._per_second <= 0 or self._filled(now) >= 1.0

    def take(self, now: float) -> bool:
        """Take a token if one is available; return whether it was."""
        if not self.has(now):
            # State is not updated, so that frequent calls add no rounding errors.
            return False
        self.reserve(now)
        return True

    def reserve(self, now: float) -> float:
        """Take a token, even one that is not available yet; return the seconds until it is."""
        if self._per_second <= 0:
            return 0.0
        self._level = self._filled(now) - 1.0
        self._at = now
        # A negative level is the number of tokens that earlier callers have reserved and wait for.
        return -self._level / self._per_second if self._level < 0 else 0.0

    def _filled(self, now: float) -> float:
        return min(self._level + (now - self._at) * self._per_second, self._burst)


class TokenBuckets:
    """One bucket per key; the least recently used key is dropped first, and starts full again."""

    def __init__(self, per_second: float, burst: float, most: int) -> None:
        """Keep at most *most* keys."""
        self._per_second = per_second
        self._burst = burst
        self._most = most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._buckets)

    def take(self, key: str, now: float) -> bool:
        """Take a token of *key* if one is available; return whether it was."""
        bucket = self._buckets.pop(key, None) or TokenBucket(self._per_second, self._burst)
        self._buckets[key] = bucket
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return bucket.take(now)
