"""`lamina catalog` and `lamina image` as a person meets them: what they collect, print and refuse."""

import json
from pathlib import Path

import pytest
import yaml

from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer, Platform
from lamina.wire.catalog_file import encode_catalog, read_catalog
from tests.e2e.test_command_line import lamina
from tests.unit.wire.layouts import Layout

ROOT = Path(__file__).resolve().parents[2]
FOUNDING = ROOT / "examples" / "founding" / "scenario.yaml"
BASE, WEB, API = (Layer(digest_of(name), size) for name, size in ((b"os", 70_000_000), (b"web", 400), (b"api", 500)))
IMAGES = [
    Image(digest_of(b"1"), (BASE, WEB), ("registry.example/web:1", "registry.example/web:latest")),
    Image(digest_of(b"2"), (BASE, API), ("registry.example/api:1",)),
    Image(digest_of(b"3"), (API,), ("registry.example/arm:1",), Platform("linux", "arm64")),
]


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    (tmp_path / "images.jsonl.zst").write_bytes(encode_catalog(IMAGES, "images.jsonl.zst"))
    return tmp_path / "images.jsonl.zst"


# ---------------------------------------------------------------------------------------------------------------- add


def test_a_catalog_is_made_and_extended_from_all_kinds_of_sources(tmp_path: Path, catalog: Path) -> None:
    """
    An archive and a folder first, then another catalog and a manifest, into the same file.
    """
    layout = Layout()
    attested = {"platform": {"os": "unknown", "architecture": "unknown"}}
    inner = layout.index(
        layout.manifest(), layout.manifest(a=1, entry=attested), {"digest": IMAGES[0].digest}, name="x:1"
    )
    archive = layout.saved(tmp_path / "saved.tar", inner)
    manifest = {"schemaVersion": 2, "layers": [{"digest": BASE.digest, "size": BASE.size}]}
    (tmp_path / "m.json").write_text(json.dumps(manifest), encoding="utf-8")
    file = tmp_path / "all.jsonl.gz"

    first = lamina("catalog", "add", file, archive, tmp_path / "saved")
    second = lamina("catalog", "add", file, catalog, tmp_path / "m.json", "--name", "y:1", "--platform", "linux/s390x")

    assert (0, "", 0, "") == (first.returncode, first.stderr, second.returncode, second.stderr)
    assert [
        f"{file}: 1 image, 1 of them new",
        "2 entries are not images (attestations, signatures) and were skipped",
        "2 manifests are listed but not included in the source",
    ] == first.stdout.splitlines()
    assert [f"{file}: 5 images, 4 of them new"] == second.stdout.splitlines()
    images = read_catalog(file)
    assert [("x:1",), *(image.names for image in IMAGES), ("y:1",)] == [image.names for image in images]
    assert Platform("linux", "s390x") == images[-1].platform


def test_adding_the_same_again_changes_nothing(tmp_path: Path, catalog: Path) -> None:
    """
    Byte for byte.
    """
    lamina("catalog", "add", tmp_path / "a.jsonl.zst", catalog)
    before = (tmp_path / "a.jsonl.zst").read_bytes()
    told = lamina("catalog", "add", tmp_path / "a.jsonl.zst", catalog, catalog)

    assert f"{tmp_path}/a.jsonl.zst: 3 images, 0 of them new\n" == told.stdout
    assert before == (tmp_path / "a.jsonl.zst").read_bytes() == catalog.read_bytes()


def test_a_name_moves_to_what_has_it_last(tmp_path: Path, catalog: Path) -> None:
    """
    What it meant before stays, by digest.
    """
    newer = Image(digest_of(b"4"), (WEB,), ("registry.example/web:latest",))
    (tmp_path / "newer.jsonl").write_bytes(encode_catalog([newer], "newer.jsonl"))
    told = lamina("catalog", "add", catalog, tmp_path / "newer.jsonl")

    assert "1 names moved to another image; the previous image is kept by digest" in told.stdout
    images = read_catalog(catalog)
    assert ("registry.example/web:1", f"registry.example/web@{IMAGES[0].digest}") == images[0].names
    assert newer == images[-1]


def test_with_one_mistake_in_any_source_nothing_is_written(tmp_path: Path, catalog: Path) -> None:
    """
    All mistakes are told, one line each.
    """
    layout = Layout()
    nameless = layout.saved(tmp_path / "nameless", layout.manifest())
    (tmp_path / "m.json").write_bytes(b"not JSON")
    other = Image(digest_of(b"5"), (Layer(BASE.digest, 7),), ("registry.example/five:1",))
    (tmp_path / "other.jsonl").write_bytes(encode_catalog([other], "other.jsonl"))
    before = catalog.read_bytes()
    told = lamina("catalog", "add", catalog, nameless, tmp_path / "m.json", tmp_path / "other.jsonl")

    assert 2 == told.returncode
    assert before == catalog.read_bytes()
    assert [str(nameless), str(tmp_path / "other.jsonl"), str(tmp_path / "m.json")] == [
        line.partition(": ")[0] for line in told.stderr.splitlines()
    ]
    assert f"has a size of 7 here and a size of 70000000 in {catalog}; keep one of them" in told.stderr


# --------------------------------------------------------------------------------------------------- generate and show


def test_a_generated_catalog_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    """
    Byte for byte, compressed or not.
    """
    for name in ("a.jsonl.zst", "b.jsonl.zst", "c.jsonl"):
        assert 0 == lamina("catalog", "generate", tmp_path / name, "--images", 120, "--seed", 5).returncode
    lamina("catalog", "generate", tmp_path / "other.jsonl", "--images", 120)

    assert (tmp_path / "a.jsonl.zst").read_bytes() == (tmp_path / "b.jsonl.zst").read_bytes()
    assert read_catalog(tmp_path / "a.jsonl.zst") == read_catalog(tmp_path / "c.jsonl")
    assert read_catalog(tmp_path / "a.jsonl.zst") != read_catalog(tmp_path / "other.jsonl")


def test_show_describes_a_catalog_as_a_page_or_as_data(catalog: Path) -> None:
    """
    The same figures.
    """
    page = lamina("catalog", "show", catalog)
    data = json.loads(lamina("catalog", "show", catalog, "-o", "json").stdout)

    assert data == yaml.safe_load(lamina("catalog", "show", catalog, "-o", "yaml").stdout)
    assert (3, 3, 3) == (data["images"], data["repositories"], data["layers"])
    assert "3 images of 3 repositories, 3 layers: 140 MB in all, 70 MB stored once each" in page.stdout
    assert "2.00x" in page.stdout
    assert "\x1b" not in page.stdout


def test_an_empty_catalog_can_be_shown(tmp_path: Path) -> None:
    """
    With nothing in it to measure.
    """
    (tmp_path / "empty.jsonl").write_bytes(encode_catalog([], "empty.jsonl"))
    page = lamina("catalog", "show", tmp_path / "empty.jsonl")

    assert (0, "") == (page.returncode, page.stderr)
    assert "0 images of 0 repositories" in page.stdout


# -------------------------------------------------------------------------------------------------------------- image


@pytest.mark.parametrize(
    "ref",
    [
        "registry.example/web:1",
        "registry.example/web",
        f"registry.example/other@{IMAGES[0].digest}",
        IMAGES[0].digest,
        IMAGES[0].digest[:14],
    ],
    ids=["a name", "an alias", "a name with a digest", "a digest", "its beginning"],
)
def test_an_image_is_found_by_whatever_names_it(catalog: Path, ref: str) -> None:
    """
    Its layers from the bottom up, and who else has them.
    """
    told = json.loads(lamina("image", ref, "--catalog", catalog, "-o", "json").stdout)

    assert (IMAGES[0].digest, list(IMAGES[0].names), None) == (told["image"], told["names"], told["nodes"])
    assert [(BASE.digest, 1), (WEB.digest, 0)] == [(layer["digest"], layer["other_images"]) for layer in told["layers"]]


def test_nodes_are_listed_by_what_they_have_of_an_image_at_a_time() -> None:
    """
    At 100 s one node has run img1 and another img2, which shares two layers with it; the third is empty.
    """
    arguments = [
        "image",
        "registry.example/img1:1",
        "--scenario",
        FOUNDING,
        "--at",
        "100s",
        "--profile",
        "kube-default",
    ]
    page = lamina(*arguments)
    told = json.loads(lamina(*arguments, "-o", "json").stdout)

    assert [(True, 650_000_000, 0), (False, 500_000_000, 150_000_000), (False, 0, 650_000_000)] == [
        (node["whole"], node["present"], node["missing"]) for node in told["nodes"]
    ]
    assert (100.0, ["L1", "L2", "L3"]) == (told["at_seconds"], [layer["name"] for layer in told["layers"]])
    assert "at 100.0 s: the whole image on 1 of 3 nodes, some of its bytes on 1, nothing on 1" in page.stdout


def test_before_anything_was_pulled_nobody_has_anything() -> None:
    """
    At the very start every node is empty.
    """
    told = json.loads(
        lamina("image", "registry.example/img2:1", "--scenario", FOUNDING, "--at", "0", "-o", "json").stdout
    )

    assert {0} == {node["present"] for node in told["nodes"]}


def test_images_of_a_catalog_and_of_a_scenario_are_known_together(catalog: Path) -> None:
    """
    Nothing of a stranger is on any node.
    """
    told = json.loads(
        lamina("image", "registry.example/web:1", "--catalog", catalog, "--scenario", FOUNDING, "-o", "json").stdout
    )

    assert (5, {0}) == (told["images_known"], {node["present"] for node in told["nodes"]})


def test_a_simulation_draws_its_workload_from_the_seed(tmp_path: Path) -> None:
    """
    Another seed, other pods; the same seed, the same trace byte for byte.
    """
    (tmp_path / "s.yaml").write_text(
        """
catalog: {generate: {images: 30}}
nodes: [{name: n, count: 3, cpu: 8, memory: 32Gi}]
workload:
  pods: 40
  arrivals: {every: 5s}
  duration: {mean: 1m}
  cpu: [{amount: 1}]
  updates: 3
""",
        encoding="utf-8",
    )
    for seed, folder in ((1, "a"), (1, "b"), (2, "c")):
        told = lamina("simulate", tmp_path / "s.yaml", "--seed", seed, "--out", tmp_path / folder)
        assert (0, "") == (told.returncode, told.stderr)
    traces = [(tmp_path / folder / "trace.jsonl.zst").read_bytes() for folder in "abc"]

    assert traces[0] == traces[1]
    assert traces[0] != traces[2]


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["catalog", "ad"], "there is no command 'ad'; did you mean 'add'?", id="a misspelt command"),
        pytest.param(["catalog", "add", "{}/a.jsonl"], "Missing argument 'SOURCE...'", id="no source"),
        pytest.param(["catalog", "add", "{}/a.jsonl", "{}/x"], "x: cannot be read (No such file", id="no such source"),
        pytest.param(
            ["catalog", "add", "{}/a.jsonl", "{}"], "is not an OCI image layout", id="a folder of something else"
        ),
        pytest.param(["catalog", "add", FOUNDING, "{}/images.jsonl.zst"], "is not a catalog", id="a file that is none"),
        pytest.param(
            ["catalog", "add", "{}/no/a.jsonl", "{}/images.jsonl.zst"],
            "cannot be written",
            id="a folder that is not there",
        ),
        pytest.param(
            ["catalog", "add", "{}/a.jsonl", "{}/images.jsonl.zst", "--name", "Web"],
            "--name: 'Web' is not",
            id="a name",
        ),
        pytest.param(
            ["catalog", "add", "{}/a.jsonl", "{}/images.jsonl.zst", "--platform", "arm"],
            "--platform: 'arm' is not a platform; write for example linux/amd64",
            id="a platform",
        ),
        pytest.param(["catalog", "show", "{}/x.jsonl"], "x.jsonl: cannot be read (No such file", id="nothing to show"),
        pytest.param(["catalog", "show", FOUNDING], "is not a catalog; the first line must be", id="a scenario"),
        pytest.param(["catalog", "generate", "{}/a.jsonl"], "Missing option '--images'", id="how many?"),
        pytest.param(["catalog", "generate", "{}/a.jsonl", "--images", "0"], "0 is not in the range", id="none"),
        pytest.param(["catalog", "generate", "{}/no/a.jsonl", "--images", "1"], "cannot be written", id="nowhere"),
        pytest.param(["image", "web:1"], "no source; use --registry, --kubeconfig FILE,", id="where?"),
        pytest.param(
            ["image", "web:1", "--scenario", FOUNDING, "--kubeconfig", "x"],
            "--scenario and --kubeconfig both have nodes; use one of them",
            id="two sets of nodes",
        ),
        pytest.param(
            ["image", "web:1", "--catalog", "{}/images.jsonl.zst", "--plain-http"],
            "--plain-http needs --registry",
            id="no registry",
        ),
        pytest.param(
            ["image", "sha256:5aa1", "--registry"], "--registry needs a name such as nginx:1.27", id="a digest alone"
        ),
        pytest.param(
            ["image", "web:1", "--registry", "--platform", "x"], "--platform: 'x' is not", id="a platform of a registry"
        ),
        pytest.param(["image", "web:1", "--kubeconfig", "{}/none"], "{}/none: ", id="no kubeconfig"),
        pytest.param(
            ["image", "registry.example/wbe:1", "--catalog", "{}/images.jsonl.zst"],
            "REF: there is no image 'registry.example/wbe:1'; did you mean 'registry.example/web:1'?",
            id="a misspelt image",
        ),
        pytest.param(
            ["image", "registry.example/arm:1", "--catalog", "{}/images.jsonl.zst"],
            "REF: registry.example/arm:1 exists for linux/arm64; use --platform linux/arm64",
            id="an image for another platform",
        ),
        pytest.param(
            ["image", "sha256:", "--catalog", "{}/images.jsonl.zst"],
            "3 images have digests that begin with sha256:; write more of it",
            id="too short a digest",
        ),
        pytest.param(
            ["image", "x", "--catalog", "{}/images.jsonl.zst", "--at", "5s"], "--at needs --scenario", id="no scenario"
        ),
        pytest.param(
            ["image", "registry.example/img1:1", "--scenario", FOUNDING, "--at", "soon"],
            "--at: 'soon' is not a duration",
            id="no time",
        ),
        pytest.param(
            ["image", "registry.example/img1:1", "--scenario", FOUNDING, "--profile", "imag-locality"],
            "did you mean 'image-locality'?",
            id="a misspelt profile",
        ),
        pytest.param(["image", "x", "--scenario", "{}/x.yaml"], "x.yaml: there is no such file", id="no such scenario"),
        pytest.param(
            ["image", "web:1", "--catalog", "{}/images.jsonl.zst", "--platform", "x"], "--platform: 'x' is not", id="x"
        ),
    ],
)
def test_bad_usage_and_bad_input_end_with_2_and_a_line_that_helps(
    tmp_path: Path, catalog: Path, arguments: list[object], words: str
) -> None:
    """
    Never a traceback, and no file half made.
    """
    told = lamina(*(str(argument).replace("{}", str(tmp_path)) for argument in arguments))

    assert 2 == told.returncode
    assert words.replace("{}", str(tmp_path)) in told.stderr
    assert "Traceback" not in told.stderr
    assert [catalog] == list(tmp_path.iterdir())
