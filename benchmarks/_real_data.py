"""
Real image catalogs, where they are at hand.

They are not part of the project. The folder is named by LAMINA_DATA or found beside the project as ``shared/data``; what
needs it says so and does nothing when it is not there.

Sources: docker-library/repo-info (official images, 2016 to 2019) and converged-computing/container-chonks (public images,
2024); see the README of that folder.
"""

import csv
import gzip
import hashlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
MISSING = "the real catalogs are not there: set LAMINA_DATA to a folder that has images/public2024_images.jsonl.gz"


def data_folder() -> Path | None:
    """Return the folder with the catalogs; None when there is none."""
    folder = Path(os.environ.get("LAMINA_DATA", BESIDE))
    return folder if (folder / "images" / "public2024_images.jsonl.gz").is_file() else None


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Go through a file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _name(repository: str, number: int) -> str:
    # Names in the sources are of many registries and spellings; here they only have to tell repositories apart.
    short = "".join(letter if letter.isalnum() else "-" for letter in repository.lower()).strip("-")
    return f"registry.example/{short[:60]}-{hashlib.sha256(repository.encode()).hexdigest()[:6]}:v{number}"


def public(folder: Path) -> dict[str, list[Image]]:
    """Return the public images of 2024, by repository, machine learning included."""
    with gzip.open(folder / "images" / "public2024_layers.csv.gz", "rt", encoding="utf-8") as file:
        layers = [Layer(Digest(f"sha256:{row['digest']}"), int(row["size_bytes"])) for row in csv.DictReader(file)]
    found: dict[str, list[Image]] = {}
    for record in lines(folder / "images" / "public2024_images.jsonl.gz"):
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
    """Name the repositories of the public catalog that are about machine learning."""
    return {record["repo"] for record in lines(folder / "images" / "public2024_images.jsonl.gz") if record["ml"]}


def official(folder: Path) -> dict[str, list[Image]]:
    """Return up to 30 versions of one tag of each official repository, oldest first."""
    found: dict[str, list[Image]] = {}
    for record in lines(folder / "images" / "official_versions30.jsonl.gz"):
        images = found.setdefault(record["repo"], [])
        layers = tuple(Layer(Digest(digest), size) for digest, size in record["layers"])
        images.append(Image(Digest(record["manifest"]), layers, (_name(record["repo"], len(images)),)))
    return found


def snapshot(folder: Path) -> dict[str, list[Image]]:
    """Return every official image that was current at the end of 2019, by repository."""
    found: dict[str, list[Image]] = {}
    for record in lines(folder / "images" / "official_snapshot_2019-12.jsonl.gz"):
        if record["platform"] != "linux/amd64":
            continue
        images = found.setdefault(record["repo"], [])
        layers = tuple(Layer(Digest(digest), size) for digest, size in record["layers"])
        images.append(Image(Digest(record["manifest"]), layers, (_name(record["repo"], len(images)),)))
    return found


def distinct(images: list[Image]) -> list[Image]:
    """Leave out images that were listed before under another name."""
    return list({image.digest: image for image in reversed(images)}.values())[::-1]


def one_of_each(by_repository: dict[str, list[Image]], count: int, rng: random.Random) -> list[Image]:
    """Draw *count* repositories and one image of each."""
    names = rng.sample(sorted(by_repository), min(count, len(by_repository)))
    return distinct([rng.choice(by_repository[name]) for name in names])
