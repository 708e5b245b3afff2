"""The mark `testbed` names what a test starts, so that it is built before the first test."""

from types import SimpleNamespace

import pytest

from testbed import fixtures


class MarkedTest:
    """A collected test, as far as the plugin looks at it."""

    def __init__(self, *marks, fixturenames=()):
        self.fixturenames = fixturenames
        self._marks = marks

    def iter_markers(self, name):
        assert name == "testbed"
        return iter(self._marks)


def mark(*parts, **keywords):
    """The mark, which pytest knows only in tests/integration."""
    return SimpleNamespace(args=parts, kwargs=keywords)


@pytest.mark.parametrize(
    ("test", "parts"),
    [
        pytest.param(MarkedTest(), [], id="no mark"),
        pytest.param(
            MarkedTest(mark("kube-scheduler", version="1.33.13")),
            [("etcd", "3.6.16"), ("kube-apiserver", "1.33.13"), ("kube-scheduler", "1.33.13")],
            id="a part of Kubernetes comes with its control plane",
        ),
        pytest.param(
            MarkedTest(mark("kube-scheduler", version="1.37.1", alone=True)),
            [("kube-scheduler", "1.37.1")],
            id="alone: without its control plane",
        ),
        pytest.param(
            MarkedTest(mark("kube-batch", "volcano")),
            [("kube-batch", "0.5.0"), ("volcano", "1.10.0")],
            id="other projects' parts are alone",
        ),
        pytest.param(
            MarkedTest(mark(version="1.30.14")),
            [("etcd", "3.6.16"), ("kube-apiserver", "1.30.14")],
            id="only a version",
        ),
        pytest.param(
            MarkedTest(mark("kwok"), fixturenames=("bed_factory",)),
            [("etcd", "3.6.16"), ("kube-apiserver", "1.36.3"), ("kubectl", "1.36.3"), ("kwok", "0.8.0")],
            id="a fixture brings the control plane",
        ),
    ],
)
def test_a_mark_names_what_is_built(test, parts):
    assert [(part.name, part.version) for part in fixtures.wanted(test)] == parts
