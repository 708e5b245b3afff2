"""
Laws of what is written for Kubernetes clients: a pod or node that is encoded is decoded as the same.

Where the two differ, `as_decoded` and `node_as_decoded` say how; the encoders' modules say why.
"""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from lamina.model.pod import Container, Pod
from lamina.wire.kube.codec import decode_node, decode_pod
from lamina.wire.kube.encoded_values import encode_amounts, encode_timestamp
from lamina.wire.kube.node_encoder import encode_node
from lamina.wire.kube.pod_encoder import OWNER_VERSIONS, encode_pod
from lamina.wire.kube.pod_resources import read_amounts
from lamina.wire.kube.pod_status_encoder import PodDetails
from lamina.wire.timestamps import seconds
from tests.property.test_wire_laws import amounts, labels, nodes, pods, tuples, words

replace = msgspec.structs.replace
epochs = st.sampled_from([0.0, 1_700_000_000.0])
encode = msgspec.json.encode


def named(containers: tuple[Container, ...], word: str) -> tuple[Container, ...]:
    """Containers of which each has a name."""
    return tuple(replace(one, name=one.name or f"{word}-{number}") for number, one in enumerate(containers, 1))


def as_decoded(pod: Pod, epoch: float) -> Pod:
    """The pod that comes back: whole seconds since 1970, every step with a time, every container with a name."""
    created = pod.created_at
    bound = pod.bound_at or created
    started = pod.started_at or bound
    ready = pod.ready_at or started
    owner = pod.owner
    if owner is not None and not owner.api_version:
        owner = replace(owner, api_version=OWNER_VERSIONS.get(owner.kind, "v1"))
    return replace(
        pod,
        containers=named(pod.containers, "container"),
        init_containers=named(pod.init_containers, "init"),
        owner=owner,
        created_at=epoch + created,
        bound_at=epoch + bound if pod.node_name or pod.bound_at else 0.0,
        started_at=epoch + started if pod.started else 0.0,
        ready_at=epoch + ready if pod.ready else 0.0,
        ended_at=epoch + (pod.ended_at or ready) if pod.finished and pod.containers else 0.0,
        deleting_since=epoch + (pod.deleting_since or created) if pod.deleting else 0.0,
    )


@given(pods(), epochs, st.booleans(), st.integers(0, 100), tuples(words, most=2))
def test_a_pod_that_is_encoded_is_decoded_as_the_same(parts, epoch, succeeded, grace, secrets):
    pod = replace(parts[0], failed=parts[0].failed and not succeeded, pull_secrets=secrets)

    written = encode_pod(pod, epoch, PodDetails(deletion_grace=grace))

    assert as_decoded(pod, epoch) == decode_pod(encode(written))


@given(nodes, labels, tuples(words), epochs)
def test_a_node_that_is_encoded_is_decoded_as_the_same(node, annotations, addresses, epoch):
    node = replace(node, annotations=annotations, addresses=addresses)
    well_known = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": node.platform.os,
        "kubernetes.io/arch": node.platform.architecture,
    }

    assert replace(node, labels={**well_known, **node.labels}) == decode_node(encode(encode_node(node, epoch)))


@given(amounts)
def test_amounts_are_exact(held):
    assert held == read_amounts(encode(encode_amounts(held)))


@given(st.integers(-62_135_596_800, 253_402_300_799), st.floats(0, 1, exclude_max=True))
def test_a_timestamp_is_the_second_that_has_begun(second, fraction):
    text = encode_timestamp(second)

    assert len("2026-03-01T12:30:05Z") == len(text)
    assert seconds(text) == second
    if abs(second) < 2**40:
        assert text == encode_timestamp(second + fraction * 0.99)
