"""
kube-safe-scheduler's `safe` in plain Python, sentence by sentence as its behaviour is described; one node at a time.

The incomplete beta function is worked out in another way than the plugin does it: both sides of the density are integrated
by the tanh-sinh rule, and neither needs the function Γ.
"""

import math
from collections.abc import Mapping

from lamina.model.pod import Pod

STEP = 1 / 32
# Far enough towards 0 for what is left of t^a with a hundredth, and towards x as far as floats tell.
REACH = range(-9 * 32, 4 * 32 + 1)


def incomplete_beta(a: float, b: float, x: float) -> tuple[float, float]:
    """Return I_x(a, b) and 1 - I_x(a, b)."""
    if x <= 0 or x >= 1:
        return (0.0, 1.0) if x <= 0 else (1.0, 0.0)
    left, right = _logs(a, b, x), _logs(b, a, 1 - x)
    top = max(*left, *right)
    low, high = (math.fsum(math.exp(log - top) for log in logs) for logs in (left, right))
    return low / (low + high), high / (low + high)


def _logs(a: float, b: float, x: float) -> list[float]:
    """Return the logarithms of the terms whose sum is the integral of t^(a-1) (1-t)^(b-1) from 0 to x."""
    logs = []
    for place in REACH:
        bend = math.pi / 2 * math.sinh(place * STEP)
        # t = x / (1 + e^(-2 bend)), in logarithms so that it may be as small as it likes.
        log_share = -math.log1p(math.exp(-2 * bend)) if bend > -300 else 2 * bend
        log_t = math.log(x) + log_share
        slope = math.log(math.pi * math.cosh(place * STEP)) + log_share - 2 * bend + log_share
        logs.append((a - 1) * log_t + (b - 1) * math.log1p(-math.exp(log_t)) + math.log(x) + slope)
    return logs


def demand(pod: Pod) -> tuple[int, int]:
    """The larger of what all containers ask for, and what the hungriest init container asks for."""
    both = []
    for resource in ("cpu", "memory"):
        containers = sum(dict(one.requests).get(resource, 0) for one in pod.containers)
        both.append(max([containers, *(dict(one.requests).get(resource, 0) for one in pod.init_containers)]))
    return both[0], both[1]


def use(
    annotations: Mapping[str, str], resource: str, capacity: int, asked: int, weight: float
) -> tuple[float, float] | None:
    """Mean and deviation with the pod; None where the statistics are invalid."""
    free = _number(annotations.get(f"mean-free-{resource}"))
    if free is None:
        return None
    spread = _number(annotations.get(f"std-free-{resource}")) or 0.0
    forecast = _number(annotations.get(f"forcasted-free-{resource}"))
    if forecast is not None:
        free = (1 - weight) * free + weight * forecast
    used = max(capacity - free, 0.0)
    return _clamp((used + asked) / capacity), _clamp(spread / capacity)


def risk(mean: float, deviation: float, threshold: float) -> float:
    """One minus the rank."""
    if mean == 0:
        return 0.0
    if deviation == 0:
        return 0.0 if mean <= threshold else 1.0
    if deviation**2 >= mean * (1 - mean):
        return 1.0
    k = max(mean * (1 - mean) / deviation**2 - 1, 5e-324)
    return incomplete_beta(mean * k, (1 - mean) * k, threshold)[1]


def overload_score(risk: float, tolerance: float) -> float:
    """The score before it is cut to a whole number."""
    part = min(risk / tolerance, 1.0)
    return 0.0 if part >= 1 else (1 - math.sqrt(part)) * 10


def balance_score(mean: float, deviation: float) -> float:
    """Likewise, with the half that rounds it."""
    return (1 - (mean + math.sqrt(deviation)) / 2) * 10 + 0.5


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _clamp(share: float) -> float:
    return min(max(share, 0.0), 1.0)
