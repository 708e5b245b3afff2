"""Generated cases are the same everywhere, and files return what was written to them."""

import msgspec
import pytest

from tests.parity.case_files import (
    ParityCase,
    PreemptionCandidate,
    RecordedAnswer,
    RecordedCase,
    RecordingHeader,
    read_recording,
    recordings,
    write_recording,
)
from tests.parity.case_generator import FAMILIES, SEED, draw_case, fixtures


@pytest.mark.parametrize("family", FAMILIES)
def test_a_case_depends_on_seed_family_and_number_only(family):
    assert draw_case(family, 3) == draw_case(family, 3)
    assert draw_case(family, 3) != draw_case(family, 4)
    assert draw_case(family, 3) != draw_case(family, 3, SEED + 1)


def test_every_family_is_recorded():
    assert sorted(FAMILIES) == [path.name.partition(".")[0] for path in recordings()]


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_recorded_cases_are_those_of_the_generator(path):
    header, cases = read_recording(path)
    first = next(cases)

    assert header.fixtures == fixtures(first.case.family)
    assert msgspec.json.encode(first.case) == msgspec.json.encode(draw_case(first.case.family, 0, header.seed))


def test_a_file_returns_what_was_written(tmp_path):
    case = ParityCase("taint-toleration", 7, [{"metadata": {"name": "n0"}}], [], {"metadata": {"name": "p"}})
    answer = RecordedAnswer(
        feasible=[0], scores={"A": [3]}, chosen=0, candidates={"n0": PreemptionCandidate(["e1"], violations=1)}
    )
    header = RecordingHeader("kube-scheduler 1.36.3", 1, {"namespaces": []})

    write_recording(tmp_path / "x.jsonl.zst", header, [RecordedCase(case, answer)] * 2)
    found, cases = read_recording(tmp_path / "x.jsonl.zst")

    assert header == found
    assert [RecordedCase(case, answer)] * 2 == list(cases)


def test_totals_are_sums_over_plugins():
    assert [5, 7] == RecordedAnswer(feasible=[0, 2], scores={"A": [1, 2], "B": [4, 5]}).totals()


@pytest.mark.parametrize("family", ["volume-restrictions", "node-volume-limits", "volume-zone", "volume-binding"])
def test_storage_objects_and_nodes_have_names_of_their_own_in_each_case(family):
    drawn = [draw_case(family, number) for number in range(30)]
    names = [
        (resource, one["metadata"]["name"]) for case in drawn for resource, all_ in case.objects.items() for one in all_
    ] + [("nodes", name) for case in drawn for name in case.names()]

    assert len(set(names)) == len(names)


def test_a_case_without_storage_objects_is_written_without_them():
    assert b'"objects"' not in msgspec.json.encode(draw_case("node-ports", 0))
