"""The file that says where usage comes from: what it means, and every mistake with its line."""

import pytest

from lamina.model.errors import InputError
from lamina.services.informers.usage.metrics_server import MetricsServerUsage
from lamina.services.informers.usage.prometheus import PrometheusUsage
from lamina.services.informers.usage.queries import Forecast, Queries
from lamina.services.informers.usage.usage_settings import UsageSettings, load_settings, open_client, open_source
from tests.unit.services.fakes import ScriptedClient

WHOLE = """
window: 10m
every: 1m
prometheus:
  url: https://prometheus.monitoring:9090/
  tokenFile: token
  timeout: 5s
  matchers: cluster="a"
  step: 15s
  rate: 1m
  queries: {cpu: my:cores, memory: my:bytes}
  forecast: {method: linear, horizon: 5m}
"""


def load(tmp_path, text):
    path = tmp_path / "usage.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


async def test_everything_can_be_said(tmp_path):
    (tmp_path / "token").write_text("t")
    settings = load(tmp_path, WHOLE)

    assert (
        Queries(
            window=600.0,
            step=15.0,
            rate=60.0,
            matchers='cluster="a"',
            cpu="my:cores",
            memory="my:bytes",
            forecast=Forecast(method="linear", horizon=300.0, season=86_400.0),
        )
        == settings.queries
    )
    assert "1m" == settings.every
    client = open_client(settings)
    assert "prometheus.monitoring:9090" == client.host
    source = open_source(settings, lambda: pytest.fail("no API server is needed"))
    assert isinstance(source, PrometheusUsage)
    await source.close()


def test_little_has_to_be_said(tmp_path):
    settings = load(tmp_path, "prometheus: {url: 'http://p'}")

    assert Queries() == settings.queries
    assert 30.0 == settings.every
    assert None is settings.queries.forecast


@pytest.mark.parametrize(("text", "every"), [("", 60.0), ("every: 90s\n", "90s"), ("every: 30\n", 30.0)])
def test_how_often_is_what_the_file_says_or_else_what_is_usual_for_whoever_reads_it(tmp_path, text, every):
    (tmp_path / "usage.yaml").write_text(f"{text}prometheus: {{url: 'http://p'}}")

    assert every == load_settings(tmp_path / "usage.yaml", 60.0).every


def test_the_metrics_api_needs_the_clusters_client(tmp_path):
    settings = load(tmp_path, "metricsServer: true")

    assert isinstance(open_source(settings, ScriptedClient), MetricsServerUsage)
    with pytest.raises(InputError, match="no Prometheus server is set"):
        open_client(settings)
    assert 900.0 == UsageSettings().queries.window


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("{}", "set exactly one source", id="no source"),
        pytest.param("metricsServer: true\nprometheus: {url: 'http://p'}", "set exactly one source", id="two sources"),
        pytest.param("prometheus: {}", "url", id="no address"),
        pytest.param("prometheus: {url: p}", "prometheus.url: is not a usable URL", id="no good address"),
        pytest.param("prometheus: {url: 'http://p', tokenfile: x}", "did you mean 'tokenFile'", id="a typing error"),
        pytest.param("window: soon\nmetricsServer: true", "usage.yaml:1: window: 'soon' is not a duration", id="time"),
        pytest.param("window: 0\nmetricsServer: true", "window: must be more than 0", id="no window"),
        pytest.param("every: 0.1\nmetricsServer: true", "every: is too short", id="too often"),
        pytest.param(
            "every: 7m\nmetricsServer: true",
            # Three samples are two pauses apart, and a pause may be a tenth longer: 900 / 2.2.
            "every: is too long: 3 samples must fit into the window of 900 s; use less than 409 s",
            id="too seldom",
        ),
        pytest.param("window: 1m\nmetricsServer: true", "every: is too long", id="too short"),
        pytest.param(
            "prometheus: {url: 'http://p', step: 5m}", "prometheus.step: must be at most 120 s", id="long step"
        ),
        pytest.param("window: 1m\nprometheus: {url: 'http://p'}", "3 to 2000 times prometheus.step", id="two steps"),
        pytest.param("prometheus: {url: 'http://p', step: 0}", "3 to 2000 times prometheus.step", id="no step"),
        pytest.param("window: 24h\nprometheus: {url: 'http://p', step: 1s}", "3 to 2000 times", id="many steps"),
        pytest.param("prometheus: {url: 'http://p', rate: 0}", "prometheus.rate: must be more than 0", id="no rate"),
        pytest.param("prometheus: {url: 'http://p', timeout: 3m}", "at most 2m", id="no end"),
        pytest.param("prometheus: {url: 'http://p', matchers: a}", "not valid label matchers", id="matchers"),
        pytest.param(
            "prometheus: {url: 'http://p', forecast: {horizon: 2h, season: 1h}}", "at most the season", id="horizon"
        ),
        pytest.param(
            f"prometheus: {{url: 'http://p', queries: {{cpu: {'x' * 3000}}}}}",
            "too long; use at most 2048",
            id="a query",
        ),
    ],
)
def test_a_mistake_names_file_and_field(tmp_path, text, line):
    with pytest.raises(InputError) as refused:
        load(tmp_path, text)

    assert line in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("prometheus: http://u:{}@h", id="an address where a mapping belongs"),
        pytest.param("prometheus: 'http://u:a {}@h'", id="with a space"),
        pytest.param("prometheus: http://u:{}" + "x" * 100 + "@h", id="cut in the middle"),
        pytest.param("prometheus: {{url: 'http://u:{}@h'}}", id="in the address"),
        pytest.param("metricsServer: http://u:{}@h", id="where yes or no belongs"),
    ],
)
def test_a_password_in_an_address_is_never_said(tmp_path, text):
    with pytest.raises(InputError) as refused:
        load(tmp_path, text.format("hunter2"))

    assert "hunter2" not in str(refused.value) + repr(refused.value)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    with pytest.raises(InputError, match="cannot be read: no such file"):
        load_settings(tmp_path / "none.yaml")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        load_settings(tmp_path / "bytes")
    (tmp_path / "long").write_text("#" * 300_000)
    with pytest.raises(InputError, match="too large; at most 256 KiB"):
        load_settings(tmp_path / "long")
