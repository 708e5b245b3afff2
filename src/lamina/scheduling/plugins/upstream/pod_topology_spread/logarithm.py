"""
Natural logarithm as Go computes it on amd64, to the last bit.

Scores are rounded results of logarithms. C libraries differ from Go, and from each other, in the last bit of about one
value in a hundred. The method is fdlibm's (``e_log.c``), which Go uses: x = 2**k · (1 + f), and a polynomial in s = f /
(2 + f).
"""

import math
from functools import lru_cache
from typing import Final

HALF_ROOT: Final = math.sqrt(2) / 2
LN2_HIGH: Final = 6.93147180369123816490e-01
LN2_LOW: Final = 1.90821492927058770002e-10
ODD: Final = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
EVEN: Final = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)


@lru_cache(maxsize=4096)
def logarithm(number: int) -> float:
    """Return ln(*number*); *number* must be positive."""
    part, power = math.frexp(number)
    if part < HALF_ROOT:
        part, power = part * 2, power - 1
    f = part - 1
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    rest = s2 * _polynomial(ODD, s4) + s4 * _polynomial(EVEN, s4)
    square = 0.5 * f * f
    return power * LN2_HIGH - ((square - (s * (square + rest) + power * LN2_LOW)) - f)


def _polynomial(coefficients: tuple[float, ...], x: float) -> float:
    value = coefficients[-1]
    for one in coefficients[-2::-1]:
        value = one + x * value
    return value
