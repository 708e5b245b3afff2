"""What goes wrong around an agent: halves that die, a pipe full of nonsense, an API server that is away, too little of all."""

import json
import os
import random
import resource
import time
import zlib

import pytest

from lamina.services.node_agent.pipe_sender import open_fifo
from tests.integration.node_agent.halves import NO_FILES, an_agent, install
from tests.integration.scheduler.live import until
from tests.unit.services.node_agent.scripted import an_image, digests

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

MIB = 1024**2


@pytest.fixture(scope="module")
def bed(control_plane):
    return install(control_plane)


@pytest.fixture
def agent(bed, tmp_path, request):
    with an_agent(bed, tmp_path, f"fault-{zlib.crc32(request.node.name.encode())}") as agent:
        yield agent


def in_order(agent, images: int) -> bool:
    """Whether the report is whole and true."""
    held = digests(*(an_image(one) for one in range(images)))
    listed = [image["digest"] for image in agent.status().get("images", [])]
    return held == listed and agent.condition("RuntimeReachable")[0] == "True"


@pytest.mark.parametrize("victim", ["reader", "publisher", "both"])
def test_a_half_may_be_killed_at_any_moment(agent, victim):
    """Twelve times, somewhere between its first breath and a second later; then everything is as if nothing had been."""
    rng = random.Random(victim)
    victims = [agent.reader, agent.publisher] if victim == "both" else [getattr(agent, victim)]
    agent.hold(images=3, filling=9000)
    agent.start()
    for number in range(12):
        time.sleep(rng.random() ** 2)
        for half in victims:
            half.kill()
            half.start()
        agent.hold(images=3 + number, filling=9000)
    agent.hold(images=5)

    until(lambda: in_order(agent, 5), 45, "a true report")
    assert "Traceback" not in agent.reader.said() + agent.publisher.said()


def test_garbage_in_the_pipe_is_a_condition_and_a_reader_in_order_ends_it(agent):
    agent.hold(images=2)
    agent.start()
    until(lambda: in_order(agent, 2), 20, "the first report")
    agent.reader.kill()
    opened: list[int] = []

    def garbage_is_reported() -> bool:
        """Write garbage until the publisher reports it; it may close the pipe of the dead reader meanwhile."""
        if "sent an invalid frame" in agent.condition("RuntimeReachable")[2]:
            return True
        if not opened and (pipe := open_fifo(agent.pipe)) is not None:
            opened.append(pipe)
        try:
            if opened:
                os.write(opened[0], os.urandom(5000))
        except BrokenPipeError:
            os.close(opened.pop())
        except BlockingIOError:
            # The pipe is full: the publisher has enough to read.
            return False
        return False

    until(garbage_is_reported, 40, "the condition")
    for pipe in opened:
        os.close(pipe)

    assert 2 == agent.count()
    agent.reader.start()
    until(lambda: in_order(agent, 2), 40, "a report in order")


def test_a_reader_that_hangs_is_told_and_its_publisher_goes_on(agent):
    agent.hold(images=2)
    agent.start()
    until(lambda: in_order(agent, 2), 20, "the first report")
    agent.reader.pause()
    until(lambda: "is silent" in agent.condition("RuntimeReachable")[2], 90, "the condition")
    agent.reader.resume()
    until(lambda: in_order(agent, 2), 40, "its end")


def test_a_publisher_that_hangs_does_not_hold_up_the_reader(agent):
    """The pipe fills up; what is heard at last is what is newest."""
    agent.hold(images=100, filling=2000)
    agent.start()
    until(lambda: agent.count() == 100, 20, "the first report")
    agent.publisher.pause()
    for number in range(8):
        agent.hold(images=100 + number, filling=20_000)
        time.sleep(1.1)
    looks = agent.reader.said().count("inventory read")
    agent.publisher.resume()

    assert looks >= 8
    until(lambda: agent.count() == 107, 30, "the newest look")


def test_an_api_server_that_is_away_for_half_a_minute_gets_the_newest_report_when_it_is_back(bed_factory, tmp_path):
    bed = install(bed_factory())
    with an_agent(bed, tmp_path, "outage") as agent:
        agent.hold(images=1)
        agent.start()
        until(lambda: in_order(agent, 1), 20, "the first report")
        server = bed.parts["kube-apiserver"]
        server.kill()
        for number in range(10):
            agent.hold(images=2 + number)
            time.sleep(3.0)
        server.start()

        assert until(lambda: in_order(agent, 11), 90, "the newest report") < 75
        tries = agent.publisher.said().count("report failed, retrying")
        assert 1 <= tries <= 5
        assert "Traceback" not in agent.publisher.said()


def test_an_agent_needs_no_disk(agent):
    """Its words go to a log that somebody else writes: here a pipe, because no file can be written to."""
    agent.hold(images=3)
    agent.publisher, agent.reader = agent.a_publisher(limits=NO_FILES), agent.a_reader(limits=NO_FILES)
    logs = []
    for half in (agent.publisher, agent.reader):
        os.mkfifo(half.log)
        logs.append(os.open(half.log, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        half.start()
    until(lambda: in_order(agent, 3), 30, "the report")
    agent.hold(images=4)
    until(lambda: in_order(agent, 4), 30, "the next report")
    for log in logs:
        os.close(log)


@pytest.mark.parametrize("images", [2000, 5000])
def test_with_little_memory_and_many_images_a_report_is_cut_and_nobody_dies(bed, tmp_path, images):
    """
    64 MiB of data for each half.

    Grown step by step: that many descriptions take minutes to be written at five a second, and are not waited for.
    """
    limits = {resource.RLIMIT_DATA: 64 * MIB}
    with an_agent(bed, tmp_path, f"memory-{images}") as agent:
        agent.hold(images=images)
        agent.publisher, agent.reader = agent.a_publisher(limits=limits), agent.a_reader(limits=limits)
        agent.start()
        until(lambda: agent.status().get("imageCount") == images, 60, "the report")
        status, reason, message = agent.condition("Truncated")
        kept = agent.count()

        assert ("True", "TooManyImages") == (status, reason)
        assert f"{images - kept} of {images} images are left out, the smallest ones" == message
        assert 256 * 1024 > len(json.dumps(agent.status(), separators=(",", ":")))
        assert agent.reader.running
        assert agent.publisher.running


def test_a_server_that_hangs_does_not_keep_a_publisher_from_ending(bed_factory, tmp_path):
    bed = install(bed_factory())
    with an_agent(bed, tmp_path, "hang") as agent:
        agent.hold(images=1)
        agent.start()
        until(lambda: in_order(agent, 1), 20, "the first report")
        server = bed.parts["kube-apiserver"]
        server.pause()
        try:
            agent.hold(images=2)
            time.sleep(12.5)
            code, seconds = agent.publisher.end()
        finally:
            server.resume()

        assert (0, True) == (code, seconds < 2.0)


def test_a_publisher_without_a_reader_says_so_and_keeps_what_was_reported(agent):
    agent.hold(images=2)
    agent.start()
    until(lambda: in_order(agent, 2), 20, "the first report")
    agent.reader.kill()
    agent.publisher.kill()
    agent.publisher.start()
    until(lambda: "is not running" in agent.condition("RuntimeReachable")[2], 40, "the condition")

    assert 2 == agent.count()
    assert 2 == agent.status()["imageCount"]
