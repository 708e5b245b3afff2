"""
Read the data folder: real image catalogs, recorded runs and traces that the studies need.

The data is not part of the project; docs/data-folder.md describes every file. LAMINA_DATA names the folder; without it,
``shared/data`` beside the checkout is read. A study whose files are missing prints one line and does nothing.
"""

import csv
import gzip
import hashlib
import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
PUBLIC = ("images/public2024_images.jsonl.gz", "images/public2024_layers.csv.gz")
OFFICIAL = ("images/official_versions30.jsonl.gz",)
SNAPSHOT = ("images/official_snapshot_2019-12.jsonl.gz",)
APPLICATIONS = ("traces/alibaba_dlrm_v2025_instances.csv.gz",)
FUNCTIONS = ("traces/azure_functions_2019_sample1000_inv.csv.gz",)
PULLS = ("calibration/k8s_pull_events_2024.csv.gz",)
RUNS = ("batkube/real_cluster_runs.csv.gz",)


def data_folder(needed: Sequence[str]) -> Path | None:
    """Return the data folder; None if one of the *needed* files is missing."""
    folder = _folder()
    return None if _absent(folder, needed) else folder


def missing(needed: Sequence[str]) -> str:
    """Return one line that names the missing files among *needed*, and what to do."""
    absent = ", ".join(_absent(_folder(), needed))
    return f"the data folder lacks {absent}; set LAMINA_DATA to a folder that has it, see docs/data-folder.md"


def _folder() -> Path:
    return Path(os.environ.get("LAMINA_DATA") or BESIDE)


def _absent(folder: Path, needed: Sequence[str]) -> list[str]:
    return [name for name in needed if not (folder / name).is_file()]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON Lines file. Raises ValueError with file and line for anything else."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                record = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not JSON ({error}); one object is expected in each line") from error
            if not isinstance(record, dict):
                raise ValueError(f"{path}:{number}: not an object; one object is expected in each line")  # noqa: TRY004 - the value is wrong, no argument is
            yield record


def _name(repository: str, number: int) -> str:
    # The sources name registries in many spellings; here names only have to distinguish repositories.
    short = "".join(letter if letter.isalnum() else "-" for letter in repository.lower()).strip("-")
    return f"registry.example/{short[:60]}-{hashlib.sha256(repository.encode()).hexdigest()[:6]}:v{number}"


def public(folder: Path) -> dict[str, list[Image]]:
    """Return the public images of 2024, by repository, machine learning included."""
    with gzip.open(folder / PUBLIC[1], "rt", encoding="utf-8") as file:
        layers = [Layer(Digest(f"sha256:{row['digest']}"), int(row["size_bytes"])) for row in csv.DictReader(file)]
    found: dict[str, list[Image]] = {}
    for record in lines(folder / PUBLIC[0]):
        images = found.setdefault(record["repo"], [])
        images.append(
            Image(
                Digest(f"sha256:{record['config']}"),
                tuple(layers[number] for number in record["layers"]),
                (_name(record["repo"], len(images)),),
            )
        )
    return found


def machine_learning(folder: Path) -> set[str]:
    """Return the repositories of the public catalog that are about machine learning."""
    return {record["repo"] for record in lines(folder / PUBLIC[0]) if record["ml"]}


def official(folder: Path) -> dict[str, list[Image]]:
    """Return up to 30 versions of one tag of each official repository, oldest first."""
    found: dict[str, list[Image]] = {}
    for record in lines(folder / OFFICIAL[0]):
        images = found.setdefault(record["repo"], [])
        layers = tuple(Layer(Digest(digest), size) for digest, size in record["layers"])
        images.append(Image(Digest(record["manifest"]), layers, (_name(record["repo"], len(images)),)))
    return found


def snapshot(folder: Path) -> dict[str, list[Image]]:
    """Return every official image that was current at the end of 2019, by repository."""
    found: dict[str, list[Image]] = {}
    for record in lines(folder / SNAPSHOT[0]):
        if record["platform"] != "linux/amd64":
            continue
        images = found.setdefault(record["repo"], [])
        layers = tuple(Layer(Digest(digest), size) for digest, size in record["layers"])
        images.append(Image(Digest(record["manifest"]), layers, (_name(record["repo"], len(images)),)))
    return found


def distinct(images: list[Image]) -> list[Image]:
    """Return the images without those listed before under another name."""
    return list({image.digest: image for image in reversed(images)}.values())[::-1]


def one_of_each(by_repository: dict[str, list[Image]], count: int, rng: random.Random) -> list[Image]:
    """Draw *count* repositories and one image of each."""
    names = rng.sample(sorted(by_repository), min(count, len(by_repository)))
    return distinct([rng.choice(by_repository[name]) for name in names])
