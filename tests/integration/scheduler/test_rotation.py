"""Credentials may change while pods are placed. The story `scheduler-credentials` takes longer and changes more."""

import pytest

from tests.integration.scheduler import rotation

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed()]


def test_tokens_may_be_replaced_and_revoked(bed):
    figures = rotation.tokens_rotated(bed, rotations=2, every=3.0, per_second=5.0)

    assert figures["refusals"] <= 2
