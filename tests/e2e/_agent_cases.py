"""
What the agents should do, worked out by hand.

Every node can give 4000m and 8000Mi, and every pod asks for 80m and 160Mi, which is 2 % of both, unless a case says
otherwise. The stock scheduler's own plugins then differ by 2 points for each such pod on a node: LeastAllocated gives
98 - 2·pods, BalancedAllocation gives all nodes the same because cpu and memory go together, the others have nothing to say.
An extender's level counts 10 · weight points.

kube-safe-scheduler's numbers for use with the pod, (mean, deviation) → risk of more than 90 %, from an independent Beta
distribution; points = 100 · (1 - √(risk/0.3)); balance = 100 · (1 - (mean + √deviation)/2); levels are tenths of points,
rounded half up, or as `compatible` has it: trunc(10 · (1 - √(risk/0.3))) and trunc(10 · balance + 0.5):

    CALM   (.425, .10)   8.51e-9   100 → 10 or 9    62.94 → 6
    LIVELY (.70, .15)    .073385    51 → 5           45.64 → 5
    BUSY   (.80, .10)    .158360    27 → 3 or 2      44.19 → 4
    STEADY (.85, .05)    .157290    28 → 3 or 2      46.32 → 5
    WILD   (.60, .30)    .215443    15 → 2 or 1      42.61 → 4
    RISKY  (.85, .10)    .371595    refused: more than .3
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Use = tuple[float, float]
CALM: Final[Use] = (0.425, 0.10)
LIVELY: Final[Use] = (0.70, 0.15)
BUSY: Final[Use] = (0.80, 0.10)
STEADY: Final[Use] = (0.85, 0.05)
WILD: Final[Use] = (0.60, 0.30)
RISKY: Final[Use] = (0.85, 0.10)

MILLI: Final = 4000
MEBI: Final = 8000
POD: Final = (80, 160)
"""What a pod asks for: thousandths of a cpu, MiB."""
IMAGE: Final = "registry.example/web:1"
OTHER_IMAGE: Final = "registry.example/other:1"
"""Of pods that are there already; nobody knows what it consists of."""
MB: Final = 10**6
BASE: Final = (b"base", 900 * MB)
APP: Final = (b"app", 100 * MB)
LAYERS: Final = (BASE, APP)
CPU_REASON: Final = "node(s) would risk cpu overload"
MEMORY_REASON: Final = "node(s) would risk memory overload"


@dataclass(frozen=True)
class At:
    """The state of a node before the pod comes."""

    pods: Sequence[tuple[int, int]] = ()
    """What others on it ask for."""
    cpu: Use | None = None
    """How its cpu is used, with the pod on it, as annotations say."""
    memory: Use | None = None
    factor: int | None = None
    """Its congestion."""
    holds: Sequence[tuple[bytes, int]] = ()
    """Layers it has."""


@dataclass(frozen=True)
class Case:
    """One pod, and where it goes."""

    name: str
    nodes: Mapping[str, At]
    stock: str
    """Where the stock scheduler puts it."""
    ours: str
    """Where it goes with an extender; empty: nowhere."""
    levels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By verb, what the extender says to each node."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """By node, why `safe-overload` refuses it."""
    pod: tuple[int, int] = POD
    memory: int = MEBI
    """What nodes have of it."""


@dataclass(frozen=True)
class SetUp:
    """Extenders, and what is tried with them."""

    name: str
    agents: Sequence[str]
    """The agents of each process."""
    cases: Sequence[Case]
    environment: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, Any] | None = None
    full_too: bool = False
    """Whether the first case is tried with whole nodes in the questions, too."""


def some(count: int) -> list[tuple[int, int]]:
    """So many pods like the one that comes."""
    return [POD] * count


# An image of 1000 MB, of which 900 are a base others have as well; 125 MB/s of download, 100 MB/s of unpacking, unpacked
# 2.3 times the size. d, u: seconds of both; E = max + 0.15 · min + 0.04 + 0.25 · d; points = 500/(5 + E), rounded down;
# level = 10 - log2(1 + 10 · (100/points - 1)), rounded.
#   nothing there   d = 8,  u = 23:  E = 23 + 1.2 + .04 + 2 = 26.24    16 points    10 - log2(53.5) = 4.26 → 4
#   the base there  d = .8, u = 2.3: E = 2.3 + .12 + .04 + .2 = 2.66   65 points    10 - log2(6.38) = 7.33 → 7
#   all of it       E = 0                                             100 points    10
# Weight 5: a level is 50 points, and nodes differ by 2 for each pod. Crowding costs nothing: no node is more than half a
# large pod (10 % of a node at least) above the mean.
LAYERS_CASES: Final = (
    Case(
        "the whole image",
        {"a": At(), "b": At(some(1), holds=[BASE]), "c": At(some(2), holds=LAYERS)},
        stock="a",
        ours="c",
        levels={"layers": {"a": 4, "b": 7, "c": 10}},
    ),
    Case(
        "layers it shares",
        {"a": At(), "b": At(some(1), holds=[BASE]), "c": At(some(2))},
        stock="a",
        ours="b",
        levels={"layers": {"a": 4, "b": 7, "c": 4}},
    ),
)

# Alone, overload has weight 1 and balance weight 10.
#   a calmer node          a: 3·10 + 4·100 = 430          b: 10·10 + 6·100 - 2 = 698     c is refused
#   steadier, not emptier  a: 2·10 + 4·100 = 420          b: 3·10 + 4·100 - 2 = 428
#   memory counts as well  the worse of both: a: LIVELY and BUSY: 3, 4; b: LIVELY and CALM: 5, 5
SAFE_NODES: Final[dict[str, dict[str, At]]] = {
    "calmer": {"a": At(cpu=BUSY), "b": At(some(1), cpu=CALM), "c": At(some(2), cpu=RISKY)},
    "steadier": {"a": At(cpu=WILD), "b": At(some(1), cpu=BUSY)},
    "memory": {"a": At(cpu=LIVELY, memory=BUSY), "b": At(some(1), cpu=LIVELY, memory=CALM)},
    "nowhere": {"a": At(cpu=RISKY), "b": At(some(1), cpu=CALM, memory=RISKY)},
}
NOWHERE: Final = {"a": CPU_REASON, "b": MEMORY_REASON}
SAFE_CASES: Final = (
    Case(
        "a calmer node",
        SAFE_NODES["calmer"],
        stock="a",
        ours="b",
        levels={"safe-overload": {"a": 3, "b": 10}, "safe-balance": {"a": 4, "b": 6}},
        refused={"c": CPU_REASON},
    ),
    Case(
        "a steadier node with a higher mean",
        SAFE_NODES["steadier"],
        stock="a",
        ours="b",
        levels={"safe-overload": {"a": 2, "b": 3}, "safe-balance": {"a": 4, "b": 4}},
    ),
    Case(
        "memory decides",
        SAFE_NODES["memory"],
        stock="a",
        ours="b",
        levels={"safe-overload": {"a": 3, "b": 5}, "safe-balance": {"a": 4, "b": 5}},
    ),
    Case("nowhere", SAFE_NODES["nowhere"], stock="a", ours="", refused=NOWHERE),
)
# The same in the eleven levels of kube-safe-scheduler.
#   a calmer node          a: 2·10 + 4·100 = 420          b: 9·10 + 6·100 - 2 = 688
#   steadier, not emptier  a: 1·10 + 4·100 = 410          b: 2·10 + 4·100 - 2 = 418
COMPATIBLE_CASES: Final = (
    Case(
        "a calmer node",
        SAFE_NODES["calmer"],
        stock="a",
        ours="b",
        levels={"safe-overload": {"a": 2, "b": 9}, "safe-balance": {"a": 4, "b": 6}},
        refused={"c": CPU_REASON},
    ),
    Case(
        "a steadier node with a higher mean",
        SAFE_NODES["steadier"],
        stock="a",
        ours="b",
        levels={"safe-overload": {"a": 1, "b": 2}, "safe-balance": {"a": 4, "b": 4}},
    ),
    Case("nowhere", SAFE_NODES["nowhere"], stock="a", ours="", refused=NOWHERE),
)

# CONGESTION_FACTOR_MAX=10: level = 10 · (1 - factor/10). Who says nothing is the mean of those who do: (30 + 80)/2 = 55
# points → 6; (0 + 60)/2 = 30 → 3. Weight 10: a level is 100 points.
CONGESTION_CASES: Final = (
    Case(
        "the least congested",
        {"a": At(factor=7), "b": At(some(1), factor=2), "c": At(some(2))},
        stock="a",
        ours="b",
        levels={"congestion": {"a": 3, "b": 8, "c": 6}},
    ),
    Case(
        "who says nothing is the mean",
        {"a": At(factor=10), "b": At(some(1)), "c": At(some(2), factor=4)},
        stock="a",
        ours="c",
        levels={"congestion": {"a": 0, "b": 3, "c": 6}},
    ),
)

# kube-safe-scheduler's own example: three nodes of 4000m and 8192Mi, used (2000, 2048), (1000, 4096) and not at all; the pod
# asks for (500, 1024). CONSOLIDATE values with the pod on each: .356608, .394375, .619893; lower is better, levels 1 to 10
# in between: 10, 1 + 9 · (.619893 - .394375)/(.619893 - .356608) = 8.71 → 9, 1. Weight 10.
# Stock: LeastAllocated 50, 50, 87; a and c differ by (37 + balance) points, levels by 900.
CONSOLIDATE_CASES: Final = (
    Case(
        "packs",
        {"a": At([(2000, 2048)]), "b": At([(1000, 4096)]), "c": At()},
        stock="c",
        ours="a",
        levels={"pigeon-holing": {"a": 10, "b": 9, "c": 1}},
        pod=(500, 1024),
        memory=8192,
    ),
)
# LOAD_BALANCE looks at cpu alone: a has none of it in use and 7000 of 8000Mi of memory, b 1000m and no memory.
# Deviation of (use of a, use of b) with the pod's 2 %: on a (.02, .25) → .115; on b (0, .27) → .135. Two values: 10 and 1.
# Stock, with the pod: a: cpu 98, memory 10 → 54; b: cpu 73, memory 98 → 85.
LOAD_BALANCE_CASES: Final = (
    Case(
        "balances cpu",
        {"a": At([(0, 7000)]), "b": At([(1000, 0)])},
        stock="b",
        ours="a",
        levels={"pigeon-holing": {"a": 10, "b": 1}},
    ),
)
# A_BINPACK with NUM_RESOURCES=1: |C_S - C_D|, each deviation/mean. a is empty, b has 1000m in use, the pod asks for 1000m.
# On a the nodes are (.25, .25): C_S = 0. On b they are (0, .5): C_S = .25/.25 = 1.
# Pods so far asked for 1000m each, however often: C_D = 0, a is nearer and gets 10, b 1: pods spread, as in stock.
# With small ones among them, some of 10m beside two or three of 1000m, C_D is about 1 (three and two: mean 406, deviation
# √((3 · 396² + 2 · 594²)/5) = 485, C_D = 1.19; three and three: 495/505 = .98). Either way b is nearer: they pack.
BINPACK_NODES: Final = {"a": At(), "b": At([(1000, 2000)])}
SPREADS: Final = Case(
    "spreads pods that are alike",
    BINPACK_NODES,
    stock="a",
    ours="a",
    levels={"pigeon-holing": {"a": 10, "b": 1}},
    pod=(1000, 2000),
)
PACKS: Final = Case(
    "packs pods that are not",
    BINPACK_NODES,
    stock="a",
    ours="b",
    levels={"pigeon-holing": {"a": 1, "b": 10}},
    pod=(1000, 2000),
)

# All nodes get level 1: what differs is what differs without it, 2 points a pod.
FOO_CASES: Final = tuple(
    Case(
        f"as stock: {where}",
        {name: At(some(count)) for name, count in nodes.items()},
        stock=where,
        ours=where,
        levels={"foo": dict.fromkeys(nodes, 1)},
    )
    for where, nodes in (
        ("a", {"a": 0, "b": 1, "c": 2}),
        ("b", {"a": 4, "b": 0, "c": 2}),
        ("c", {"a": 3, "b": 2, "c": 1}),
    )
)

# Together every verb of safe and congestion has weight 1.
#   a: 3·10 + 5·10 + 10·10     = 180     congestion alone would take it, and so does stock
#   b: 10·10 + 6·10 + 1·10 - 2 = 168     safe alone would take it
#   c: 5·10 + 5·10 + 9·10 - 4  = 186
SAFE_CONGESTION_CASES: Final = (
    Case(
        "neither's own choice",
        {
            "a": At(cpu=STEADY, factor=0),
            "b": At(some(1), cpu=CALM, factor=9),
            "c": At(some(2), cpu=LIVELY, factor=1),
        },
        stock="a",
        ours="c",
        levels={
            "safe-overload": {"a": 3, "b": 10, "c": 5},
            "safe-balance": {"a": 5, "b": 6, "c": 5},
            "congestion": {"a": 10, "b": 1, "c": 9},
        },
    ),
)
# Together the verbs of safe have weight 1, layers 5.
#   a: 10·10 + 6·10 + 4·50    = 360     safe alone would take it, and so does stock
#   b: refused                          layers alone would take it
#   c: 5·10 + 5·10 + 7·50 - 4 = 446
SAFE_LAYERS_CASES: Final = (
    Case(
        "neither's own choice",
        {
            "a": At(cpu=CALM),
            "b": At(some(1), cpu=RISKY, holds=LAYERS),
            "c": At(some(2), cpu=LIVELY, holds=[BASE]),
        },
        stock="a",
        ours="c",
        levels={
            "safe-overload": {"a": 10, "c": 5},
            "safe-balance": {"a": 6, "c": 5},
            "layers": {"a": 4, "c": 7},
        },
        refused={"b": CPU_REASON},
    ),
)

COMPATIBLE: Final = {
    "apiVersion": "lamina.dev/v1alpha1",
    "kind": "ExtenderConfiguration",
    "agents": [
        {"name": "safe", "plugins": {"SafeOverload": {"compatible": True}, "SafeBalance": {"compatible": True}}}
    ],
}
TEN: Final = {"CONGESTION_FACTOR_MAX": "10"}
SET_UPS: Final = (
    SetUp("layers", ["layers"], LAYERS_CASES, full_too=True),
    SetUp("safe", ["safe"], SAFE_CASES, full_too=True),
    SetUp("safe", ["safe"], COMPATIBLE_CASES, configuration=COMPATIBLE),
    SetUp("pigeon", ["pigeon"], CONSOLIDATE_CASES, {"POLICY_OBJECTIVE": "CONSOLIDATE"}, full_too=True),
    SetUp("pigeon", ["pigeon"], LOAD_BALANCE_CASES, {"POLICY_OBJECTIVE": "LOAD_BALANCE"}),
    SetUp("congestion", ["congestion"], CONGESTION_CASES, TEN, full_too=True),
    # Not with whole nodes: beside a filter kube-scheduler takes all of them for empty then, and stock's order is gone.
    SetUp("foo", ["foo"], FOO_CASES),
    SetUp("safe+congestion", ["safe,congestion"], SAFE_CONGESTION_CASES, TEN),
    SetUp("safe+congestion", ["safe", "congestion"], SAFE_CONGESTION_CASES, TEN, full_too=True),
    SetUp("safe+layers", ["safe,layers"], SAFE_LAYERS_CASES),
    SetUp("safe+layers", ["safe", "layers"], SAFE_LAYERS_CASES, full_too=True),
)
