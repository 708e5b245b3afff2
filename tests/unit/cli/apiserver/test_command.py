"""`lamina apiserver`: how it says no; nothing is served here."""

import pytest

from lamina.cli.apiserver.command import apiserver
from lamina.cli.apiserver.epoch_option import read_epoch
from lamina.model.errors import InputError


def run(*words: str) -> None:
    apiserver.main(list(words), standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("none.yaml",), "none.yaml: there is no such file", id="no such scenario"),
        pytest.param(
            ("examples/founding/scenario.yaml", "--nodes", "3"),
            "--nodes: not together with examples/founding/scenario.yaml, which has nodes of its own; use one of them",
            id="a scenario and nodes",
        ),
        pytest.param(
            ("--data", "x"), "--data: is for the imports of a SCENARIO; name one, or omit --data", id="data alone"
        ),
        pytest.param(
            ("--real-time", "my.yaml"),
            "--real-time: 'my.yaml' is not a number; write --real-time=10, or put SCENARIO before --real-time",
            id="a scenario behind --real-time",
        ),
        pytest.param(("--real-time=0",), "--real-time: 0 is not above 0 and at most 1,000,000; try 10", id="no factor"),
        pytest.param(("--real-time=nan",), "--real-time: nan is not above 0 and at most 1,000,000; try 10", id="NaN"),
        pytest.param(
            ("--real-time", "--manual"),
            "--real-time: not together with --manual: both say how time passes; use one of them",
            id="two times",
        ),
        pytest.param(("--quiet", "0"), "--quiet: 0 is not above 0 and at most 60s; try 200ms", id="no quiet"),
        pytest.param(
            ("--epoch", "soon"),
            "--epoch: 'soon' is neither now nor a time; write for example 2026-01-01T00:00:00Z",
            id="no time",
        ),
        pytest.param(
            ("--service-account", "x"),
            "--service-account: needs --tls: programs in pods connect with TLS only; add --tls",
            id="a service account without TLS",
        ),
        pytest.param(
            ("--kubeconfig", "/nowhere/file"),
            "/nowhere/.file",
            id="a folder that does not exist",
        ),
    ],
)
def test_a_mistake_gets_one_line(words, said):
    with pytest.raises(InputError) as raised:
        run(*words)
    assert 1 == len(raised.value.mistakes)
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("", 1_767_225_600.0, id="the default"),
        pytest.param("1970-01-02", 86_400.0, id="a date"),
        pytest.param("1970-01-01T01:00:00", 3_600.0, id="without a zone: UTC"),
        pytest.param("1970-01-01T01:00:00Z", 3_600.0, id="UTC"),
        pytest.param("1970-01-01T01:00:00+01:00", 0.0, id="another zone"),
    ],
)
def test_an_epoch_is_a_date_or_a_time(text, seconds):
    assert seconds == read_epoch(text)


@pytest.mark.parametrize("text", ["1969-12-31", "2300-01-01", "2026-13-01"])
def test_an_epoch_out_of_range_is_a_mistake(text):
    with pytest.raises(InputError, match="--epoch"):
        read_epoch(text)
