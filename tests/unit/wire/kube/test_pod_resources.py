"""What a pod asks for and may use, added up as the API says."""

import json

import pytest

from lamina.wire.kube.codec import decode_pod

MEBIBYTE = 1024 * 1024


def read(*, spec):
    """The pod that *spec* describes."""
    return decode_pod(json.dumps({"metadata": {}, "spec": spec, "status": {}}).encode())


def a_container(image="app", **resources):
    return {"name": "c", "image": image, "resources": resources}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [a_container(), a_container()]}, (), id="nothing asked"),
        pytest.param(
            {"containers": [a_container(requests={"cpu": "250m"}), a_container(requests={"cpu": 1})]},
            (("cpu", 1250),),
            id="containers add up, a number is as good as text",
        ),
        pytest.param(
            {"containers": [a_container(requests={"memory": "1.5Gi", "nvidia.com/gpu": "2"})]},
            (("memory", 1536 * MEBIBYTE), ("nvidia.com/gpu", 2)),
            id="fractions and devices",
        ),
        pytest.param({"containers": [a_container(limits={"cpu": "1"})]}, (), id="limits are not requests"),
        pytest.param(
            {
                "initContainers": [{**a_container(requests={"cpu": "3"}), "restartPolicy": "Always"}],
                "containers": [a_container(requests={"cpu": "1"})],
            },
            (("cpu", 4000),),
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            {
                "initContainers": [a_container(requests={"cpu": "3"})],
                "containers": [a_container(requests={"cpu": "1"})],
            },
            (("cpu", 3000),),
            id="another init container before them",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "5"}}, "containers": [a_container(requests={"cpu": "1", "x/y": "1"})]},
            (("cpu", 5000), ("x/y", 1)),
            id="what the pod asks for as a whole counts instead",
        ),
        pytest.param(
            {"overhead": {"memory": "1Mi"}, "containers": [a_container(requests={"memory": "2Mi"})]},
            (("memory", 3 * MEBIBYTE),),
            id="overhead is added",
        ),
    ],
)
def test_requests_add_up_as_the_api_says(spec, expected):
    assert expected == read(spec=spec).requests


def test_requests_too_long_to_be_remembered_are_read_all_the_same():
    requests = {f"example.com/device-{number}": "1" for number in range(200)}

    assert (
        tuple(sorted((name, 1) for name in requests))
        == read(spec={"containers": [a_container(requests=requests)]}).requests
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [a_container(requests={"cpu": "1"})]}, (), id="none set: requests stand for them"),
        pytest.param(
            {
                "containers": [
                    a_container(limits={"cpu": "2"}, requests={"cpu": "1"}),
                    a_container(requests={"cpu": "3"}),
                ]
            },
            (("cpu", 5000),),
            id="a container without one counts with its request",
        ),
        pytest.param(
            {"containers": [a_container(limits={"cpu": "1"})], "initContainers": [a_container(limits={"cpu": "4"})]},
            (("cpu", 4000),),
            id="the peak of an init container",
        ),
        pytest.param(
            {
                "containers": [a_container(limits={"cpu": "1"})],
                "resources": {"limits": {"cpu": "8"}},
                "overhead": {"cpu": "1"},
            },
            (("cpu", 9000),),
            id="those of the pod as a whole, and overhead on top",
        ),
    ],
)
def test_limits_add_up_like_requests(spec, expected):
    pod = decode_pod(json.dumps({"metadata": {"name": "p", "uid": "u"}, "spec": spec}).encode())

    assert expected == pod.limits
