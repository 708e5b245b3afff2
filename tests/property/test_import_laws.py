"""
Laws of imports: the same bytes give the same pods, whatever was done to a file ends in pods or in a mistake with its
place, and a workload that was written down comes back whole.
"""

import gzip
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.errors import InputError, Mistake
from lamina.simulator.workloads.imports import Imported
from lamina.simulator.workloads.imports.azure_functions import PERCENTILES, quantile
from lamina.simulator.workloads.imports.import_schema import FunctionFiles, ImportEntry
from lamina.simulator.workloads.imports.pod_drafts import ImageChooser
from lamina.wire.batsim.interval_sets import write_intervals
from tests.unit.simulator.workloads.imports.harness import around, bring, put

ids = st.text(min_size=1, max_size=8)
times = st.floats(min_value=0, max_value=1e6, allow_nan=False)
jobs = st.fixed_dictionaries(
    {"subtime": times, "res": st.integers(1, 4), "profile": st.sampled_from(["a", "b"])},
    optional={"walltime": st.floats(min_value=1, max_value=1e6), "user": ids},
)
PROFILES = {"a": {"type": "delay", "delay": 5}, "b": {"type": "composed", "seq": ["a", "a"], "repeat": 3}}
DLRM = (
    b"instance_sn,role,app_name,cpu_request,gpu_request,rdma_request,memory_request,disk_request,"
    b"max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
    b"i_1,CN,a,2,0,1,4.0,10.0,-1,5,6,9\ni_2,HN,b,2,1,1,4.0,10.0,1,,,\n"
)
INVOCATIONS = b"HashOwner,HashApp,HashFunction,1,2\no,x,f,3,0\no,y,g,1,2\n"
DURATIONS = (
    b"HashOwner,HashApp,HashFunction," + ",".join(f"percentile_Average_{p}" for p in PERCENTILES).encode() + b"\n"
    b"o,x,f,1,2,3,4,5,6,7\no,y,g,1,1,1,1,1,1,9\n"
)
MANIFEST = b"""kind: List
items:
- {kind: Pod, metadata: {name: one}, spec: {containers: [{name: c, image: "web:1"}]}}
- {kind: Node, metadata: {name: n}, status: {allocatable: {cpu: "4", memory: 8Gi}}}
"""
WORKLOAD = json.dumps(
    {"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "res": 2, "profile": "b", "walltime": 9}], "profiles": PROFILES}
).encode()
KINDS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "batsim": (WORKLOAD, {"batsim": "file"}),
    "dlrm": (DLRM, {"alibaba_dlrm": "file"}),
    "azure": (INVOCATIONS, {"azure_functions": FunctionFiles(invocations="file", durations="durations")}),
    "manifests": (MANIFEST, {"manifests": "file"}),
}


def imported(data: bytes, **entry: Any) -> Imported:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put(folder, "file", data)
        put(folder, "durations", DURATIONS)
        return bring(folder, **entry)


def mistakes_in(data: bytes, **entry: Any) -> tuple[Mistake, ...]:
    """Say what is wrong with a file; nothing when it can be imported. Any other exception is a bug."""
    try:
        imported(data, **entry)
    except InputError as error:
        return error.mistakes
    return ()


@settings(max_examples=60)
@given(named=st.dictionaries(ids, jobs, max_size=8))
def test_every_resource_of_every_job_becomes_a_pod_at_its_time(named):
    listed = [{"id": name, **job} for name, job in named.items()]
    text = json.dumps({"nb_res": 4, "jobs": listed, "profiles": PROFILES}).encode()

    arrivals = imported(text, batsim="file").arrivals

    expected = sorted(
        (round(job["subtime"], 6), 5.0 if job["profile"] == "a" else 30.0) for job in listed for _ in range(job["res"])
    )
    assert expected == sorted((one.at, one.life.seconds) for one in arrivals)
    assert len(arrivals) == len({one.pod.name for one in arrivals})
    assert [one.at for one in arrivals] == sorted(one.at for one in arrivals)


@settings(max_examples=150)
@given(kind=st.sampled_from(sorted(KINDS)), at=st.integers(0, 400), text=st.binary(max_size=12), cut=st.integers(0, 40))
def test_a_file_with_anything_done_to_it_gives_pods_or_mistakes_with_the_file(kind, at, text, cut):
    data, entry = KINDS[kind]
    at = min(at, len(data))

    mistakes = mistakes_in(data[:at] + text + data[at + cut :], **entry)

    assert all(mistake.message and Path(mistake.source).name == "file" for mistake in mistakes)
    assert all("\n" not in str(mistake) for mistake in mistakes)


@settings(max_examples=60)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    compress=st.sampled_from([gzip.compress, zstandard.compress]),
    at=st.floats(0, 1),
    text=st.binary(max_size=4),
)
def test_a_damaged_compressed_file_gives_pods_or_mistakes(kind, compress, at, text):
    data, entry = KINDS[kind]
    packed = compress(data)
    place = int(at * len(packed))

    mistakes = mistakes_in(packed[:place] + text + packed[place + len(text) :], **entry)

    assert all(mistake.message and Path(mistake.source).name == "file" for mistake in mistakes)


@settings(max_examples=30)
@given(kind=st.sampled_from(sorted(KINDS)), compress=st.sampled_from([bytes, gzip.compress, zstandard.compress]))
def test_the_same_file_gives_the_same_pods_however_it_is_packed(kind, compress):
    data, entry = KINDS[kind]

    plain, packed = imported(data, **entry), imported(compress(data), **entry)

    assert (plain.nodes, plain.arrivals, plain.controllers) == (packed.nodes, packed.arrivals, packed.controllers)


@settings(max_examples=50)
@given(pods=st.dictionaries(ids, st.integers(1, 50), min_size=1, max_size=12), seed=st.integers(0, 2**32))
def test_applications_share_an_image_only_when_there_are_more_of_them_than_images(pods, seed):
    shelf = ImageChooser(ImportEntry(batsim="x"), Path(), around(seed=seed))

    chosen = shelf.choose(pods)

    assert chosen == shelf.choose(dict(reversed(pods.items())))
    assert set(pods) == set(chosen)
    assert min(len(pods), 3) == len(set(chosen.values()))


@given(
    points=st.lists(st.floats(0, 1e6), min_size=7, max_size=7).map(sorted).map(tuple), shares=st.lists(st.floats(0, 1))
)
def test_quantiles_rise_and_stay_within_the_table(points, shares):
    values = [quantile(points, share) for share in sorted(shares)]

    assert all(points[0] <= value <= points[-1] * (1 + 1e-12) for value in values)
    assert all(low <= high * (1 + 1e-12) for low, high in itertools.pairwise(values))


@given(numbers=st.sets(st.integers(0, 60)))
def test_intervals_say_exactly_the_numbers_in_them(numbers):
    read = set()
    for part in write_intervals(numbers).split():
        first, _, last = part.partition("-")
        read |= set(range(int(first), int(last or first) + 1))

    assert numbers == read
