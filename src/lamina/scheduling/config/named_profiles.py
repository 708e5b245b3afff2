"""Profiles that come with Lamina, by name. Each is an ordinary configuration that users can print and change."""

from typing import Final

from lamina.model.conversion import suggest
from lamina.model.errors import InputError
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.config.merge import NOT_IN_TREE
from lamina.scheduling.contract.plugin_registry import PluginRegistry

_HEAD: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""

_BESIDE_DEFAULTS: Final = (
    _HEAD
    + """\
profiles:
- plugins:
    multiPoint:
      disabled:
      - name: ImageLocality
      enabled:
      - name: LayerLocality
        weight: {weight}
{more}{place}  pluginConfig:
  - name: LayerLocality
    args:
      mode: seconds
{knowledge}      barrier:
        begin: {begin}
        width: {width}
        seconds: {seconds}
        floor: {floor}
      replicaShare: 0.2
{args}"""
)

_QOS: Final = (
    _HEAD
    + """\
profiles:
- plugins:
    queueSort:
      enabled:
      - name: QosAware
      disabled:
      - name: "*"
    postFilter:
      enabled:
      - name: QosAware
      disabled:
      - name: "*"
    reserve:
      enabled:
      - name: QosAware
    preBind:
      enabled:
      - name: QosAware
    postBind:
      enabled:
      - name: QosAware
  pluginConfig:
  - name: QosAware
    args:
      mode: {mode}
      safetyMargin: {margin}s
      minimumRunningTime: {running}s
"""
)

_ALONE: Final = (
    _HEAD
    + """\
profiles:
- plugins:
    score:
      disabled:
      - name: "*"
      enabled:
"""
)


def _lamina(weight: int, barrier: tuple[float, float, float, float], **parts: str) -> str:
    begin, width, seconds, floor = barrier
    parts = dict.fromkeys(("more", "place", "knowledge", "args"), "") | parts
    return _BESIDE_DEFAULTS.format(weight=weight, begin=begin, width=width, seconds=seconds, floor=floor, **parts)


def _gangs(order: str) -> str:
    """Return lamina-balanced with gangs; they give their nodes back before another pod preempts for them."""
    profile = _lamina(5, (0.5, 0.8, 5, 0.10)).replace(
        "  pluginConfig:\n",
        "    postFilter:\n"
        "      enabled:\n"
        "      - name: GangScheduling\n"
        "      - name: DefaultPreemption\n"
        "  pluginConfig:\n"
        "  - name: GangScheduling\n"
        f"    args:\n      order: {order}\n"
        "  - name: UnmetDemands\n"
        "    args:\n      podGroups: true\n",
    )
    return profile.replace("        weight: 5\n", "        weight: 5\n      - name: GangScheduling\n", 1)


def _backfill(reservations: str) -> str:
    """Return the profile of gangs with Backfill, which places them."""
    profile = _gangs("queue").replace(
        "    postFilter:\n", "    place:\n      disabled:\n      - name: GangScheduling\n    postFilter:\n"
    )
    profile = profile.replace(
        "      - name: GangScheduling\n", "      - name: GangScheduling\n      - name: Backfill\n", 1
    )
    return f"{profile}  - name: Backfill\n    args:\n      reservations: {reservations}\n"


KUBE_DEFAULT: Final = "kube-default"

NAMED: Final[dict[str, tuple[str, str]]] = {
    "lamina-balanced": (
        "soonest start, while nodes stay within a large pod of the mean load; the default",
        _lamina(5, (0.5, 0.8, 5, 0.10)),
    ),
    "lamina-even": (
        "soonest start, but only where it costs no balance",
        _lamina(2, (0.0, 1.2, 10, 0.03)),
    ),
    "lamina-roomy": (
        "soonest start, while nodes stay within two large pods of the mean load",
        _lamina(5, (0.8, 1.2, 5, 0.10)),
    ),
    "lamina-local": (
        "fewest downloads, for metered or slow registries and spare capacity",
        _lamina(5, (1.0, 2.0, 5, 0.10), more="      - name: ImagePresence\n        weight: 2\n"),
    ),
    "flow": (
        "all pending pods together, at the least total cost; needs the extra flow",
        _lamina(
            5,
            (0.5, 0.8, 5, 0.10),
            place="    place:\n      enabled:\n      - name: MinCostFlow\n",
            args="  - name: MinCostFlow\n    args:\n      costModel: layers\n      scorePrice: 0.01\n",
        ),
    ),
    "lamina-images": (
        "lamina-balanced without knowledge of shared layers: shows what that knowledge is worth",
        _lamina(5, (0.5, 0.8, 5, 0.10), knowledge="      knowledge: images\n"),
    ),
    "gang": (
        "lamina-balanced, and the pods of a gang start together or not at all",
        _gangs("queue"),
    ),
    "drf": (
        "gang, and the job with the smallest dominant share comes first",
        _gangs("drf"),
    ),
    "easy": (
        "batch jobs in order of arrival; later ones start early where they do not delay the first (EASY backfill)",
        _backfill("first"),
    ),
    "conservative": (
        "batch jobs in order of arrival; later ones start early where they delay no other (conservative backfill)",
        _backfill("all"),
    ),
    KUBE_DEFAULT: (
        "kube-scheduler's defaults without the plugins that are not in tree yet",
        _HEAD,
    ),
    "image-locality": (
        "ImageLocality alone",
        _ALONE + "      - name: ImageLocality\n",
    ),
    "ryax": (
        "kube-scheduler's defaults and the layer formula of Ryax's scheduler beside them",
        _HEAD
        + """\
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: LayerLocality
        weight: 1
  pluginConfig:
  - name: LayerLocality
    args:
      mode: original
""",
    ),
    "hotedge": (
        "layer bytes and free resources, as in HotEdge 2020",
        _ALONE
        + """\
      - name: HotEdge
  pluginConfig:
  - name: HotEdge
    args:
      loadShare: 0.2
""",
    ),
    "lrscheduler": (
        "layer sharing weighed by idleness, as in LRScheduler",
        _ALONE
        + """\
      - name: LRScheduler
        weight: 2
      - name: NodeResourcesBalancedAllocation
        weight: 1
""",
    ),
    "random": (
        "any feasible node",
        _ALONE.removesuffix("      enabled:\n"),
    ),
    "least-allocated": (
        "the emptiest node, regardless of images",
        _ALONE + "      - name: NodeResourcesFit\n",
    ),
    "most-allocated": (
        "the fullest feasible node, regardless of images",
        _ALONE
        + """\
      - name: NodeResourcesFit
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - name: cpu
        - name: memory
""",
    ),
    "qos-measured": (
        "kube-scheduler's defaults, with QoS measured and not used: the baseline of the QoS profiles",
        _HEAD
        + """\
profiles:
- plugins:
    reserve:
      enabled:
      - name: QosAware
    preBind:
      enabled:
      - name: QosAware
    postBind:
      enabled:
      - name: QosAware
""",
    ),
    "qos-original": (
        "promises of availability as in the published QoS-driven scheduler",
        _QOS.format(mode="original", margin=30, running=300),
    ),
    "qos": (
        "promises of availability with fewer evictions: preempts only where that is worth its cost",
        _QOS.format(mode="lamina", margin=10, running=60),
    ),
}

DEFAULT: Final = "lamina-balanced"

FORMER_NAMES: Final = {"original": "ryax"}
"""Former names of profiles; accepted for one release and listed nowhere."""


def current_name(profile: str) -> str:
    """Return the present name of a renamed profile; any other name, or the path of a file, is returned unchanged."""
    return FORMER_NAMES.get(profile, profile)


def named(name: str, registry: PluginRegistry) -> Configuration:
    """Return the configuration of a profile, also under its former name; an InputError suggests the nearest name."""
    name = current_name(name)
    if name not in NAMED:
        raise InputError.one("--profile", f"there is no profile {name!r} and no such file; {suggest(name, NAMED)}")
    return load(NAMED[name][1], f"profile {name}", registry)


def unsupported(name: str) -> str:
    """
    Say in one line what kube-scheduler does and the profile of that name does not do yet; empty for other profiles.

    Printed beside every comparison with ``kube-default``, so that its figures are not taken for kube-scheduler's own.
    """
    if name != KUBE_DEFAULT:
        return ""
    missing = dict.fromkeys(NOT_IN_TREE.values())
    return f"{name} is kube-scheduler's default profile without: {', '.join(missing)}"
