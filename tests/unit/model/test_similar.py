"""Similar names: a misspelt name finds its own, and names that are nothing alike find none."""

import pytest

from lamina.model.conversion import TOO_MANY_NAMES, suggest
from lamina.model.similar import nearest

PROFILES = ("lamina-balanced", "lamina-even", "lamina-roomy", "lamina-local", "lamina-images", "kube-default", "random")
COMMANDS = ("demo", "simulate", "compare", "scheduler", "agent", "doctor", "explain", "image", "profiles")
PLUGINS = (
    "NodeName",
    "NodePorts",
    "NodeResourcesFit",
    "PrioritySort",
    "SchedulingGates",
    "ImageLocality",
    "LRScheduler",
)
FIELDS = ("podInitialBackoffSeconds", "podMaxBackoffSeconds", "schedulerName", "cpu", "memory", "bandwidth")
PODS = ("default/p1", "default/p3", "default/web-1", "shop/checkout-7f9c")


@pytest.mark.parametrize(
    ("name", "valid", "meant"),
    [
        pytest.param("lamina-balance", PROFILES, "lamina-balanced", id="a letter missing at the end"),
        pytest.param("Lamina_Local", PROFILES, "lamina-local", id="spelled another way"),
        pytest.param("lamina-evne", PROFILES, "lamina-even", id="two letters swapped"),
        pytest.param("default", PROFILES, "kube-default", id="a part missing"),
        pytest.param("megabytes", ("bytes", "original", "seconds"), "bytes", id="a part in front"),
        pytest.param("simulat", COMMANDS, "simulate", id="a command"),
        pytest.param("podMaxBackofSeconds", FIELDS, "podMaxBackoffSeconds", id="a field"),
        pytest.param("scheduler_name", FIELDS, "schedulerName", id="snake case"),
        pytest.param("bandwith", FIELDS, "bandwidth", id="a letter missing"),
        pytest.param("cpus", FIELDS, "cpu", id="a letter too many"),
        pytest.param("cQ7pu", FIELDS, "cpu", id="two letters in between"),
        pytest.param("NodeResorcesFit", PLUGINS, "NodeResourcesFit", id="a plugin"),
        pytest.param("default/web1", PODS, "default/web-1", id="a pod"),
        pytest.param("shop/chekout-7f9c", PODS, "shop/checkout-7f9c", id="a pod of a Deployment"),
        pytest.param("registry.example/web:2", ("registry.example/web:1", "a:1"), "registry.example/web:1", id="a tag"),
        pytest.param("NoScheduling", ("NoExecute", "NoSchedule"), "NoSchedule", id="another ending"),
        pytest.param("default/p33", PODS, "default/p3", id="a short pod"),
    ],
)
def test_a_misspelt_name_finds_the_one_that_was_meant(name, valid, meant):
    assert meant == nearest(name, valid)
    assert f"did you mean '{meant}'?" == suggest(name, valid)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        pytest.param("lamina-foo", PROFILES, id="only the first part is shared"),
        pytest.param("lamina-fast", PROFILES, id="only the first part is shared, again"),
        pytest.param("lamina", PROFILES, id="the part that most names share"),
        pytest.param("get", COMMANDS, id="its letters are in a longer name"),
        pytest.param("my-profile", COMMANDS, id="a word of another name among others"),
        pytest.param("lamina", COMMANDS, id="a few letters in common"),
        pytest.param("Coscheduling", PLUGINS, id="one long word in common"),
        pytest.param("PodPriority", PLUGINS, id="a word in common, in another place"),
        pytest.param("NodeFoo", PLUGINS, id="only the first word is shared"),
        pytest.param("completions", ("tolerations", "duration"), id="an ending in common"),
        pytest.param("speed", ("peers", "slots"), id="the same letters in another order"),
        pytest.param("default/zz", PODS, id="only the namespace is shared"),
        pytest.param("default/p9", PODS, id="one of two letters"),
        pytest.param("default/web-2", PODS, id="another number"),
        pytest.param("", PROFILES, id="nothing"),
        pytest.param("z" * 1_000_000, PROFILES, id="very long"),
    ],
)
def test_a_name_like_no_other_gets_the_list_instead_of_a_wrong_guess(name, valid):
    assert nearest(name, valid) is None
    assert f"choose from {', '.join(valid)}" == suggest(name, valid)


def test_of_very_many_names_none_is_listed():
    """The first twelve pods of a trace are no help."""
    names = [f"default/app-{number}" for number in range(TOO_MANY_NAMES + 1)]

    assert "none of the 51 valid names is similar" == suggest("shop/web", names)
    assert suggest("shop/web", names[1:]).startswith("choose from default/app-1, ")
