"""
Changes that keep most of an input as it was: in its structure where it has one, in its text, in its bytes.

Everything follows from the random numbers that are handed in. Nothing knows what it is mutated for.
"""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.fuzz.corpus import plain

LONGEST: Final = 100_000
"""Bytes of an input; larger ones are the corpus's business."""
NASTY_VALUES: Final[tuple[Any, ...]] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**63,
        2**64,
        -(2**63) - 1,
        2**70,
        1.5,
        1e308,
        -0.0,
        "",
        "a",
        "\x00",
        "\n",
        "\u202e",
        "é" * 50,
    ),
    *(
        "sha256:" + "0" * 64,
        "sha512:" + "f" * 128,
        "sha256:",
        "../../x",
        "http://169.254.169.254/",
        "x" * 5_000,
        [],
        {},
        [[]],
        [{}],
        {"": ""},
    ),
    *(
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        [None] * 100,
        {"digest": "x", "size": 1},
    ),
)
NASTY_PIECES: Final = (
    *(
        b"\x00",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\n",
        b"\t",
        b" ",
        b'"',
        b"\\",
        b"'",
        b",",
        b":",
        b"/",
        b"@",
        b"..",
        b"=",
        b"&a",
    ),
    *(
        b"[" * 50,
        b"{" * 50,
        b'{"a":' * 20,
        b"1e999",
        b"9" * 100,
        b"-",
        b"\\ud800",
        b"null",
        b"*",
        b"?",
        b"#",
        b"%00",
        b"://",
        b"[::1]",
        b":0",
        b"*a",
    ),
)

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def mutate(luck: random.Random, seed: bytes, others: Sequence[bytes]) -> bytes:
    """Change an input in one to four places."""
    data = seed[:LONGEST]
    for _ in range(luck.choice((1, 1, 2, 4))):
        change = luck.choice(MUTATIONS)
        data = change(luck, data, others)[:LONGEST]
    return data


def in_structure(luck: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change one value of a JSON document, or add, double or drop one."""
    document = plain(data)
    if not isinstance(document, dict | list) or not document:
        return in_bytes(luck, data, others)
    place: Any = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = luck.choice(keys)
        inner = place[key]
        if isinstance(inner, dict | list) and inner and luck.random() < 0.7:
            place = inner
            continue
        break
    deed = luck.randrange(5)
    if deed == 0:
        del place[key]
    elif deed == 1:
        place[key] = luck.choice(NASTY_VALUES)
    elif deed == 2:
        place[key] = [inner] * luck.choice((0, 1, 2, 50))
    elif deed == 3 and isinstance(place, list):
        place.extend([inner] * luck.choice((1, 2, 300)))
    elif isinstance(place, dict):
        place[luck.choice(("layers", "manifests", "mediaType", "urls", "", "auths", "\x00"))] = luck.choice(
            (inner, *NASTY_VALUES)
        )
    # Every second time a field is written twice, which no tree can hold.
    text = json.dumps(document)
    return (text[:-1] + "," + text[1:] if luck.random() < 0.1 and text.startswith("{") else text).encode(
        "utf-8", "surrogatepass"
    )


def in_bytes(luck: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Flip, drop, double or insert some bytes."""
    at = luck.randrange(len(data) + 1)
    length = luck.choice((1, 1, 2, 8, 64, 1_000))
    deed = luck.randrange(6)
    if deed == 0 and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ (1 << luck.randrange(8))]) + data[at + 1 :]
    if deed == 1:
        return data[:at] + data[at + length :]
    if deed == 2:
        return data[:at] + data[at : at + length] * luck.choice((2, 3, 50)) + data[at + length :]
    if deed == 3:
        return data[:at]
    if deed == 4:
        other = luck.choice(others)[:LONGEST]
        cut = luck.randrange(len(other) + 1)
        return data[:at] + other[cut : cut + 1_000]
    return data[:at] + luck.choice(NASTY_PIECES) * luck.choice((1, 1, 2, 100)) + data[at:]


MUTATIONS: Final[tuple[Mutation, ...]] = (in_structure, in_structure, in_bytes, in_bytes)
