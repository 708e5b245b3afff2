"""The pipe between the halves of an agent: everything is told to whoever comes, and nobody waits for who does not listen."""

import asyncio
import os
import random
import stat
import sys
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest

from lamina.model.errors import InputError
from lamina.services.node_agent import pipe_receiver
from lamina.services.node_agent.inventory_frames import InventoryFrameBuilder, describe_image
from lamina.services.node_agent.pipe_receiver import IS_GONE, PipeReceiver
from lamina.services.node_agent.pipe_sender import PipeSender, open_fifo
from lamina.services.node_agent.reader_channels import ChildProcessChannel, NamedPipeChannel
from lamina.services.node_agent.report_backoff import ReportBackoff
from lamina.wire import node_agent_frames as frames
from lamina.wire.node_agent_frames import FrameCutter, HeartbeatFrame, ImageFrame, InventoryFrame, encode_frame
from tests.unit.services.node_agent.scripted import an_image, holding, unmeasured


async def until(holds, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(*parts):
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Ear:
    """A publisher as the reader knows it: somebody who opens the pipe, and may be slow or go away."""

    def __init__(self, path) -> None:
        self.door = NamedPipeChannel(path)
        self.cutter = FrameCutter()
        self.frames: list[object] = []
        self.pipe = -1

    async def come(self) -> None:
        self.pipe = await self.door.open()

    def listen(self) -> list[object]:
        """Hear what is there."""
        with suppress(BlockingIOError):
            while data := os.read(self.pipe, 65_536):
                self.frames += self.cutter.feed(data)
        return self.frames

    def go(self) -> None:
        os.close(self.pipe)
        self.cutter, self.frames = FrameCutter(), []


def tell(outlet: PipeSender, *images, at: float = 1.0) -> InventoryFrame:
    found = holding(*images)
    look = InventoryFrameBuilder().of(found, at)
    outlet.send(look, found.images)
    return look


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pipe"


@pytest.fixture
def outlet(path):
    return PipeSender(lambda: open_fifo(path))


# ------------------------------------------------------------------------------------------------------- the reader's end


async def test_whoever_comes_is_told_everything(path, outlet):
    ear = Ear(path)
    look = tell(outlet, an_image(1), an_image(2))
    async with running(outlet.run()):
        for _ in range(3):
            await ear.come()
            await until(lambda: len(ear.listen()) == 3)
            # The largest first.
            assert [look, describe_image(an_image(2)), describe_image(an_image(1))] == ear.frames
            ear.go()


async def test_a_trouble_is_told_after_the_last_good_look(path, outlet):
    ear = Ear(path)
    look = tell(outlet)
    outlet.send_problem("gone")
    async with running(outlet.run()):
        await ear.come()
        await until(lambda: len(ear.listen()) == 2)

    assert [look, frames.RuntimeErrorFrame("gone")] == ear.frames


async def test_who_comes_before_anything_was_seen_hears_that_somebody_is_there(path, outlet):
    ear = Ear(path)
    async with running(outlet.run()):
        await ear.come()
        await until(lambda: ear.listen() != [])

    assert [HeartbeatFrame(0.0)] == ear.frames


async def test_only_what_changed_is_told_later(path, outlet):
    ear = Ear(path)
    tell(outlet, an_image(1))
    async with running(outlet.run()):
        await ear.come()
        await until(lambda: len(ear.listen()) == 2)
        tell(outlet, an_image(1), at=2.0)
        await until(lambda: len(ear.listen()) == 3)
        second = tell(outlet, an_image(1), an_image(2), at=3.0)
        await until(lambda: len(ear.listen()) == 5)

    assert [HeartbeatFrame(2.0), second, describe_image(an_image(2))] == ear.frames[2:]


async def test_the_end_of_a_trouble_is_told_even_if_nothing_else_changed(path, outlet):
    ear = Ear(path)
    tell(outlet)
    async with running(outlet.run()):
        await ear.come()
        await until(lambda: len(ear.listen()) == 1)
        outlet.send_problem("gone")
        outlet.send_problem("gone")
        await until(lambda: len(ear.listen()) == 2)
        again = tell(outlet, at=5.0)
        await until(lambda: len(ear.listen()) == 3)

    assert [frames.RuntimeErrorFrame("gone"), again] == ear.frames[1:]


async def test_sizes_that_become_known_are_told(path, outlet):
    ear = Ear(path)
    tell(outlet, unmeasured(an_image(1)))
    async with running(outlet.run()):
        await ear.come()
        await until(lambda: len(ear.listen()) == 2)
        tell(outlet, an_image(1))
        await until(lambda: len(ear.listen()) == 4)

    assert describe_image(unmeasured(an_image(1))) == ear.frames[1]
    assert describe_image(an_image(1)) == ear.frames[3]


@pytest.mark.realtime
async def test_for_who_does_not_listen_only_the_newest_look_waits(path, outlet):
    """And the reader never waits: it may tell as much as it likes."""
    ear = Ear(path)
    async with running(outlet.run()):
        await ear.come()
        await asyncio.sleep(0.7)
        images = [an_image(one) for one in range(350)]
        for number in range(50):
            last = tell(outlet, *images[number : number + 300], at=float(number + 1))
            await asyncio.sleep(0)
        await until(lambda: last in ear.listen())

    looks = [frame for frame in ear.frames if isinstance(frame, InventoryFrame)]
    assert len(looks) < 10


async def test_what_images_consist_of_is_offered_again(path, outlet, monkeypatch):
    monkeypatch.setattr("lamina.services.node_agent.pipe_sender.OFFER_EVERY", 0.3)
    monkeypatch.setattr("lamina.services.node_agent.pipe_sender.ALIVE_EVERY", 0.05)
    ear = Ear(path)
    tell(outlet, an_image(1))
    async with running(outlet.run()):
        await ear.come()
        await until(lambda: sum(isinstance(frame, ImageFrame) for frame in ear.listen()) == 3)

    assert any(isinstance(frame, HeartbeatFrame) for frame in ear.frames)


async def test_a_reader_without_hope_of_another_publisher_ends(path):
    reading, writing = os.pipe2(os.O_NONBLOCK)
    outlet = PipeSender(lambda: writing)
    end = asyncio.create_task(outlet.run(once=True))
    await asyncio.sleep(0)
    os.close(reading)

    await asyncio.wait_for(end, 60)


def test_nobody_is_there_until_somebody_opens_the_pipe(path):
    assert open_fifo(path) is None
    os.mkfifo(path)
    assert open_fifo(path) is None


def test_a_link_in_place_of_the_pipe_is_not_followed(path, tmp_path):
    (tmp_path / "precious").write_text("x")
    path.symlink_to(tmp_path / "precious")

    assert open_fifo(path) is None
    assert "x" == (tmp_path / "precious").read_text()


def test_a_file_in_place_of_the_pipe_is_refused_and_left_alone(path):
    path.write_text("x")

    with pytest.raises(InputError, match="is not a pipe"):
        open_fifo(path)
    with pytest.raises(InputError, match=r"--pipe: .* exists and is not a pipe"):
        NamedPipeChannel(path)
    assert "x" == path.read_text()


# ---------------------------------------------------------------------------------------------------- the publisher's end


class Notes:
    """A reporter and a describer that write down what they hear."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def look(self, look: InventoryFrame) -> None:
        self.heard.append(look)

    def alive(self, observed_at: float) -> None:
        self.heard.append(observed_at)

    def trouble(self, problem: str) -> None:
        self.heard.append(problem)

    def hold(self, held) -> None:
        self.heard.append(len(held))

    def offer(self, describe: ImageFrame) -> None:
        self.heard.append(describe)


@pytest.fixture
def notes():
    return Notes()


@pytest.fixture
def listener(path, notes):
    return PipeReceiver(NamedPipeChannel(path), notes, notes, random.Random(1))


async def connected(path) -> int:
    while (pipe := open_fifo(path)) is None:
        await asyncio.sleep(0.01)
    return pipe


async def test_what_a_reader_says_is_passed_on(path, listener, notes):
    look, describe = InventoryFrame(observed_at=1.0), ImageFrame(manifest=b"{}")
    async with running(listener.run()):
        pipe = await connected(path)
        os.write(
            pipe, b"".join(map(encode_frame, (look, describe, frames.RuntimeErrorFrame("gone"), HeartbeatFrame(2.0))))
        )
        await until(lambda: len(notes.heard) == 5)
        os.close(pipe)

    assert [0, look, describe, "gone", 2.0] == notes.heard


def is_broken(pipe: int) -> bool:
    """Whether nobody reads it any more."""
    try:
        os.write(pipe, b"more")
    except BrokenPipeError:
        return True
    return False


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(os.urandom(4096), id="noise"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(encode_frame(InventoryFrame(observed_at=1.0))[3:] + bytes(99), id="the middle of a frame"),
        pytest.param(encode_frame(frames.RuntimeErrorFrame("x"))[:-1] + b"y", id="a frame that was tampered with"),
    ],
)
async def test_a_reader_that_sends_garbage_is_hung_up_on_and_may_come_back(path, listener, notes, garbage):
    async with running(listener.run()):
        pipe = await connected(path)
        os.write(pipe, garbage)
        await until(lambda: notes.heard != [])
        await until(lambda: is_broken(pipe))
        os.close(pipe)
        assert "the node agent's reader sent an invalid frame: " in notes.heard[0]
        pipe = await connected(path)
        os.write(pipe, encode_frame(HeartbeatFrame(3.0)))
        await until(lambda: notes.heard[-1] == 3.0)
        os.close(pipe)

    assert ["", 3.0] == notes.heard[1:]


@pytest.mark.realtime
async def test_a_reader_that_comes_back_soon_was_never_gone(path, listener, notes):
    async with running(listener.run()):
        for moment in (1.0, 2.0):
            pipe = await connected(path)
            os.write(
                pipe, encode_frame(HeartbeatFrame(moment)) + encode_frame(frames.RuntimeErrorFrame("cut off"))[:-4]
            )
            await until(lambda moment=moment: moment in notes.heard)
            os.close(pipe)
            # No process starts sooner.
            await asyncio.sleep(0.1)

    assert [1.0, 2.0] == notes.heard


class Impatience(ReportBackoff):
    """Waits hardly at all, and writes down what it would have waited."""

    def __init__(self) -> None:
        super().__init__(random.Random(1), longest=pipe_receiver.LONGEST_WAIT)
        self.waits: list[float] = []

    def after_failure(self, asked: float | None = None) -> float:
        self.waits.append(super().after_failure(asked))
        return 0.01


@pytest.mark.parametrize(("lasting", "longest"), [(60.0, 16.0), (0.0, 1.5)], ids=["and ends soon", "and works"])
async def test_a_reader_that_ends_soon_after_each_start_is_let_in_less_often(
    path, listener, notes, monkeypatch, lasting, longest
):
    """One that dies at its first look has said by then that it is there; that it is there ends no trouble."""
    monkeypatch.setattr(pipe_receiver, "LASTING", lasting)
    listener._backoff = impatience = Impatience()
    listener._own_trouble = IS_GONE
    async with running(listener.run()):
        for times in range(1, 6):
            pipe = await connected(path)
            os.write(pipe, encode_frame(HeartbeatFrame()))
            os.close(pipe)
            await until(lambda times=times: len(impatience.waits) == times)

    assert [] == notes.heard
    assert longest <= max(impatience.waits[-1], 1.5) <= 1.5 * longest


@pytest.mark.realtime
async def test_a_flood_of_small_frames_is_slowed_down_as_well(path, listener, notes, monkeypatch):
    """They cost more than their bytes."""
    monkeypatch.setattr(pipe_receiver, "WINDOW_BYTES", 100 * pipe_receiver.FRAME_COST)
    flood = encode_frame(HeartbeatFrame(1.0)) * 500
    async with running(listener.run()):
        pipe = await connected(path)
        assert len(flood) == os.write(pipe, flood)
        await until(lambda: len(notes.heard) == 500)
        os.write(pipe, flood)
        await asyncio.sleep(0.3)
        os.close(pipe)

    assert 500 == len(notes.heard)


async def test_a_reader_that_stays_away_or_silent_is_told(path, listener, notes, monkeypatch):
    monkeypatch.setattr(pipe_receiver, "BACK_WITHIN", 0.2)
    monkeypatch.setattr(pipe_receiver, "SILENT", 0.5)
    async with running(listener.run()):
        await until(lambda: notes.heard == [IS_GONE])
        pipe = await connected(path)
        os.write(pipe, encode_frame(frames.RuntimeErrorFrame("gone")))
        await until(lambda: len(notes.heard) == 3)
        os.write(pipe, encode_frame(HeartbeatFrame(1.0)))
        await until(lambda: len(notes.heard) == 5)
        os.close(pipe)

    assert [IS_GONE, "gone", pipe_receiver.IS_SILENT, "gone", 1.0] == notes.heard


async def test_a_reader_that_never_stops_talking_is_slowed_down(path, listener, notes, monkeypatch):
    monkeypatch.setattr(pipe_receiver, "WINDOW_BYTES", 1_000_000)
    monkeypatch.setattr(pipe_receiver, "WINDOW", 0.5)
    flood, sent = encode_frame(ImageFrame(manifest=b"x" * 40_000)) * 5, 0
    whole = len(flood)
    async with running(listener.run()):
        pipe = await connected(path)
        ends = asyncio.get_running_loop().time() + 1.2
        while asyncio.get_running_loop().time() < ends:
            try:
                # What a pipe takes is a part; go on where it ended.
                sent += os.write(pipe, flood[sent % whole :])
            except BlockingIOError:
                await asyncio.sleep(0.001)
        os.close(pipe)

    # Three windows, and what the pipe holds.
    assert 1_000_000 < sent < 3 * 1_000_000 + 400_000


async def test_a_frame_of_endless_length_is_not_waited_for(path, listener, notes):
    async with running(listener.run()):
        pipe = await connected(path)
        os.write(pipe, b"\xff\xfelam" + (2**31).to_bytes(4) + bytes(100))
        await until(lambda: notes.heard != [])
        os.close(pipe)

    assert "the limit is 1048576" in notes.heard[0]


# ------------------------------------------------------------------------------------------------------------------ doors


async def test_each_opening_is_another_pipe_that_its_group_may_write_to(path):
    door = NamedPipeChannel(path)
    pipes = [await door.open() for _ in range(2)]
    kinds = [os.fstat(pipe) for pipe in pipes]

    assert kinds[0].st_ino != kinds[1].st_ino == path.stat().st_ino
    assert 0o620 == stat.S_IMODE(kinds[1].st_mode)
    assert [path.name] == [one.name for one in path.parent.iterdir()]
    for pipe in pipes:
        os.close(pipe)


def test_a_pipe_needs_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"--pipe: .* is not a folder"):
        NamedPipeChannel(tmp_path / "nowhere" / "pipe")


async def test_a_pipe_that_cannot_be_made_is_a_trouble_and_no_end(path, listener, notes, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "mkfifo", full)
    async with running(listener.run()):
        await until(lambda: notes.heard != [])

    assert ["no pipe for the node agent's reader: No space left on device"] == notes.heard


async def test_a_child_finds_its_pipe_open_and_no_secrets(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "secret")
    program = "import os, sys, time; os.write(int(sys.argv[1]), f'{dict(os.environ)} done'.encode()); time.sleep(60)"
    door = ChildProcessChannel(lambda number: [sys.executable, "-c", program, str(number)])
    pipe = await door.open()
    said = b""
    while b"done" not in said:
        await asyncio.sleep(0.01)
        try:
            said += os.read(pipe, 4096)
        except BlockingIOError:
            continue
    await door.close()
    os.close(pipe)

    assert b"PATH" in said
    assert b"secret" not in said


async def test_a_child_that_does_not_end_is_killed():
    program = (
        "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "os.write(int(sys.argv[1]), b'here'); time.sleep(60)"
    )
    door = ChildProcessChannel(lambda number: [sys.executable, "-c", program, str(number)])
    pipe = await door.open()
    await until(lambda: _has_spoken(pipe))
    await asyncio.wait_for(door.close(), 60)
    os.close(pipe)


def _has_spoken(pipe: int) -> bool:
    try:
        return bool(os.read(pipe, 10))
    except BlockingIOError:
        return False


async def test_five_thousand_images_get_through(path, outlet, listener, notes):
    images = [an_image(one) for one in range(5200)]
    look = tell(outlet, *images)
    async with running(listener.run(), outlet.run()):
        await until(lambda: sum(isinstance(one, ImageFrame) for one in notes.heard) == 5200, 60)

    assert (5000, 200) == (len(look.images), look.left_out)
    assert [5000, look] == notes.heard[:2]
    assert isinstance(msgspec.structs.asdict(look), dict)
