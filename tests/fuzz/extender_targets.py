"""What strangers can send to an extender: bodies of calls, and annotations of nodes that plugins believe."""

import json
from collections.abc import Sequence
from typing import Any, Final

from lamina.model.events import NodeSeen
from lamina.model.node import Node
from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.scheduling.plugins.agents import congestion, pigeon, safe
from lamina.scheduling.plugins.agents.congestion.plugin import ANNOTATION
from lamina.scheduling.plugins.agents.pigeon.args import MOST_RESOURCES, NAME, PigeonHolingArgs
from lamina.scheduling.plugins.agents.pigeon.cluster_resources import ANNOTATION as REQUESTED
from lamina.scheduling.plugins.agents.safe.utilization import DEVIATION, FORECAST, MEAN, RESOURCES
from lamina.testing.builders import a_node, a_pod
from lamina.wire.errors import WireError
from lamina.wire.extender.arguments import decode_extender_args, read_nodes
from lamina.wire.extender.body import MOST_NODES
from lamina.wire.extender.preemption_arguments import decode_preemption_args
from lamina.wire.extender.results import encode_filter_result, encode_preemption_result, encode_priority_list
from tests.fuzz.corpus import STRANGE_JSON, plain
from tests.unit.wire.extender_bodies import META_VICTIMS, NAMES, NODES, POD, VICTIMS, asking, encode, nodes

# -- filter and prioritize ----------------------------------------------------------------------------------------------


def asked_body(data: bytes) -> None:
    """Read a body, and answer it as if every third node were refused."""
    asked = decode_extender_args(data)
    assert len(asked.names) <= MOST_NODES
    failed, final = dict.fromkeys(asked.names[::3], "hot"), dict.fromkeys(asked.names[1::3], "green")
    answer = b"".join(encode_filter_result(asked, failed, final))
    left = [name for name in asked.names if name not in failed and name not in final]
    if asked.items is None:
        assert json.loads(answer)["NodeNames"] == left
    else:
        assert decode_extender_args(b'{"Pod":{},' + answer[1:]).names == left
        refused: list[WireError] = []
        assert len(read_nodes(asked, refused)) + len(refused) == len(asked.names)
        assert all(str(error).isprintable() for error in refused)
    levels = [place % 13 - 1 for place in range(len(asked.names))]
    told = json.loads(encode_priority_list(asked.names, levels))
    assert {one["Host"] for one in told} <= set(asked.names)
    assert all(0 < one["Score"] <= 10 for one in told)


ASKED: Final = (
    NAMES,
    NODES,
    asking(NodeNames=[]),
    asking(NodeNames=["a", "a", "", "ü", 'q"\\\n', "x" * 300]),
    asking(nodenames=["a"]),
    asking(nodeNames=["a"], Nodes=None),
    asking(NodeNames=["a"], nodes=nodes("a")),
    asking(Nodes={"Items": [{"metadata": {"name": "a"}}]}),
    asking(Nodes={"items": None}),
    asking(Nodes=nodes("a", "b", "a")),
    asking(
        Nodes={"items": [{"metadata": {"name": "a", "annotations": {"x": 1}}, "status": {"allocatable": {"cpu": "x"}}}]}
    ),
    asking(NodeNames=[f"n{number}" for number in range(MOST_NODES)]),
    asking(NodeNames=["a"] * (MOST_NODES + 1)),
    asking(Nodes=nodes(*["a"] * (MOST_NODES + 1))),
    encode({"POD": POD, "NODENAMES": ["a"]}),
    encode({"Pod": None, "NodeNames": ["a"]}),
    encode({"Pod": {"spec": {"containers": [{}] * 1_000}}, "NodeNames": ["a"]}),
    b'{"Pod":{},"NodeNames":["\\ud800"]}',
    b'{"Pod":{},"NodeNames":["a"],"NodeNames":["b"]}',
    b'{"Pod":{},"Nodes":{"items":[' + b'{"a":' * 50_000,
    b'{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"a","x":"\xff"}}]}}',
    *STRANGE_JSON,
)

# -- preempt ------------------------------------------------------------------------------------------------------------


def preempting_body(data: bytes) -> None:
    """Read a body, and answer it as if every second node were spared."""
    asked = decode_preemption_args(data)
    assert len(asked.victims) <= MOST_NODES
    kept = {node: asked.victims[node] for node in list(asked.victims)[::2]}
    answer = encode_preemption_result(kept)
    assert decode_preemption_args(b'{"Pod":{},' + answer[1:]).victims == kept


PREEMPTING: Final = (
    VICTIMS,
    META_VICTIMS,
    asking(NodeNameToMetaVictims={}),
    asking(nodeNameToMetaVictims={"n1": {"pods": [{"uid": "a"}], "numPDBViolations": 3}}),
    asking(NodeNameToVictims={"n1": {"Pods": [{"metadata": {"uid": "a"}}] * 300}}),
    asking(NodeNameToMetaVictims={"n1": {"Pods": [{"UID": "a"}], "NumPDBViolations": 2**63 - 1}}),
    asking(NodeNameToMetaVictims={"n1": {"Pods": [{"UID": "a"}], "NumPDBViolations": 2**64}}),
    asking(NodeNameToMetaVictims={"": {"Pods": [{"UID": 'q"\\\n'}]}}),
    asking(NodeNameToMetaVictims={"n1": None}),
    asking(NodeNameToMetaVictims={f"n{number}": {"Pods": []} for number in range(MOST_NODES + 1)}),
    asking(NodeNameToVictims={}, NodeNameToMetaVictims={}),
    b'{"Pod":{},"NodeNameToMetaVictims":' + b'{"a":' * 50_000,
    *STRANGE_JSON,
)

# -- annotations --------------------------------------------------------------------------------------------------------

KEYS: Final = (
    ANNOTATION,
    *(key.format(resource) for resource in RESOURCES for key in (MEAN, DEVIATION, FORECAST)),
    *(REQUESTED + resource for resource in RESOURCES),
)
BELIEVING: Final = {NAME: PigeonHolingArgs(usage="annotations", num_resources=MOST_RESOURCES)}
WORKERS: Final = 4
A_POD: Final = a_pod("p", cpu="500m", memory="1Gi", limits={"cpu": "1", "memory": "2Gi"})


def node_annotations(data: bytes) -> None:
    """Give some nodes annotations, ask every verb of the agents that read them, change a node and ask again."""
    document = plain(data)
    if not isinstance(document, list):
        text = data[:LONGEST].decode("latin-1")
        document = [dict.fromkeys(KEYS, text)]
    panel = ExtenderCore([safe.AGENT, congestion.AGENT, pigeon.AGENT], BELIEVING)
    workers = [a_worker(number, document[number : number + 1]) for number in range(WORKERS)]
    panel.take(*[NodeSeen(worker) for worker in workers])
    answer(panel, [worker.name for worker in workers])
    panel.take(NodeSeen(a_worker(0, document[-1:])))
    answer(panel, [worker.name for worker in workers])


LONGEST: Final = 2_000
"""Bytes of a text that is no list, used for every key."""


def a_worker(number: int, said: Sequence[Any]) -> Node:
    """Return a node that says what it is told to, as text."""
    found = said[0] if said and isinstance(said[0], dict) else {}
    annotations = {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}
    return a_node(f"n{number}", cpu="8", memory="16Gi", annotations=annotations)


def answer(panel: ExtenderCore, names: list[str]) -> None:
    """Ask everything that can be asked; an agent that raises is an AgentError, and that is none that is allowed."""
    for verb in panel.predicates:
        assert {place for place, _ in panel.filter(verb, A_POD, names)} <= set(range(len(names)))
    for verb in panel.priorities:
        levels = panel.prioritize(verb, A_POD, names)
        assert len(levels) == len(names)
        assert all(0 <= level <= 10 for level in levels)


def saying(*values: Any) -> bytes:
    """Nodes of which each says one value under every key."""
    return encode([dict.fromkeys(KEYS, value) for value in values])


ANNOTATIONS: Final = (
    encode([dict(zip(KEYS, ("3", "2000", "500", "1500", "8e9", "1e9", "7e9", "4000", "6e9"), strict=True))] * WORKERS),
    saying("0.5", "0.25", "0", "1"),
    saying("-1", "1e308", "-1e308", "5e-324"),
    saying("NaN", "inf", "-Infinity", "1e999"),
    saying("", " ", "1 ", "\t1\n"),
    saying("1_000", "0x10", "1,5", "½"),
    saying("٣", "１", "1e", "+1"),
    saying("9" * 64, "9" * 65, "9" * 5_000, "0." + "1" * 62),
    saying(None, 1, [], {}),
    saying("8", "8000", "17179869184", "1.7976931348623157e308"),
    b"[]",
    b"1",
    b"\xff\xfe",
    *(text for text in STRANGE_JSON if len(text) < 10_000),
)
