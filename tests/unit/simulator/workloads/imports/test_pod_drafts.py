"""Which image an application runs."""

import pytest

from lamina.simulator.workloads.imports.import_schema import ImportEntry, ImportPopularityEntry
from lamina.simulator.workloads.imports.pod_drafts import ImageChooser
from lamina.testing import an_image
from tests.unit.simulator.workloads.imports.harness import a_job, a_workload, around, put, refused

PODS = {"small": 1, "large": 100, "middle": 10}


def chosen(folder, applications=PODS, context=None, **popularity):
    entry = ImportEntry(batsim="x", popularity=ImportPopularityEntry(**popularity))
    return ImageChooser(entry, folder, context or around()).choose(applications)


def test_the_most_popular_application_runs_the_most_popular_image(tmp_path):
    weights = {"db": 5.0, "web:1": 1.0, "docker.io/library/api": 9.0}

    assert {"large": "api:1", "middle": "db:1", "small": "web:1"} == chosen(tmp_path, weights=weights)


def test_without_weights_the_ranks_are_drawn_from_the_seed(tmp_path):
    drawn = [chosen(tmp_path, context=around(seed=seed)) for seed in range(20)]

    assert drawn == [chosen(tmp_path, context=around(seed=seed)) for seed in range(20)]
    assert {"web:1", "api:1", "db:1"} == {one["large"] for one in drawn}
    assert all(3 == len(set(one.values())) for one in drawn)


def test_applications_beyond_the_number_of_images_draw_by_weight(tmp_path):
    applications = {f"a{number:03}": 1 for number in range(303)}

    images = chosen(tmp_path, applications, weights={"web": 98.0, "api": 1.0, "db": 1.0})

    # The first three have one each; of the other 300 about 294 run the image with 98 % of the weight.
    assert 270 < sum(image == "web:1" for image in images.values()) < 303


def test_equally_large_applications_are_ranked_by_name(tmp_path):
    assert {"a": "web:1", "b": "api:1"} == chosen(tmp_path, {"b": 1, "a": 1}, weights={"web": 2.0, "api": 1.0})


def test_the_newest_version_of_a_repository_stands_for_it(tmp_path):
    images = tuple(an_image(f"web:{number}", {f"l{number}": 1}) for number in range(3))

    assert {"a": "web:2"} == chosen(tmp_path, {"a": 1}, around(images=images))


@pytest.mark.parametrize(("column", "first"), [(None, "db:1"), ("stars", "web:1")])
def test_weights_come_from_a_table(tmp_path, column, first):
    put(tmp_path, "pulls.csv", "repo,pulls,stars\ndb,9,1\nweb,1,9\nunknown,99,99\n")

    assert first == chosen(tmp_path, file="pulls.csv", column=column)["large"]


@pytest.mark.parametrize(
    ("popularity", "told"),
    [
        pytest.param(
            {"weights": {"wbe": 1.0}}, "scenario.yaml:7: popularity.weights.wbe: there is no image", id="unknown"
        ),
        pytest.param(
            {"file": "none.csv"}, "scenario.yaml:7: popularity.file: none of its images is in", id="all unknown"
        ),
        pytest.param({"file": "bad.csv"}, "bad.csv:2: pulls: 'many' is not a number", id="no number"),
        pytest.param({"file": "bad.csv", "column": "x"}, "bad.csv:2: x: there is no such column", id="no such column"),
        pytest.param({"column": "x"}, "scenario.yaml:7: popularity.column: say file as well", id="a column of nothing"),
        pytest.param({"file": "gone.csv"}, "scenario.yaml:7: popularity.file: there is no such file", id="no file"),
    ],
)
def test_what_is_wrong_with_popularity(tmp_path, popularity, told):
    put(tmp_path, "w.json", a_workload(a_job(), short={"type": "delay", "delay": 1}))
    put(tmp_path, "bad.csv", "repo,pulls\nweb,many\n")
    put(tmp_path, "none.csv", "repo,pulls\nx,1\n")

    (mistake,) = refused(tmp_path, batsim="w.json", popularity=ImportPopularityEntry(**popularity))

    assert mistake.startswith(told), mistake
