"""How many events one object may have."""

from lamina.clients.kube.quota import Allowance, Quota


def test_an_object_has_a_burst_and_then_one_every_five_minutes():
    """25 at once; in the next hour one each 300 s: 12."""
    quota = Quota(Allowance())

    assert 25 == sum(quota.allows("pod", 0.0) for _ in range(100))
    assert 12 == sum(quota.allows("pod", float(second)) for second in range(1, 3601))


def test_objects_do_not_share():
    quota = Quota(Allowance(burst=1))

    assert [True, True, False] == [quota.allows(name, 0.0) for name in ("a", "b", "a")]


def test_a_burst_is_whole_again_after_enough_time():
    quota = Quota(Allowance(burst=3, interval=10.0))
    taken = sum(quota.allows("pod", 0.0) for _ in range(9))

    assert (3, 3) == (taken, sum(quota.allows("pod", 30.0) for _ in range(9)))


def test_only_so_many_objects_are_remembered():
    quota = Quota(Allowance(burst=1, objects=10))
    for number in range(1000):
        quota.allows(str(number), 0.0)

    assert 10 == len(quota._full_at)
    assert not quota.allows("999", 0.0)
