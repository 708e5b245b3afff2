"""Frames of the agent's pipe: what is sent is what is heard, everything else is refused, and nothing grows without bound."""

import math
import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.digest import Digest, digest_of
from lamina.model.image import Platform
from lamina.model.layer_report import ActivePull, HeldImage, NodeRuntime
from lamina.wire import node_agent_frames
from lamina.wire.custom_resources.node_layers_status import IMAGES_WEIGHT, keep
from lamina.wire.node_agent_frames import (
    FRAME_LIMIT,
    HEAD,
    IMAGES,
    MARK,
    NAMED,
    FrameCutter,
    FrameError,
    FrameImage,
    FramePlatform,
    FramePull,
    HeartbeatFrame,
    ImageFrame,
    InventoryFrame,
    RuntimeErrorFrame,
    cut_images,
    encode_frame,
    held_images,
    platform,
    pulls,
    runtime,
)

SHA = digest_of(b"x")
LOOK = InventoryFrame(
    observed_at=1772366400.25,
    runtime="containerd",
    version="2.4.2",
    reuse="set",
    platform=FramePlatform("linux", "arm64", "v8"),
    images=(FrameImage(SHA, 5, ("a:1",), True),),
    pulling=(FramePull("b:1", SHA, 1, 2), FramePull("c:1")),
    download_rate=1.5,
    unpack_rate=2.5,
    disk=10,
    disk_free=3,
    layers=2,
    size=7,
    left_out=1,
)
FRAMES = [
    pytest.param(LOOK, id="look"),
    pytest.param(InventoryFrame(observed_at=0.0), id="a look at nothing"),
    pytest.param(ImageFrame(manifest=b"{}", media_type="m", diff_ids=(SHA,), unpacked=(4,)), id="describe"),
    pytest.param(RuntimeErrorFrame("gone"), id="trouble"),
    pytest.param(HeartbeatFrame(), id="alive"),
]


def framed(body: bytes) -> bytes:
    return MARK + len(body).to_bytes(4) + zlib.crc32(body).to_bytes(4) + body


def heard(data: bytes) -> list[node_agent_frames.Frame]:
    return list(FrameCutter().feed(data))


@pytest.mark.parametrize("frame", FRAMES)
def test_what_is_sent_is_what_is_heard(frame):
    assert [frame] == heard(encode_frame(frame))


@given(st.lists(st.integers(1, 60), max_size=30))
@settings(max_examples=50)
def test_it_does_not_matter_in_which_pieces_frames_come(cuts):
    frames = [param.values[0] for param in FRAMES] * 2
    data, cutter = b"".join(map(encode_frame, frames)), FrameCutter()
    found: list[node_agent_frames.Frame] = []
    for cut in cuts:
        found += cutter.feed(data[:cut])
        data = data[cut:]
    found += cutter.feed(data)

    assert frames == found
    assert not cutter.half


def test_half_a_frame_waits_for_its_end():
    data, cutter = encode_frame(LOOK), FrameCutter()

    assert [] == list(cutter.feed(data[:-1]))
    assert cutter.half
    assert [LOOK] == list(cutter.feed(data[-1:]))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"x" * HEAD, "does not begin with the frame mark", id="something else"),
        pytest.param(encode_frame(LOOK)[7:], "does not begin with the frame mark", id="the middle of a frame"),
        pytest.param(MARK + (FRAME_LIMIT + 1).to_bytes(4) + bytes(4), "1048577 bytes, the limit is", id="too long"),
        pytest.param(MARK + b"\xff" * 8, "4294967295 bytes, the limit is", id="as long as can be"),
        pytest.param(MARK + (3).to_bytes(4) + bytes(4) + b"abc", "checksum", id="another checksum"),
        pytest.param(framed(b""), "truncated", id="empty"),
        pytest.param(framed(b"\xc1"), "malformed", id="no MessagePack"),
        pytest.param(framed(b"\x91" * 5000 + b"\xc0"), "invalid frame", id="deep"),
        pytest.param(framed(msgspec.msgpack.encode([1])), "Expected `object`", id="a list"),
        pytest.param(framed(msgspec.msgpack.encode({"type": "other"})), "Invalid value", id="an unknown kind"),
        pytest.param(framed(msgspec.msgpack.encode({"problem": "x"})), "missing required field `type`", id="no kind"),
    ],
)
def test_what_is_no_frame_is_refused(data, problem):
    with pytest.raises(FrameError, match=problem):
        heard(data)


@given(st.binary(max_size=300))
@settings(max_examples=200)
def test_whatever_comes_is_a_frame_or_refused(data):
    problems = []
    for attempt in (framed(data), data):
        try:
            heard(attempt)
        except FrameError as error:
            problems.append(str(error))

    assert all(len(problem.splitlines()) == 1 for problem in problems)


@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=20))
@settings(max_examples=100)
def test_a_frame_that_was_tampered_with_is_refused(place, junk):
    whole = encode_frame(LOOK)
    place %= len(whole)
    broken = whole[:place] + junk + whole[place + len(junk) :]
    found = []
    try:
        found = heard(broken)
    except FrameError:
        return
    assert found in ([], [LOOK])


def changed(frame: node_agent_frames.Frame, **fields: object) -> bytes:
    told = msgspec.to_builtins(frame)
    return framed(msgspec.msgpack.encode({**told, **fields}))


BAD = "sha256:" + "g" * 64


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"observed_at": -1.0}, id="before 1970"),
        pytest.param({"observed_at": math.nan}, id="no time"),
        pytest.param({"download_rate": math.inf}, id="endless rate"),
        pytest.param({"unpack_rate": -1.0}, id="negative rate"),
        pytest.param({"disk": -1}, id="negative size"),
        pytest.param({"disk": 2**63}, id="more than 63 bits"),
        pytest.param({"reuse": "all"}, id="unknown reuse"),
        pytest.param({"runtime": "x" * 129}, id="long name of a runtime"),
        pytest.param({"platform": ["linux"] * 4}, id="platform of four parts"),
        pytest.param({"images": [[BAD]]}, id="no digest"),
        pytest.param({"images": [[SHA + "\n"]]}, id="digest and a line"),
        pytest.param({"images": [[SHA, -1]]}, id="negative image"),
        pytest.param({"images": [[SHA, 1, [""]]]}, id="empty name"),
        pytest.param({"images": [[SHA, 1, ["x" * 513]]]}, id="long name"),
        pytest.param({"images": [[SHA, 1, ["x"] * 17]]}, id="many names"),
        pytest.param({"images": [[SHA, 1, [], False, 1]]}, id="image of five parts"),
        pytest.param({"images": [[SHA]] * (IMAGES + 1)}, id="many images"),
        pytest.param({"pulling": [["x"]] * 17}, id="many pulls"),
        pytest.param({"more": 1}, id="unknown field"),
    ],
)
def test_a_look_that_breaks_a_rule_is_refused(fields):
    with pytest.raises(FrameError):
        heard(changed(LOOK, **fields))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"manifest": b""}, id="no manifest"),
        pytest.param({"manifest": b"x" * 48_001}, id="long manifest"),
        pytest.param({"manifest": "text"}, id="manifest that is text"),
        pytest.param({"diff_ids": [BAD]}, id="no digest"),
        pytest.param({"diff_ids": [SHA] * 257}, id="many layers"),
        pytest.param({"unpacked": [-1]}, id="negative size"),
        pytest.param({"media_type": "x" * 129}, id="long media type"),
    ],
)
def test_a_description_that_breaks_a_rule_is_refused(fields):
    with pytest.raises(FrameError):
        heard(changed(ImageFrame(manifest=b"{}"), **fields))


def test_what_is_refused_is_not_quoted():
    with pytest.raises(FrameError) as caught:
        heard(changed(LOOK, runtime="hunter2" * 50))

    assert "hunter2" not in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ inventories


def many(count: int, *names: str) -> list[HeldImage]:
    return [
        HeldImage(digest_of(str(one).encode()), one, names or (f"registry.example/app:{one}",)) for one in range(count)
    ]


def test_a_look_at_two_thousand_images_with_names_fits_a_frame():
    images, left_out = cut_images(many(2000, *(f"registry.example/{'x' * 230}/app:{one}" for one in range(16))))
    frame = encode_frame(InventoryFrame(observed_at=1.0, images=images))

    assert (2000, 0) == (len(images), left_out)
    assert FRAME_LIMIT >= len(frame)
    assert [InventoryFrame(observed_at=1.0, images=images)] == heard(frame)


def test_the_largest_images_have_names_as_far_as_a_report_has_room():
    found = many(3000)
    images, _ = cut_images(found)
    named = [image.digest for image in images if image.names]

    assert [image.digest for image in keep(found)] == named
    assert 0 < len(named) < NAMED
    assert sum(128 + 3 + len(image.names[0]) for image in images if image.names) <= IMAGES_WEIGHT


def test_images_beyond_the_limit_are_counted():
    images, left_out = cut_images(many(IMAGES + 7))

    assert (IMAGES, 7) == (len(images), left_out)
    assert IMAGES + 6 == images[0].size
    assert FRAME_LIMIT >= len(encode_frame(InventoryFrame(observed_at=1.0, images=images)))


def test_images_of_other_digests_and_impossible_sizes_do_not_break_a_frame():
    odd = [HeldImage(Digest("sha512:" + "a" * 128), 1), HeldImage(SHA, -5), HeldImage(digest_of(b"y"), 2**70)]
    images, left_out = cut_images(odd)

    assert [(digest_of(b"y"), 2**63 - 1), (SHA, 0)] == [(image.digest, image.size) for image in images]
    assert [InventoryFrame(observed_at=1.0, images=images)] == heard(
        encode_frame(InventoryFrame(observed_at=1.0, images=images))
    )
    assert 0 == left_out


def test_a_look_is_put_in_the_words_of_a_report():
    assert (HeldImage(SHA, 5, ("a:1",), True),) == held_images(LOOK)
    assert (ActivePull("b:1", SHA, 1, 2), ActivePull("c:1", None, 0, 0)) == pulls(LOOK)
    assert NodeRuntime("containerd", "2.4.2") == runtime(LOOK)
    assert Platform("linux", "arm64", "v8") == platform(LOOK.platform)
    assert platform(None) is None
