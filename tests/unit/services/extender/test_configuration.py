"""The extender's configuration file: what can be said in it, and how mistakes are told."""

import pytest

from lamina.clients.bounded_files import FILE_LIMIT
from lamina.model.errors import InputError
from lamina.services.extender.configuration import (
    AgentEntry,
    ExtenderConfiguration,
    PrometheusEntry,
    TlsEntry,
    UsageEntry,
    load_configuration,
)
from tests.unit.services.extender.agents import all_agents

HEAD = "apiVersion: lamina.dev/v1alpha1\nkind: ExtenderConfiguration\n"


def written(tmp_path, text, head=HEAD):
    path = tmp_path / "extender.yaml"
    path.write_text(head + text, encoding="utf-8")
    return path


def loaded(tmp_path, text):
    return load_configuration(written(tmp_path, text), all_agents())


def mistakes(tmp_path, text, head=HEAD):
    with pytest.raises(InputError) as caught:
        load_configuration(written(tmp_path, text, head), all_agents())
    return [str(mistake).removeprefix(f"{tmp_path}/") for mistake in caught.value.mistakes]


def said(**fields):
    return ExtenderConfiguration(api_version="lamina.dev/v1alpha1", kind="ExtenderConfiguration", **fields)


def test_everything_that_can_be_said(tmp_path):
    text = """
listen: "[::1]:5401"
pages: 0.0.0.0:5411
agents:
- name: safe
  plugins:
    SafeOverload: {utilization: 85}
- {name: layers}
reply: full
state: body
tls:
  certFile: server.pem
  keyFile: /etc/keys/server.key
  clientCAFile: clients.pem
  clientNames: [kube-scheduler]
insecureHTTP: false
usage:
  window: 10m
  every: 15s
  prometheus: {url: "https://prometheus.example/metrics/", tokenFile: token}
registries: registries.yaml
schedulerNames: [my-scheduler, other]
logLevel: warning
"""

    expected = said(
        listen="[::1]:5401",
        pages="0.0.0.0:5411",
        agents=(AgentEntry(name="safe", plugins={"SafeOverload": {"utilization": 85}}), AgentEntry(name="layers")),
        reply="full",
        state="body",
        tls=TlsEntry(
            cert_file=str(tmp_path / "server.pem"),
            key_file="/etc/keys/server.key",
            client_ca_file=str(tmp_path / "clients.pem"),
            client_names=("kube-scheduler",),
        ),
        insecure_http=False,
        usage=UsageEntry(
            window="10m",
            every="15s",
            prometheus=PrometheusEntry(url="https://prometheus.example/metrics/", token_file=str(tmp_path / "token")),
        ),
        registries=str(tmp_path / "registries.yaml"),
        scheduler_names=("my-scheduler", "other"),
        log_level="warning",
    )
    assert expected == loaded(tmp_path, text)


def test_nothing_has_to_be_said(tmp_path):
    assert said() == loaded(tmp_path, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("registries: false\n", said(registries=False), id="no registry is asked"),
        pytest.param(
            "usage: {metricsServer: true}\n",
            said(usage=UsageEntry(metrics_server=True)),
            id="the cluster's own metrics",
        ),
        pytest.param("agents: [{name: foo}]\n", said(agents=(AgentEntry(name="foo"),)), id="an agent as it comes"),
    ],
)
def test_short_forms(tmp_path, text, expected):
    assert expected == loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            "listn: 127.0.0.1:80\n",
            ["extender.yaml:3: listn: unknown field 'listn'; did you mean 'listen'?"],
            id="a misspelt field",
        ),
        pytest.param(
            "listen: 5401\n",
            ["extender.yaml:3: listen: expected text or nothing, found the number 5401; put it in quotes"],
            id="a number for an address",
        ),
        pytest.param(
            "listen: '5401'\n",
            ["extender.yaml:3: listen: '5401' is not ADDRESS:PORT, for example 127.0.0.1:5401"],
            id="a port alone",
        ),
        pytest.param(
            "listen: ::1:5401\n",
            ["extender.yaml:3: listen: '::1:5401'; put an IPv6 address in brackets, for example [::1]:5401"],
            id="an IPv6 address without brackets",
        ),
        pytest.param(
            "listen: 127.0.0.1:5401\npages: 5411\n",
            ["extender.yaml:4: pages: expected text or nothing, found the number 5411; put it in quotes"],
            id="a number for the pages",
        ),
        pytest.param(
            "pages: 0.0.0.0\nlisten: nowhere\n",
            [
                "extender.yaml:3: pages: '0.0.0.0' is not ADDRESS:PORT, for example 127.0.0.1:5401",
                "extender.yaml:4: listen: 'nowhere' is not ADDRESS:PORT, for example 127.0.0.1:5401",
            ],
            id="pages and questions without a port",
        ),
        pytest.param(
            "page: 0.0.0.0:5411\n",
            ["extender.yaml:3: page: unknown field 'page'; did you mean 'pages'?"],
            id="pages misspelt",
        ),
        pytest.param(
            "agents:\n- name: save\n- name: foo\n",
            ["extender.yaml:4: agents[0].name: there is no agent 'save'; did you mean 'safe'?"],
            id="an agent nobody knows",
        ),
        pytest.param(
            "agents:\n- name: foo\n- name: foo\n",
            ["extender.yaml:5: agents[1].name: agent 'foo' has an entry already, agents[0]; merge them"],
            id="an agent twice",
        ),
        pytest.param(
            "agents: []\n",
            ["extender.yaml:3: agents: needs at least one agent; choose from layers, safe, pigeon, congestion, foo"],
            id="no agent",
        ),
        pytest.param(
            "agents:\n- name: safe\n  plugins:\n    SafeOverlord: {}\n",
            [
                (
                    "extender.yaml:6: agents[0].plugins.SafeOverlord: agent 'safe' has no plugin 'SafeOverlord'; "
                    "did you mean 'SafeOverload'?"
                )
            ],
            id="a plugin the agent does not have",
        ),
        pytest.param(
            "agents:\n- name: safe\n  plugins:\n    SafeOverload:\n      utilisation: 5\n      percentile: 101\n",
            [
                (
                    "extender.yaml:7: agents[0].plugins.SafeOverload.utilisation: unknown field 'utilisation'; "
                    "did you mean 'utilization'?"
                ),
                "extender.yaml:8: agents[0].plugins.SafeOverload.percentile: must be at most 100, found 101",
            ],
            id="arguments that are wrong",
        ),
        pytest.param(
            "agents:\n- name: safe\n  plugins:\n    SafeOverload: {utilization: 20}\n",
            ["extender.yaml:6: agents[0].plugins.SafeOverload: utilization must not be below percentile"],
            id="arguments that are wrong together",
        ),
        pytest.param(
            "usage: {}\n",
            ["extender.yaml:3: usage: set exactly one source: `prometheus` with its `url`, or `metricsServer: true`"],
            id="no source of usage",
        ),
        pytest.param(
            "usage:\n  prometheus: {url: 'http://p:9090'}\n  metricsServer: true\n",
            ["extender.yaml:3: usage: set exactly one source: `prometheus` with its `url`, or `metricsServer: true`"],
            id="two sources of usage",
        ),
        pytest.param(
            "usage: {every: soon, prometheus: {rate: 1m}}\n",
            [
                "extender.yaml:3: usage.every: 'soon' is not a duration; write for example 500ms, 10s, 5m or 1h",
                "extender.yaml:3: usage.prometheus.url: required field is missing",
            ],
            id="a Prometheus nobody could ask",
        ),
        pytest.param(
            "usage:\n  every: 0s\n  prometheus:\n    url: http://p:9090\n    rate: 0s\n",
            [
                "extender.yaml:4: usage.every: is too short; use at least 1s",
                "extender.yaml:7: usage.prometheus.rate: must be more than 0; write for example 2m",
            ],
            id="times that do not fit",
        ),
        pytest.param(
            "usage: {prometheus: {url: 'http://me:secret@p:9090'}}\n",
            [
                (
                    "extender.yaml:3: usage.prometheus.url: contains a password; "
                    "name the user and a file with the password instead"
                )
            ],
            id="a password in an address, which is not repeated",
        ),
        pytest.param(
            "tls: {keyFile: k, clientNames: [a]}\n",
            [
                "extender.yaml:3: tls.keyFile: has no certificate; set certFile",
                "extender.yaml:3: tls.clientNames: client names need an authority that verifies them; set clientCAFile",
            ],
            id="half of what TLS needs",
        ),
        pytest.param(
            "tls: {certFile: c, keyFile: k, clientCaFile: x}\n",
            ["extender.yaml:3: tls.clientCaFile: unknown field 'clientCaFile'; did you mean 'clientCAFile'?"],
            id="another case",
        ),
        pytest.param(
            "reply: short\nlogLevel: verbose\nschedulerNames: []\n",
            [
                "extender.yaml:3: reply: 'short' is not allowed; choose from best, full, sparse",
                "extender.yaml:4: logLevel: 'verbose' is not a log level; choose from TRACE, DEBUG, INFO, WARNING, ERROR, ALERT",
                "extender.yaml:5: schedulerNames: needs at least one name; leave the field out for the default",
            ],
            id="several at once, by line",
        ),
    ],
)
def test_mistakes_are_told_with_their_lines(tmp_path, text, told):
    assert told == mistakes(tmp_path, text)


def test_an_agent_that_is_broken_is_told_with_the_line_that_names_it(tmp_path):
    known = all_agents()
    known.broken["odd"] = "entry point 'odd' (odd:AGENT) of odd cannot be used: NameError: x: fix or uninstall it"
    path = written(tmp_path, "agents: [{name: odd}]\n")
    with pytest.raises(InputError) as caught:
        load_configuration(path, known)

    assert f"{path}:3: agents[0].name: {known.broken['odd']}" == str(caught.value)


def test_another_kind_is_refused(tmp_path):
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

    assert [
        "extender.yaml:1: apiVersion: 'kubescheduler.config.k8s.io/v1' is not allowed; choose from lamina.dev/v1alpha1",
        "extender.yaml:2: kind: 'KubeSchedulerConfiguration' is not allowed; choose from ExtenderConfiguration",
    ] == mistakes(tmp_path, "", head)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b"\xff\xfe", "is not UTF-8 text; is this the right file?", id="no text"),
        pytest.param(b"#" * (FILE_LIMIT + 1), "too large; at most 1024 KiB are read", id="too large"),
        pytest.param(None, "cannot be read: no such file or directory", id="not there"),
    ],
)
def test_a_file_that_is_none(tmp_path, content, told):
    path = tmp_path / "extender.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_configuration(path, all_agents())

    assert f"{path}: {told}" == str(caught.value)


@pytest.mark.parametrize("text", ["agents: 5\n", "agents: [5]\n", "tls: 1\n", "usage: x\n", "- a\n"])
def test_what_has_the_wrong_shape_is_a_mistake_and_no_accident(tmp_path, text):
    assert mistakes(tmp_path, text, "")
