"""A registry in trouble is left alone, and tried again carefully; a namespace may ask for so much."""

from lamina.clients.oci.circuit_breaker import FAILURES, FIRST, LONGEST, MOST_HOSTS, CircuitBreaker


def opened(at=0.0):
    breaker = CircuitBreaker()
    for _ in range(FAILURES):
        breaker.failed("r", at)
    return breaker


def test_it_opens_after_failures_in_a_row():
    breaker = CircuitBreaker()
    for _ in range(FAILURES - 1):
        breaker.failed("r", 0.0)
    before = breaker.wait("r", 0.0)
    breaker.failed("r", 0.0)

    assert (0.0, FIRST, 1) == (before, breaker.wait("r", 0.0), breaker.open(0.0))
    assert 0.0 == breaker.wait("other", 0.0)


def test_a_success_in_between_counts():
    breaker = CircuitBreaker()
    for _ in range(3 * FAILURES):
        breaker.failed("r", 0.0)
        breaker.succeeded("r")

    assert 0.0 == breaker.wait("r", 0.0)


def test_half_open_lets_one_question_through():
    breaker = opened()

    assert [0.0, 1.0, 1.0] == [breaker.wait("r", FIRST) for _ in range(3)]


def test_a_success_closes_it():
    breaker = opened()
    breaker.wait("r", FIRST)
    breaker.succeeded("r")

    assert [0.0, 0.0] == [breaker.wait("r", FIRST) for _ in range(2)]


def test_a_failure_opens_it_for_twice_as_long_up_to_a_limit():
    breaker, now, waits = opened(), 0.0, []
    for _ in range(6):
        wait = breaker.wait("r", now)
        waits.append(wait)
        now += wait
        breaker.wait("r", now)
        breaker.failed("r", now)

    assert [30.0, 60.0, 120.0, 240.0, 300.0, 300.0] == waits
    assert LONGEST == max(waits)


def test_questions_that_were_under_way_do_not_make_it_longer():
    breaker = opened()
    for _ in range(20):
        breaker.failed("r", 1.0)

    assert FIRST - 1.0 == breaker.wait("r", 1.0)


def test_a_question_that_ended_otherwise_lets_the_next_one_through():
    breaker = opened()
    breaker.wait("r", FIRST)
    breaker.given_up("r")

    assert 0.0 == breaker.wait("r", FIRST)


def test_a_registry_gets_the_rest_it_asks_for_within_limits():
    breaker = CircuitBreaker()
    breaker.asked_to_wait("short", 0.0, 0.0)
    breaker.asked_to_wait("fair", 12.0, 0.0)
    breaker.asked_to_wait("long", 1e9, 0.0)

    assert [1.0, 12.0, LONGEST] == [breaker.wait(host, 0.0) for host in ("short", "fair", "long")]


def test_only_so_many_hosts_are_remembered():
    breaker = CircuitBreaker()
    for number in range(MOST_HOSTS + 10):
        breaker.asked_to_wait(f"r{number}", 10.0, 0.0)

    assert MOST_HOSTS == breaker.open(0.0)
