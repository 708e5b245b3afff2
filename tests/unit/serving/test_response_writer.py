"""Answers on their way out: as fast as the caller reads, with turns for others in between."""

from collections.abc import Callable

from lamina.serving.response_writer import BURST, ResponseWriter


class Loop:
    """Keeps what is to be called in the next turn."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, call) -> None:
        self.soon.append(call)

    def turn(self) -> None:
        calls, self.soon = self.soon, []
        for call in calls:
            call()


class Transport:
    """Takes so many portions, then is full."""

    outgoing: ResponseWriter

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.written: list[bytes] = []
        self.closing = False

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        self.limits = high, low

    def write(self, portion: bytes) -> None:
        self.written.append(portion)
        self.takes -= 1
        if self.takes == 0:
            self.outgoing.pause()

    def is_closing(self) -> bool:
        return self.closing


def at(takes: int = 10**6):
    loop, transport, done = Loop(), Transport(takes), []
    transport.outgoing = ResponseWriter(transport, loop, lambda: done.append(len(transport.written)))
    return loop, transport, done


def test_a_short_answer_is_out_at_once():
    loop, transport, done = at()
    transport.outgoing.begin(iter([b"a", b"b"]))

    assert ([b"a", b"b"], [2], []) == (transport.written, done, loop.soon)


def test_the_transport_is_asked_to_say_whenever_the_socket_did_not_take_everything():
    _, transport, _ = at()

    assert (1, 0) == transport.limits


def test_a_full_socket_is_waited_for():
    _, transport, done = at(takes=2)
    transport.outgoing.begin(iter([b"a", b"b", b"c"]))
    assert ([b"a", b"b"], []) == (transport.written, done)

    transport.outgoing.resume()
    assert ([b"a", b"b", b"c"], [3]) == (transport.written, done)


def test_an_answer_is_out_when_its_last_portion_is():
    _, transport, done = at(takes=1)
    transport.outgoing.begin(iter([b"a"]))
    assert [] == done

    transport.outgoing.resume()
    assert [1] == done


def test_others_have_their_turn_in_a_long_answer():
    loop, transport, done = at()
    transport.outgoing.begin(iter([b"x" * (BURST // 2)] * 5))

    turns = [len(transport.written)]
    while loop.soon:
        loop.turn()
        turns.append(len(transport.written))
    assert ([2, 4, 5], [5]) == (turns, done)


def test_nothing_is_written_to_a_connection_that_is_closing():
    loop, transport, done = at()
    transport.outgoing.begin(iter([b"x" * BURST] * 5))
    transport.closing = True
    loop.turn()

    assert (1, []) == (len(transport.written), done)


def test_an_answer_that_was_dropped_is_not_gone_on_with():
    loop, transport, done = at()
    transport.outgoing.begin(iter([b"x" * BURST] * 5))
    transport.outgoing.drop()
    loop.turn()
    transport.outgoing.resume()

    assert (1, []) == (len(transport.written), done)


def test_a_transport_that_has_room_again_while_it_is_written_to_does_no_harm():
    _, transport, done = at()
    write = transport.write

    def write_and_resume(portion: bytes) -> None:
        write(portion)
        transport.outgoing.resume()

    transport.write = write_and_resume
    transport.outgoing.begin(iter([b"a", b"b", b"c"]))

    assert ([b"a", b"b", b"c"], [3]) == (transport.written, done)
