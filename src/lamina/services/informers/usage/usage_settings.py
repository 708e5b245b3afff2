"""
Settings file of a usage source.

    window: 15m                          # range of mean and deviation
    every: 30s                           # polling interval
    prometheus:
      url: https://prometheus.monitoring:9090
      tokenFile: token                   # relative to this file; or user and passwordFile
      caFile: ca.pem
      matchers: cluster="a"              # if it has the nodes of several clusters
      step: 30s
      rate: 2m
      queries:                           # recording rules, in cores and bytes
        cpu: instance:node_cpu_cores:used
      forecast: {method: seasonal, horizon: 10m, season: 24h}

or, instead of `prometheus`, ``metricsServer: true``. `open_source` creates the source.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from lamina.clients.bounded_files import read_text
from lamina.clients.kube.transport import KubeClient
from lamina.clients.prometheus.client import LONGEST_QUERY, TIMEOUT, PrometheusClient
from lamina.clients.prometheus.server import PrometheusServer, checked_url
from lamina.model.conversion import convert
from lamina.model.duration import seconds
from lamina.model.errors import InputError, Mistake
from lamina.model.yaml_document import YamlDocument, read_yaml
from lamina.services.informers.usage import queries
from lamina.services.informers.usage.metrics_server import MetricsServerUsage
from lamina.services.informers.usage.prometheus import PrometheusUsage
from lamina.services.informers.usage.queries import Forecast, Queries, checked_matchers
from lamina.services.informers.usage.usage_poller import SWING
from lamina.services.informers.usage.usage_source import LEAST_SAMPLES, UsageSource

FILE_LIMIT: Final = 256 * 1024
MOST_STEPS: Final = 2_000
"""Most steps in a window: the server evaluates each of them for every node."""
LONGEST_STEP: Final = 120.0
"""Seconds. The last value may be one step old; a longer step would look like a wrong clock (`SKEW`)."""
STEPS: Final = f"must be {LEAST_SAMPLES} to {MOST_STEPS} times prometheus.step"
EVERY: Final = 30.0

Duration = Annotated[str | float, msgspec.Meta(extra={"reads": seconds})]
UrlText = Annotated[str, msgspec.Meta(extra={"reads": checked_url})]
Matchers = Annotated[str, msgspec.Meta(extra={"reads": checked_matchers})]


class ForecastEntry(msgspec.Struct, frozen=True, rename="camel"):
    """How to predict usage in the near future."""

    method: Literal["linear", "seasonal"] = "seasonal"
    horizon: Duration = queries.HORIZON
    season: Duration = queries.SEASON


class QueriesEntry(msgspec.Struct, frozen=True, rename="camel"):
    """Expressions that replace the default queries."""

    cpu: str = ""
    memory: str = ""


class PrometheusEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A Prometheus server, and the queries it gets."""

    url: UrlText
    token_file: str = ""
    user: str = ""
    password_file: str = ""
    ca_file: str = ""
    timeout: Duration = TIMEOUT
    matchers: Matchers | None = None
    step: Duration = queries.STEP
    rate: Duration = queries.RATE
    queries: QueriesEntry = QueriesEntry()
    forecast: ForecastEntry | None = None


class UsageSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The whole settings file."""

    window: Duration = queries.WINDOW
    every: Duration = EVERY
    prometheus: PrometheusEntry | None = None
    metrics_server: bool = False

    @property
    def queries(self) -> Queries:
        """The queries for Prometheus."""
        entry = self.prometheus
        if entry is None:
            return Queries(window=seconds(self.window))
        forecast = None
        if entry.forecast is not None:
            horizon, season = seconds(entry.forecast.horizon), seconds(entry.forecast.season)
            forecast = Forecast(method=entry.forecast.method, horizon=horizon, season=season)
        return Queries(
            window=seconds(self.window),
            step=seconds(entry.step),
            rate=seconds(entry.rate),
            matchers=entry.matchers or "",
            cpu=entry.queries.cpu,
            memory=entry.queries.memory,
            forecast=forecast,
        )


def load_settings(path: Path, every: float = EVERY) -> UsageSettings:
    """Read a settings file; *every* is the default polling interval. Raises InputError with every mistake in it."""
    document = read_yaml(read_text(path, FILE_LIMIT), str(path))
    settings = convert(document, UsageSettings)
    if "every" not in document.root.inside:
        settings = msgspec.structs.replace(settings, every=every)
    if mistakes := settings_problems(document, settings):
        raise InputError(mistakes)
    return beside(path, settings)


def open_client(settings: UsageSettings, user_agent: str = "lamina") -> PrometheusClient:
    """Create a client of the Prometheus server. Raises InputError."""
    entry = settings.prometheus
    if entry is None:
        raise InputError.one("usage", "no Prometheus server is set; add `prometheus` with its `url`")

    server = PrometheusServer(
        url=entry.url,
        token_file=Path(entry.token_file) if entry.token_file else None,
        user=entry.user,
        password_file=Path(entry.password_file) if entry.password_file else None,
        ca_file=Path(entry.ca_file) if entry.ca_file else None,
    )
    return PrometheusClient(server, timeout=seconds(entry.timeout), user_agent=user_agent)


def open_source(settings: UsageSettings, kube: Callable[[], KubeClient], user_agent: str = "lamina") -> UsageSource:
    """Create the source; *kube* is called only if that is the metrics API. Raises InputError."""
    if settings.metrics_server:
        return MetricsServerUsage(kube(), seconds(settings.window))
    return PrometheusUsage(open_client(settings, user_agent), settings.queries)


def beside(path: Path, settings: UsageSettings) -> UsageSettings:
    """Make file names relative to the folder of the settings file."""
    entry = settings.prometheus
    if entry is None:
        return settings
    named = {name: getattr(entry, name) for name in ("token_file", "password_file", "ca_file")}
    found = {name: str(path.parent / file) for name, file in named.items() if file}
    return msgspec.structs.replace(settings, prometheus=msgspec.structs.replace(entry, **found))


def too_seldom(window: float, every: float) -> str:
    """Return why the polling interval is too long for the window; empty if enough samples fit."""
    most = window / ((LEAST_SAMPLES - 1) * (1 + SWING))
    if every < most:
        return ""
    return f"is too long: {LEAST_SAMPLES} samples must fit into the window of {window:g} s; use less than {most:.0f} s"


def settings_problems(document: YamlDocument, settings: UsageSettings) -> list[Mistake]:
    """Return mistakes in the combination of fields that are valid one by one."""
    found: list[Mistake] = []

    def wrong(message: str, *path: str) -> None:
        found.append(Mistake(document.source, message, ".".join(path), document.line(path)))

    entry = settings.prometheus
    if (entry is None) == (not settings.metrics_server):
        wrong("set exactly one source: `prometheus` with its `url`, or `metricsServer: true`")
    if seconds(settings.every) < 1:
        wrong("is too short; use at least 1s", "every")
    if entry is None:
        if seconds(settings.window) <= 0:
            wrong("must be more than 0; write for example 15m", "window")
        elif problem := too_seldom(seconds(settings.window), seconds(settings.every)):
            wrong(problem, "every")
        return found
    window, step = seconds(settings.window), seconds(entry.step)
    for fits, message, *path in (
        (0 < LEAST_SAMPLES * step <= window <= MOST_STEPS * step, STEPS, "window"),
        (step <= LONGEST_STEP, f"must be at most {LONGEST_STEP:g} s", "prometheus", "step"),
        (seconds(entry.rate) > 0, "must be more than 0; write for example 2m", "prometheus", "rate"),
        (0 < seconds(entry.timeout) <= 120, "must be more than 0 and at most 2m", "prometheus", "timeout"),
    ):
        if not fits:
            wrong(message, *path)
    for name in ("cpu", "memory"):
        if len(getattr(entry.queries, name)) > LONGEST_QUERY // 2:
            wrong(f"too long; use at most {LONGEST_QUERY // 2} characters", "prometheus", "queries", name)
    if entry.forecast is not None:
        horizon, season = seconds(entry.forecast.horizon), seconds(entry.forecast.season)
        if not step <= horizon <= season:
            wrong("must be at least prometheus.step, and at most the season", "prometheus", "forecast", "horizon")
    return found
