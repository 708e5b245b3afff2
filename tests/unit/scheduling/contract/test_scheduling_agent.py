"""Scheduling agents, and what is wrong with some."""

import importlib.metadata
import re
from importlib.metadata import EntryPoint

import pytest

from lamina.model.errors import WiringError
from lamina.scheduling.contract import scheduling_agent as module
from lamina.scheduling.contract.scheduling_agent import (
    HIGHEST,
    LINEAR,
    SchedulingAgent,
    SchedulingAgentRegistry,
    agent_faults,
)
from lamina.scheduling.plugins.agents.foo import AGENT as FOO
from lamina.scheduling.plugins.agents.foo import Foo
from lamina.scheduling.plugins.in_tree import AGENTS
from lamina.scheduling.plugins.upstream.priority_sort import PrioritySort

OTHERS = f"{__name__}:OTHER"
TWICE = FOO
OTHER = SchedulingAgent(name="other", summary="Another one.", plugins=(Foo,), priorities={"other": "Foo"})


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_every_agent_in_tree_is_as_it_should_be(agent: SchedulingAgent) -> None:
    assert [] == agent_faults(agent)
    assert HIGHEST == agent.levels[-1]
    assert sorted(agent.levels) == list(agent.levels)


def test_levels_are_tenths_rounded_half_up_unless_an_agent_knows_better() -> None:
    assert [0, 0, 1, 1, 5, 9, 10, 10] == [LINEAR[points] for points in (0, 4, 5, 14, 54, 94, 95, 100)]


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        pytest.param(
            SchedulingAgent(name="Foo", summary="", plugins=(Foo,), priorities={"foo": "Foo"}),
            "lowercase letters",
            id="capital letters",
        ),
        pytest.param(
            SchedulingAgent(name="foo", summary="", plugins=(Foo,)), "neither predicates nor", id="nothing to ask"
        ),
        pytest.param(
            SchedulingAgent(name="foo", summary="", plugins=(Foo,), priorities={"a/b": "Foo"}),
            "'a/b' must consist of",
            id="odd verb",
        ),
        pytest.param(
            SchedulingAgent(name="foo", summary="", plugins=(Foo,), predicates={"foo": "Bar"}),
            "not among its",
            id="no such plugin",
        ),
        pytest.param(
            SchedulingAgent(name="foo", summary="", plugins=(PrioritySort,), priorities={"foo": "PrioritySort"}),
            "has no `score`",
            id="a plugin that cannot",
        ),
        pytest.param(
            SchedulingAgent(name="foo", summary="", plugins=(Foo,), priorities={"foo": "Foo"}, levels=(0, 11)),
            "must have 101 levels, each from 0 to 10",
            id="too few levels",
        ),
    ],
)
def test_an_agent_that_cannot_be_served_is_refused_in_words(agent: SchedulingAgent, words: str) -> None:
    with pytest.raises(WiringError, match=re.escape(words)):
        SchedulingAgentRegistry(agent)


def test_two_agents_cannot_have_one_name_or_one_verb() -> None:
    with pytest.raises(WiringError, match="registered twice"):
        SchedulingAgentRegistry(FOO, FOO)
    with pytest.raises(WiringError, match="verb 'foo' belongs to another agent"):
        SchedulingAgentRegistry(FOO, SchedulingAgent(name="bar", summary="", plugins=(Foo,), priorities={"foo": "Foo"}))


def test_agents_of_other_distributions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("other", f"{__name__}:OTHER", module.ENTRY_POINTS)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    known = SchedulingAgentRegistry(FOO)
    known.load_entry_points()

    assert ["foo", "other"] == list(known)
    assert "other" in known


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(
            "lamina.nowhere:AGENT", "ModuleNotFoundError: No module named 'lamina.nowhere'", id="no such module"
        ),
        pytest.param(f"{__name__}:re", "is not a SchedulingAgent", id="something else"),
        pytest.param(f"{__name__}:TWICE", "agent 'foo': is registered twice", id="a name that is taken"),
    ],
)
def test_an_entry_point_that_is_no_agent_is_kept_aside(value: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its distribution, the reason and what to do, in one line; the others are served."""
    entries = [EntryPoint(name, value, module.ENTRY_POINTS) for name, value in (("odd", value), ("other", OTHERS))]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
    known = SchedulingAgentRegistry(FOO)
    known.load_entry_points()
    (told,) = known.broken.values()

    assert ["foo", "other"] == list(known)
    assert told.startswith(f"entry point 'odd' ({value}) of an unknown distribution cannot be used: ")
    assert why in told
    assert told.endswith(": fix or uninstall it")
    assert 1 == len(told.splitlines())


def test_why_an_agent_is_not_there_is_told() -> None:
    known = SchedulingAgentRegistry(FOO)
    known.broken["odd"] = "broken"

    assert ("broken", "there is no agent 'fo'; did you mean 'foo'?") == (known.why_not("odd"), known.why_not("fo"))
