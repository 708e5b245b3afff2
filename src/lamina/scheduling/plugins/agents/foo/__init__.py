"""
The agent `foo`: the smallest one there is, to copy from. It lets every node pass and prefers none.

An agent is two things: plugins (in `plugin.py`), and an `AGENT` that says under which verbs the extender serves them.
`lamina new-agent NAME` writes a package of your own with both, which also does something.
"""

from typing import Final

from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.plugins.agents.foo.plugin import NAME, Foo

AGENT: Final = SchedulingAgent(
    name="foo",
    summary="Does nothing, as a template: every node passes, and all get level 1.",
    plugins=(Foo,),
    # Verb → plugin. The extender answers at /scheduler/predicates/foo and at /scheduler/priorities/foo.
    predicates={"foo": NAME},
    priorities={"foo": NAME},
)

__all__ = ["AGENT", "Foo"]
