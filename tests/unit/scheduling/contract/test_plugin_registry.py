"""Registry: plugins are looked over when they are registered, and everything wrong with them is told at once."""

import importlib.metadata
from types import SimpleNamespace
from typing import Any

import pytest

from lamina.model.errors import WiringError
from lamina.scheduling.contract.plugin_registry import NoArgs, PluginArgs, PluginRegistry, faults, points_of
from lamina.scheduling.contract.points import Reads
from lamina.scheduling.plugins.in_tree import IN_TREE, registry
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.facets import Facet
from tests.unit.scheduling.bench import Bench


def state_pod_nodes(self, state, pod, nodes): ...
def state_pod_node(self, state, pod, node): ...
def state_pod_scores(self, state, pod, scores, feasible): ...


def a_class(**members: Any) -> type[Any]:
    """Build a plugin class; without *members* it is a sound filter."""
    sound = {"name": "Mine", "filter": state_pod_nodes}
    return type("Mine", (), {key: value for key, value in {**sound, **members}.items() if value is not ...})


POINTS = (
    "pre_enqueue, sort_key, place, pre_filter, filter, post_filter, pre_score, score, reserve, permit, pre_bind, bind, "
    "post_bind"
)


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(a_class(), [], id="nothing"),
        pytest.param(a_class(name=...), ["has no `name`"], id="no name"),
        pytest.param(a_class(name=""), ["has no `name`"], id="an empty name"),
        pytest.param(a_class(name=5), ["has no `name`"], id="a name that is no text"),
        pytest.param(
            a_class(filter=...), [f"implements no extension point (one of: {POINTS})"], id="no extension point"
        ),
        pytest.param(
            a_class(filter="yes"), [f"implements no extension point (one of: {POINTS})"], id="a point that is no method"
        ),
        pytest.param(a_class(normalize=state_pod_scores), ["has `normalize` but not `score`"], id="normalize alone"),
        pytest.param(a_class(score_node=state_pod_node), ["has `score_node` but not `score`"], id="score_node alone"),
        pytest.param(a_class(facts=state_pod_nodes), ["has `facts` but not `score`"], id="facts alone"),
        pytest.param(
            a_class(filter=..., score=state_pod_nodes, filter_node=state_pod_node),
            ["has `filter_node` but not `filter`"],
            id="filter_node alone",
        ),
        pytest.param(a_class(unreserve=state_pod_node), ["has `unreserve` but not `reserve`"], id="unreserve alone"),
        pytest.param(a_class(reserve=state_pod_node), ["has `reserve` but no `unreserve`"], id="reserve alone"),
        pytest.param(
            a_class(filter=lambda self, pod, nodes: None),
            ["`filter` takes (pod, nodes), Lamina calls it with (state, pod, nodes)"],
            id="a parameter short",
        ),
        pytest.param(
            a_class(pre_enqueue=lambda self, pod, queue: None),
            ["`pre_enqueue` takes (pod, queue), Lamina calls it with (pod)"],
            id="a parameter too many",
        ),
        pytest.param(
            a_class(sign=lambda self: 1), ["`sign` takes (), Lamina calls it with (pod)"], id="a blind signature"
        ),
        pytest.param(
            a_class(worth_retrying=lambda self, pod: True, retry_on=frozenset({ChangeKind.NODE_ADDED})),
            ["`worth_retrying` takes (pod), Lamina calls it with (pod, change)"],
            id="a blind hint",
        ),
        pytest.param(
            a_class(retry_at=lambda self, pod: None, needs=lambda self: {}, offers=lambda self, row, pod: {}),
            [
                "`needs` takes (), Lamina calls it with (pod)",
                "`offers` takes (row, pod), Lamina calls it with (row)",
                "`retry_at` takes (pod), Lamina calls it with (pod, now)",
            ],
            id="when to try again, with other arguments",
        ),
        pytest.param(
            a_class(worth_retrying=lambda self, pod, change: True),
            ["has `worth_retrying` but no `retry_on` (the changes it is called for)"],
            id="a hint about nothing",
        ),
        pytest.param(
            a_class(filter_node=state_pod_nodes, sort_key=lambda self, queued, now: (), changes_with_time=...),
            ["has `sort_key` but does not say whether it `changes_with_time` (True or False)"],
            id="an order that does not say whether it changes",
        ),
        pytest.param(
            a_class(sort_key=lambda self, queued, now: (), changes_with_time="no"),
            ["has `sort_key` but does not say whether it `changes_with_time` (True or False)"],
            id="an order that says it wrongly",
        ),
        pytest.param(
            a_class(place=lambda self, candidates, nodes, now: None),
            ["has `place` but no `batch` (a number of pods)"],
            id="no batch",
        ),
        pytest.param(
            a_class(score=state_pod_nodes, normalize=state_pod_scores, score_node=state_pod_node),
            ["has both `normalize` and `score_node`; a normalised score cannot be given for one node alone"],
            id="normalised and alone",
        ),
        pytest.param(a_class(reads={Facet.TAINTS}), ["has `reads` that is not a Reads"], id="reads of another kind"),
        pytest.param(
            a_class(retry_on={ChangeKind.NODE_ADDED}),
            ["has `retry_on` that is not a frozenset of ChangeKind"],
            id="retry_on that can change",
        ),
        pytest.param(
            a_class(retry_on=frozenset({"NodeAdd"})),
            ["has `retry_on` that is not a frozenset of ChangeKind"],
            id="retry_on of text",
        ),
        pytest.param(
            a_class(Args=dict),
            ["has `Args` that does not derive from PluginArgs"],
            id="arguments of another kind",
        ),
        pytest.param(
            a_class(Args=NoArgs()),
            ["has `Args` that does not derive from PluginArgs"],
            id="arguments already made",
        ),
        pytest.param(
            a_class(name=..., reads=1, Args=dict, facts=state_pod_node, reserve=state_pod_nodes),
            [
                "has no `name`",
                "has `facts` but not `score`",
                "has `reserve` but no `unreserve`",
                "has `reads` that is not a Reads",
                "has `Args` that does not derive from PluginArgs",
            ],
            id="all at once",
        ),
    ],
)
def test_everything_wrong_with_a_plugin_is_told(plugin, want):
    """Each fault in its own words, in a fixed order."""
    assert want == faults(plugin)


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"reads": Reads(rows=frozenset({Facet.TAINTS}))}, id="reads"),
        pytest.param({"retry_on": frozenset({ChangeKind.LAYERS})}, id="retry_on"),
        pytest.param({"retry_on": frozenset()}, id="retry_on nothing"),
        pytest.param({"Args": NoArgs}, id="arguments"),
        pytest.param({"reserve": state_pod_node, "unreserve": state_pod_node}, id="reserve and unreserve"),
        pytest.param({"sort_key": lambda self, queued, now: (), "changes_with_time": False}, id="an order"),
        pytest.param({"place": lambda self, candidates, nodes, now: None, "batch": 16}, id="place"),
        pytest.param({"score": state_pod_nodes, "normalize": state_pod_scores}, id="normalised"),
        pytest.param({"filter": staticmethod(lambda state, pod, nodes: None)}, id="a function without self"),
    ],
)
def test_a_sound_plugin_has_no_faults(members):
    """What may be there and is right is not complained about."""
    assert [] == faults(a_class(**members))


@pytest.mark.parametrize("plugin", IN_TREE, ids=lambda plugin: plugin.name)
def test_what_is_in_tree_is_sound(plugin):
    """We keep our own rules."""
    assert [] == faults(plugin)


def test_a_plugin_is_verified_when_it_is_registered():
    """The message names the plugin and all that is wrong with it."""
    broken = a_class(facts=state_pod_nodes, reads=1)

    with pytest.raises(WiringError) as caught:
        PluginRegistry(broken)
    assert "plugin 'Mine' has `facts` but not `score`; has `reads` that is not a Reads" == str(caught.value)


def test_a_plugin_without_a_name_is_called_by_its_class():
    """Something has to be said."""
    with pytest.raises(WiringError) as caught:
        PluginRegistry(type("Nameless", (), {"filter": state_pod_nodes}))
    assert "plugin 'Nameless' has no `name`" == str(caught.value)


def test_a_name_is_given_once():
    """The second registration is told, the first stays."""
    plugins = PluginRegistry(a_class())

    with pytest.raises(WiringError) as caught:
        plugins.register(a_class())
    assert "plugin 'Mine' is registered twice" == str(caught.value)
    assert ["Mine"] == list(plugins)


def test_names_are_listed_in_the_order_of_registration():
    """And can be looked up."""
    first, second = a_class(name="B"), a_class(name="A")
    plugins = PluginRegistry(first, second)

    assert ["B", "A"] == list(plugins)
    assert ("A" in plugins, "C" in plugins) == (True, False)
    assert plugins["A"] is second


def test_a_plugin_is_made_with_its_arguments_or_their_defaults():
    """A plugin without arguments of its own gets empty ones."""

    class MineArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
        how_many: int = 3

    def init(self, context, args):
        self.seen = (context, args)

    context = Bench().context
    plugins = PluginRegistry(a_class(Args=MineArgs, __init__=init), a_class(name="Plain", __init__=init))

    def made(name, args=None):
        plugin: Any = plugins.make(name, context, args)
        return plugin.seen

    assert (context, MineArgs()) == made("Mine")
    assert (context, MineArgs(how_many=5)) == made("Mine", MineArgs(how_many=5))
    assert (context, NoArgs()) == made("Plain")
    assert (MineArgs, NoArgs) == (plugins.args_of("Mine"), plugins.args_of("Plain"))


@pytest.mark.parametrize(
    ("members", "want"),
    [
        pytest.param({}, ("filter",), id="one"),
        pytest.param(
            {"score": state_pod_nodes, "pre_filter": state_pod_nodes},
            ("preFilter", "filter", "score"),
            id="several, in the order they are called",
        ),
        pytest.param(
            {"normalize": state_pod_scores, "sign": state_pod_node}, ("filter",), id="companions are no points"
        ),
        pytest.param({"filter": None}, (), id="a method taken back"),
    ],
)
def test_the_points_of_a_plugin_are_its_methods(members, want):
    """Spelled as configuration spells them, for a class and for an object of it."""
    plugin = a_class(**members)

    assert want == points_of(plugin) == points_of(plugin())


# -------------------------------------------------------------------------------------------------------- entry points


class Entry:
    """An entry point of some distribution."""

    def __init__(self, name: str, loads: Any) -> None:
        self.name = name
        self.value = f"somewhere.{name.lower()}:{name}"
        self.dist = SimpleNamespace(name=name.lower())
        self._loads = loads

    def load(self) -> Any:
        if isinstance(self._loads, BaseException):
            raise self._loads
        return self._loads


@pytest.fixture
def installed(monkeypatch):
    """Pretend that distributions declare these entry points."""
    entries: list[Entry] = []

    def entry_points(*, group: str) -> list[Entry]:
        return entries if group == "lamina.plugins" else []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    return entries


def test_plugins_of_other_distributions_are_found(installed):
    """By the group lamina.plugins, in the order of their names, behind what is in tree."""
    installed += [Entry("Zeta", a_class(name="Zeta")), Entry("Alpha", a_class(name="Alpha"))]

    assert [*(plugin.name for plugin in IN_TREE), "Alpha", "Zeta"] == list(registry())


def test_plugins_of_other_distributions_can_be_left_out(installed):
    """Tests and simulations see the same plugins everywhere."""
    installed.append(Entry("Zeta", a_class(name="Zeta")))

    assert [plugin.name for plugin in IN_TREE] == list(registry(entry_points=False))


def broken(installed, *entries):
    """A registry beside these entry points, and what it says to whoever asks for each."""
    installed += entries
    plugins = PluginRegistry(a_class())
    plugins.load_entry_points()
    assert ["Mine"] == list(plugins)
    assert all(entry.name in plugins for entry in entries)
    told = []
    for entry in entries:
        with pytest.raises(WiringError) as caught:
            plugins.make(entry.name, Bench().context)
        told.append(str(caught.value))
    return told


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(ImportError("No module named 'x'"), "ImportError: No module named 'x'", id="no such module"),
        pytest.param(AttributeError("module has no 'Zeta'"), "AttributeError: module has no 'Zeta'", id="no such name"),
        pytest.param(SyntaxError("invalid\nsyntax"), "SyntaxError: invalid syntax", id="no Python"),
        pytest.param(SystemExit(3), "SystemExit: 3", id="a module that ends the process"),
        pytest.param(ValueError("x" * 1000), f"ValueError: {'x' * 300}", id="a long story"),
    ],
)
def test_an_entry_point_that_cannot_be_loaded_is_told_to_whoever_wants_it(installed, error, said):
    """Whose it is, what it points to, why, and what to do; nobody else is stopped."""
    (told,) = broken(installed, Entry("Zeta", error))

    assert f"entry point 'Zeta' (somewhere.zeta:Zeta) of zeta cannot be used: {said}: fix or uninstall it" == told


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        pytest.param(
            a_class(name="Zeta", facts=state_pod_nodes), "plugin 'Zeta' has `facts` but not `score`", id="a fault"
        ),
        pytest.param(importlib.metadata, "has no `name`; implements no extension point", id="a module"),
        pytest.param(object(), "has no `name`; implements no extension point", id="an object"),
    ],
)
def test_a_plugin_of_another_distribution_is_verified_too(installed, thing, said):
    """Nobody gets in unseen; easily done: the part behind the colon was forgotten."""
    (told,) = broken(installed, Entry("Zeta", thing))

    assert said in told


def test_another_distribution_cannot_replace_a_plugin_in_tree(installed):
    """A name is given once, and whoever means it is told, whatever the entry point is called."""
    installed.append(Entry("Mine", a_class(name="NodeName")))
    plugins = registry()

    with pytest.raises(WiringError, match="of mine cannot be used: plugin 'NodeName' is registered twice"):
        plugins["NodeName"]
