"""Profile: the plugins of each extension point with order and weight, verified at construction."""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
import numpy as np
import numpy.typing as npt

from lamina.model.cluster_objects import ClusterObject
from lamina.model.decision import PluginScore
from lamina.model.errors import WiringError
from lamina.model.pod import Pod
from lamina.scheduling.contract.counted_evictions import CountingFilterPlugin, RelievedFilterPlugin
from lamina.scheduling.contract.placement import PlacePlugin
from lamina.scheduling.contract.plugin_registry import POINTS
from lamina.scheduling.contract.points import (
    MAX_SCORE,
    AmountFilterPlugin,
    AmountHintPlugin,
    BindPlugin,
    FilterNodePlugin,
    FilterPlugin,
    NormalizePlugin,
    NotesPlugin,
    ObjectReaderPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueingHintPlugin,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
    RetryTimePlugin,
    ScoreNodePlugin,
    ScorePlugin,
    SignPlugin,
    VersionedSignPlugin,
)
from lamina.scheduling.state.cluster_changes import ANY_CHANGE, ChangeKind, ClusterChange
from lamina.scheduling.state.columns import WIDE
from lamina.scheduling.state.facets import Facet

# Points whose results are cached per pod shape; only their plugins need `sign`.
DECIDING: Final = ("preFilter", "filter", "preScore", "score")
Scores = npt.NDArray[np.floating[Any]]  # Any: single or double precision, whichever is exact
# Facets that every placement changes.
PLACING: Final = frozenset({Facet.RESOURCES, Facet.PODS})
MOST_SHAPES: Final = 65_536
HEAVIEST: Final = 2**53
EVERYTHING: Final = Reads(whole=frozenset(Facet))


class FilterPart:
    """A filter plugin with precomputed properties."""

    __slots__ = (
        "as_one",
        "by_node",
        "by_row",
        "counting",
        "name",
        "placing",
        "plugin",
        "prepares",
        "reads",
        "relieved",
        "signer",
    )

    def __init__(self, plugin: FilterPlugin) -> None:
        """Inspect the plugin once, so that no cycle has to."""
        self.plugin = plugin
        self.name = plugin.name
        self.reads: Reads = getattr(plugin, "reads", EVERYTHING)
        self.by_node = plugin if isinstance(plugin, FilterNodePlugin) else None
        self.prepares = plugin if isinstance(plugin, PreFilterPlugin) else None
        self.counting = plugin if isinstance(plugin, CountingFilterPlugin) else None
        self.relieved = plugin if isinstance(plugin, RelievedFilterPlugin) else None
        self.by_row, self.as_one = _facets(self.reads)
        self.placing = not PLACING.isdisjoint(self.by_row)
        self.signer = _signer(plugin, self.as_one)


class ScorePart:
    """A score plugin with its weight and precomputed properties."""

    __slots__ = (
        "_known_scores",
        "as_one",
        "by_node",
        "by_row",
        "name",
        "normalizer",
        "placing",
        "plugin",
        "prepares",
        "reads",
        "signer",
        "weight",
    )

    def __init__(self, plugin: ScorePlugin, weight: int) -> None:
        """Inspect the plugin once, so that no cycle has to."""
        self.plugin = plugin
        self.name = plugin.name
        self.weight = weight
        self.reads: Reads = getattr(plugin, "reads", EVERYTHING)
        self.normalizer = plugin if isinstance(plugin, NormalizePlugin) else None
        self.by_node = plugin if isinstance(plugin, ScoreNodePlugin) else None
        self.prepares = plugin if isinstance(plugin, PreScorePlugin) else None
        self.by_row, self.as_one = _facets(self.reads)
        self.placing = not PLACING.isdisjoint(self.by_row)
        """Whether it reads, row by row, a facet that every placement changes."""
        self._known_scores: dict[float, PluginScore] = {}
        # `normalize` may use data stored by the last `score`: such a plugin scores again after every placement.
        self.signer = _signer(plugin, self.as_one if self.normalizer is None else self.by_row + self.as_one)

    def plugin_score(self, score: float) -> PluginScore:
        """Return the score as part of a decision; cached, because two nodes are described for every pod."""
        known = self._known_scores.get(score)
        if known is None:
            known = self._known_scores[score] = PluginScore(self.name, int(score), self.weight)
        return known


def _facets(reads: Reads) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the facets read row by row, and those where any change invalidates the whole result."""
    as_one = reads.whole | reads.others
    return tuple(sorted(reads.rows - as_one)), tuple(sorted(as_one))


def _signer(plugin: Plugin, void: tuple[int, ...]) -> SignPlugin | None:
    """Return the plugin if its results can be cached: it signs, and placements do not invalidate them."""
    return plugin if isinstance(plugin, SignPlugin) and PLACING.isdisjoint(void) else None


class AffectedPlugins(msgspec.Struct, frozen=True):
    """Plugins to run again after a change, with their index in the profile."""

    filters: tuple[tuple[int, FilterPart], ...]
    """To run for the changed rows."""
    scorers: tuple[tuple[int, ScorePart], ...]
    filters_whole: tuple[tuple[int, FilterPart], ...]
    """To prepare and run for all rows."""
    scorers_whole: tuple[tuple[int, ScorePart], ...]


class Profile:
    """Plugins of one scheduler name."""

    def __init__(self, name: str, by_point: Mapping[str, Sequence[Plugin]], weights: Mapping[str, int]) -> None:
        """Build a profile from plugins in order by point. Raise WiringError that lists everything wrong with it."""
        self.name = name
        _check(name, by_point, weights)

        def at(point: str) -> Sequence[Plugin]:
            return by_point.get(point, ())

        self.pre_enqueue = cast("Sequence[PreEnqueuePlugin]", at("preEnqueue"))
        self.queue_sort = cast("QueueSortPlugin", at("queueSort")[0])
        self.place = cast("Sequence[PlacePlugin]", at("place"))
        # `pre_filter` and `pre_score` belong to a plugin's result. They run even if the configuration enables only
        # `filter` or `score`.
        self.pre_filter = cast(
            "Sequence[PreFilterPlugin]", _with_companions(at("preFilter"), at("filter"), "pre_filter")
        )
        self.filters = [FilterPart(plugin) for plugin in cast("Sequence[FilterPlugin]", at("filter"))]
        self.post_filter = cast("Sequence[PostFilterPlugin]", at("postFilter"))
        self.pre_score = cast("Sequence[PreScorePlugin]", _with_companions(at("preScore"), at("score"), "pre_score"))
        self.scorers = [
            ScorePart(plugin, weights[plugin.name]) for plugin in cast("Sequence[ScorePlugin]", at("score"))
        ]
        heaviest = MAX_SCORE * sum(part.weight for part in self.scorers)
        # Half the memory to move where totals are exact in single precision, as with all but absurd weights.
        self.weights: Scores = np.array(
            [part.weight for part in self.scorers], dtype=np.float32 if heaviest < 2**24 else np.float64
        )
        self.bits = np.uint32 if self.weights.dtype == np.float32 else np.uint64
        """Unsigned integer type of the same width as a score."""
        self.full_score = int(np.array([MAX_SCORE], dtype=self.weights.dtype).view(self.bits)[0])
        """The largest allowed score, viewed as such an integer."""
        self.reserve = cast("Sequence[ReservePlugin]", at("reserve"))
        self.permit = cast("Sequence[PermitPlugin]", at("permit"))
        self.pre_bind = cast("Sequence[PreBindPlugin]", at("preBind"))
        self.bind = cast("Sequence[BindPlugin]", at("bind"))
        self.post_bind = cast("Sequence[PostBindPlugin]", at("postBind"))

        self.plugins: dict[str, Plugin] = {
            plugin.name: plugin for point in POINTS for plugin in by_point.get(point, ())
        }
        self._affected: dict[int, AffectedPlugins] = {}
        self._shapes: dict[Hashable, int] = {}
        self._shape_count = 0
        self._shapes_forgotten = 0
        """Shape numbers up to this one are no longer in use."""
        self._retry_on: dict[str, frozenset[ChangeKind]] = {
            name: getattr(plugin, "retry_on", ANY_CHANGE) for name, plugin in self.plugins.items()
        }
        self._hints: dict[str, QueueingHintPlugin] = {
            name: plugin for name, plugin in self.plugins.items() if isinstance(plugin, QueueingHintPlugin)
        }
        self._by_amounts: dict[str, AmountHintPlugin] = {
            name: plugin for name, plugin in self._hints.items() if isinstance(plugin, AmountHintPlugin)
        }
        self._exact = frozenset(
            name for name, plugin in self._by_amounts.items() if isinstance(plugin, AmountFilterPlugin)
        )
        self._retry_times: dict[str, RetryTimePlugin] = {
            name: plugin for name, plugin in self.plugins.items() if isinstance(plugin, RetryTimePlugin)
        }
        self.noting = [plugin for plugin in self.plugins.values() if isinstance(plugin, NotesPlugin)]
        """Plugins that report problems of a pod without refusing it."""
        self.objects: frozenset[type[ClusterObject]] = frozenset[type[ClusterObject]]().union(
            *(plugin.objects for plugin in self.plugins.values() if isinstance(plugin, ObjectReaderPlugin))
        )
        """Classes of cluster objects that a plugin reads; the host watches them."""
        self._collect_reads(_distinct(plugin for point in DECIDING for plugin in at(point)))

    def _collect_reads(self, deciding: Sequence[Plugin]) -> None:
        """Collect what the results of the deciding plugins depend on."""
        self._signers = [plugin for plugin in deciding if isinstance(plugin, SignPlugin)]
        self._signable = len(self._signers) == len(deciding)
        self._changing = [
            cast("VersionedSignPlugin", plugin) for plugin in deciding if isinstance(plugin, VersionedSignPlugin)
        ]
        reads: list[Reads] = [getattr(plugin, "reads", EVERYTHING) for plugin in deciding]
        by_row = frozenset[int]().union(*(one.rows for one in reads), {Facet.LABELS})
        self.reads_rows = tuple(sorted(by_row))
        self.reads_others = tuple(sorted(frozenset[int]().union(*(one.others for one in reads)) - by_row))
        """Facets that no plugin reads row by row, and that some plugin reads as a whole for itself."""
        self.reads_everything = any(one is EVERYTHING for one in reads)
        """Whether a plugin does not declare `reads`: it may read any facet, including those registered later."""
        self.reads_whole = tuple(sorted(frozenset[int]().union(*(one.whole for one in reads))))

    def affected(self, facets: int) -> AffectedPlugins:
        """Return the filters and scorers that read one of *facets* (a bit per facet), with their index."""
        known = self._affected.get(facets)
        if known is None:
            changed = {facet for facet in range(facets.bit_length()) if facets >> facet & 1}
            filters, scorers = tuple(enumerate(self.filters)), tuple(enumerate(self.scorers))
            known = self._affected[facets] = AffectedPlugins(
                tuple(one for one in filters if not one[1].reads.rows.isdisjoint(changed)),
                tuple(one for one in scorers if not one[1].reads.rows.isdisjoint(changed)),
                tuple(one for one in filters if not one[1].reads.others.isdisjoint(changed)),
                tuple(one for one in scorers if not one[1].reads.others.isdisjoint(changed)),
            )
        return known

    @property
    def edition(self) -> int:
        """Increases whenever pods must be signed again."""
        return sum([plugin.edition for plugin in self._changing])

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's signature; None if a plugin does not sign, or the pod requests too many resources."""
        if not self._signable or len(pod.requests) > WIDE:
            return None
        return tuple([plugin.sign(pod) for plugin in self._signers])

    def shape(self, pod: Pod) -> int | None:
        """
        Return the number of the pod's shape; pods with equal signatures have the same number.

        Every cycle looks the shape up, and hashing a signature takes longer than computing it: hence a number. None if
        there is no signature, or if `sign` raises: the pod is then evaluated alone, and the error appears in its
        attempt.
        """
        try:
            signature = self.sign(pod)
            number = self._shapes.get(signature)
        except Exception:  # noqa: BLE001 - the caller applies events and cannot report; the attempt raises again
            return None
        if signature is None:
            return None
        if number is None:
            if len(self._shapes) >= MOST_SHAPES:
                # Numbers are never reused; a pod that still has an old one is evaluated as a shape of its own.
                self._shapes.clear()
                self._shapes_forgotten = self._shape_count
            self._shape_count += 1
            number = self._shapes[signature] = self._shape_count
        return number

    def is_shape(self, pod: Pod, number: int | None, edition: int) -> bool:
        """Return whether *number*, given to the pod at *edition*, is what `shape` would return now."""
        if number is not None and number <= self._shapes_forgotten:
            return False
        if edition == self.edition:
            return True
        try:
            return self._shapes.get(self.sign(pod)) == number
        except Exception:  # noqa: BLE001 - as in `shape`
            return number is None

    def retire(self, numbers: Collection[int]) -> None:
        """Never return these shape numbers again, even if their signatures reappear."""
        if numbers:
            self._shapes = {signature: number for signature, number in self._shapes.items() if number not in numbers}

    def new_shape(self) -> int:
        """Return a number that no shape has or will have."""
        self._shape_count += 1
        return self._shape_count

    def worth_retrying(self, plugin: str, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a pod that *plugin* refused is worth a retry after *change*."""
        if change.kind not in self._retry_on.get(plugin, ANY_CHANGE):
            return False
        hint = self._hints.get(plugin)
        if hint is None:
            return True
        try:
            return hint.worth_retrying(pod, change)
        except Exception:  # noqa: BLE001 - retry when in doubt; the attempt shows the plugin's error
            return True

    def listens(self, plugin: str, kind: ChangeKind) -> bool:
        """Return whether a change of this kind can lift a refusal by *plugin*."""
        return kind in self._retry_on.get(plugin, ANY_CHANGE)

    def hints(self, plugin: str) -> bool:
        """Return whether *plugin* implements `worth_retrying`."""
        return plugin in self._hints

    def hints_by_amounts(self, plugin: str) -> bool:
        """Return whether *plugin* can name the amounts that a refused pod needs."""
        return plugin in self._by_amounts

    def amounts_suffice(self, plugin: str) -> bool:
        """Return whether *plugin* refuses exactly the nodes that lack amounts, and pods take what they request."""
        return plugin in self._exact

    def needs(self, plugin: str, pod: Pod) -> dict[str, int] | None:
        """Return the positive amounts that a node must offer to *pod* according to *plugin*; None if it raises."""
        try:
            return {name: amount for name, amount in self._by_amounts[plugin].needs(pod).items() if amount > 0}
        except Exception:  # noqa: BLE001 - without needs, the plugin is called for every change
            return None

    def offers(self, plugin: str, row: int) -> dict[str, int] | None:
        """Return the positive amounts that the node in *row* offers according to *plugin*; None if it raises."""
        try:
            return {name: amount for name, amount in self._by_amounts[plugin].offers(row).items() if amount > 0}
        except Exception:  # noqa: BLE001 - without offers, the plugin is called for every pod
            return None

    def retry_at(self, plugins: Iterable[str], pod: Pod, now: float) -> float | None:
        """Return the earliest time in seconds at which one of *plugins* wants *pod* retried; None without one."""
        if not self._retry_times:
            return None
        times: list[float] = []
        for plugin in plugins:
            timer = self._retry_times.get(plugin)
            if timer is None:
                continue
            try:
                at = timer.retry_at(pod, now)
                if at is not None and math.isfinite(at):
                    times.append(at)
            except Exception:  # noqa: BLE001, S112 - without a time the pod waits for a change, or five minutes
                continue
        return min(times, default=None)


def _with_companions(named: Sequence[Plugin], at_point: Sequence[Plugin], method: str) -> list[Plugin]:
    return _distinct([*named, *(plugin for plugin in at_point if callable(getattr(plugin, method, None)))])


def _distinct(plugins: Iterable[Plugin]) -> list[Plugin]:
    return list({plugin.name: plugin for plugin in plugins}.values())


def _check(name: str, by_point: Mapping[str, Sequence[Plugin]], weights: Mapping[str, int]) -> None:
    wrong: list[str] = []
    for point, plugins in by_point.items():
        if point not in POINTS:
            wrong.append(f"there is no extension point {point!r}")
            continue
        seen: set[str] = set()
        for plugin in plugins:
            if not callable(getattr(plugin, POINTS[point][1], None)):
                wrong.append(f"plugin {plugin.name!r} does not extend {point}")
            if plugin.name in seen:
                wrong.append(f"plugin {plugin.name!r} is listed twice at {point}")
            seen.add(plugin.name)
    if len(by_point.get("queueSort", ())) != 1:
        wrong.append("exactly one queueSort plugin is needed")
    if not by_point.get("bind"):
        wrong.append("at least one bind plugin is needed")
    if MAX_SCORE * sum(weights.get(plugin.name, 0) for plugin in by_point.get("score", ())) >= HEAVIEST:
        wrong.append(f"the weights add up to more than {HEAVIEST // MAX_SCORE}, the limit for exact totals")
    wrong.extend(
        f"score plugin {plugin.name!r} is not configured with a weight of at least 1"
        for plugin in by_point.get("score", ())
        if weights.get(plugin.name, 0) < 1
    )
    if wrong:
        raise WiringError(f"profile {name!r}: {'; '.join(wrong)}")
