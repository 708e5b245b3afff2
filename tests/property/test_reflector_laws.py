"""
Whatever happens to its connections, a reflector ends up with what is true.

Random scripts of faults are played by a model of an API server, with objects that come, change and go before and while
each connection stands, and a history that is compacted.
"""

import asyncio

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.clients.kube.mirrored import Hands, Keeper, reflector, stop
from tests.unit.clients.kube.model_client import FAULTS, WITH_A_LIST, Connection, ModelClient
from tests.unit.clients.kube.model_cluster import Cluster

NAMES = st.sampled_from([f"p{number}" for number in range(12)])
DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, st.integers(0, 3)),
        st.tuples(st.just("delete"), NAMES, st.just(0)),
        st.tuples(st.just("compact"), st.just(""), st.just(0)),
    ),
    max_size=6,
)
CONNECTIONS = st.builds(
    Connection, fault=st.sampled_from(FAULTS), cut=st.integers(0, 10_000), before=DEEDS, during=DEEDS
)
SCRIPTS = st.lists(CONNECTIONS, max_size=8)


async def play(script: list[Connection], *, streams: bool) -> None:
    cluster, hands, keeper = Cluster(), Hands(), Keeper()
    for number in range(9):  # two pages
        cluster.put(f"p{number}", number)
    client = ModelClient(cluster, script, hands, streams=streams)
    mirror = reflector(client, keeper, hands.timing())
    task = asyncio.create_task(mirror.run())
    waiting = asyncio.create_task(client.settled.wait())
    async with asyncio.timeout(20):
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    await stop(task)

    assert cluster.truth == keeper.things
    assert cluster.truth == {thing.key: thing.value for thing in mirror.store.items()}
    assert mirror.synced
    assert mirror.stale_since is None

    compactions = sum(deed[0] == "compact" for entry in script for deed in entry.before + entry.during)
    assert mirror.counts.relists.total() <= compactions + sum(entry.fault in WITH_A_LIST for entry in script)
    assert_paced(client.opened_at)


def assert_paced(opened_at: list[float]) -> None:
    """No ten seconds saw more than ten connections."""
    for tenth, later in zip(opened_at, opened_at[10:], strict=False):
        assert later - tenth >= 10.0 - 1e-6


@settings(max_examples=300)
@given(script=SCRIPTS, streams=st.booleans())
@example(script=[Connection("silent close")] * 8, streams=True)
@example(script=[Connection("garbage")] * 8, streams=False)
def test_a_mirror_ends_with_the_truth(script, streams):
    asyncio.run(play(script, streams=streams))
