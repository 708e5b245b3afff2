"""Which pods requests need, worked out by hand."""

import pytest

from lamina.simulator.workloads.serverless import ServerlessAutoscaler


def needed(*requests: tuple[float, float], idle: float = 10.0, concurrency: int = 1) -> list[tuple[float, float]]:
    """Serve requests of one function; return from when and for how long each pod is needed."""
    demand = ServerlessAutoscaler(idle, concurrency)
    served = [demand.serve("f", at, seconds) for at, seconds in requests]
    return [(pod.at, demand.seconds(pod)) for pod in served if pod is not None]


@pytest.mark.parametrize(
    ("requests", "pods"),
    [
        pytest.param([(1.0, 5.0)], [(1.0, 15.0)], id="one request: its time and the idle time"),
        pytest.param([(0.0, 5.0), (5.0, 5.0)], [(0.0, 20.0)], id="the next when it is free again"),
        pytest.param([(0.0, 5.0), (14.9, 5.0)], [(0.0, 29.9)], id="just before it would go"),
        pytest.param([(0.0, 5.0), (15.0, 5.0)], [(0.0, 15.0), (15.0, 15.0)], id="too late: from zero again"),
        pytest.param([(0.0, 5.0), (1.0, 1.0)], [(0.0, 15.0), (1.0, 11.0)], id="busy: a second one"),
        pytest.param(
            [(0.0, 1.0), (0.5, 1.0), (5.0, 1.0)],
            [(0.0, 11.0), (0.5, 15.5)],
            id="two are free: the one that was given work last takes it, so that the other can go",
        ),
        pytest.param([(0.0, 0.0)], [(0.0, 10.0)], id="no work at all"),
    ],
)
def test_pods_for_requests_one_at_a_time(requests, pods):
    assert pods == needed(*requests)


def test_a_pod_may_serve_several_at_once():
    requests = [(0.0, 8.0), (1.0, 2.0), (2.0, 1.0), (3.0, 1.0)]

    # The third finds two at work; at 3 s the second one is done.
    assert [(0.0, 18.0), (2.0, 12.0)] == needed(*requests, concurrency=2)


def test_functions_do_not_share_pods_and_retired_ones_get_no_more_requests():
    demand = ServerlessAutoscaler(10.0, 1)
    first, other = demand.serve("f", 0.0, 1.0), demand.serve("g", 2.0, 1.0)
    demand.retire("f")
    after = demand.serve("f", 3.0, 1.0)

    assert [11.0, 11.0, 11.0] == [demand.seconds(pod) for pod in (first, other, after)]


def test_where_nothing_may_grow_a_request_without_room_is_lost():
    demand = ServerlessAutoscaler(10.0, 1)
    pod = demand.serve("f", 0.0, 5.0, may_grow=False)

    assert pod is None
    # Nothing is left behind of it.
    assert demand.serve("f", 1.0, 5.0) is not None
