"""
Scheduling agent `foo`: a minimal example to copy. It accepts every node and prefers none.

A scheduling agent consists of plugins (in `plugin.py`) and an `AGENT` with the verbs under which the extender serves
them. `lamina new-agent NAME` writes a new package with both and a plugin that does something.
"""

from typing import Final

from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.plugins.agents.foo.plugin import NAME, Foo

AGENT: Final = SchedulingAgent(
    name="foo",
    summary="Does nothing, as a template: every node passes, and all get level 1.",
    plugins=(Foo,),
    # Verb → plugin. The extender serves /scheduler/predicates/foo and /scheduler/priorities/foo.
    predicates={"foo": NAME},
    priorities={"foo": NAME},
)

__all__ = ["AGENT", "Foo"]
