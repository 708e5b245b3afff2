"""Flags, environment, file, defaults: who has it when several say something, and what does not go together."""

import json
import logging

import pytest

from lamina.model.errors import InputError
from lamina.services.extender.address import ListenAddress
from lamina.services.extender.configuration import (
    AgentEntry,
    PartialExtenderSettings,
    PrometheusEntry,
    TlsEntry,
    UsageEntry,
)
from lamina.services.extender.environment_variables import read_environment
from lamina.services.extender.log_level import LEVELS, LogLevel, apply_log_level
from lamina.services.extender.settings import ExtenderFlags, chosen_agents, merge_settings
from lamina.services.log_lines import Verbosity
from tests.unit.services.extender.agents import SAFE, all_agents

PROMETHEUS = PrometheusEntry(url="http://p:9090")
TLS = TlsEntry(cert_file="c", key_file="k", client_ca_file="ca", client_names=("me",))
ANY_NAME = TlsEntry(cert_file="c", key_file="k", client_ca_file="ca")
PAGES_TAKEN = "--pages: is the same address as --listen; choose another port"


def flags(agents="safe", **fields):
    return ExtenderFlags(
        agents=tuple(AgentEntry(name=name) for name in agents.split(",")) if agents else None, **fields
    )


def settled(one=None, variables=None, file=None):
    one, file = one or flags(), file or PartialExtenderSettings()
    environment = read_environment(variables or {}, chosen_agents(one, file, all_agents()))
    return merge_settings(one, environment, file, all_agents())


def refusal(one=None, variables=None, file=None):
    with pytest.raises(InputError) as caught:
        settled(one, variables, file)
    return str(caught.value)


def test_what_holds_if_nobody_says_anything():
    got = settled()

    assert ("127.0.0.1:5401", None, "sparse", "watch", None, None, True) == (
        str(got.address),
        got.endpoints,
        got.reply,
        got.state,
        got.tls,
        got.usage,
        got.registries,
    )
    assert (("my-scheduler",), LogLevel(0, logging.INFO), ()) == (
        got.scheduler_names,
        got.log_level,
        got.complaints,
    )
    assert {"SafeOverload": 90} == {
        name: args.utilization for name, args in got.arguments.items() if hasattr(args, "utilization")
    }


@pytest.mark.parametrize(
    ("flag", "port", "file", "expected"),
    [
        pytest.param(None, None, None, "127.0.0.1:5401", id="default"),
        pytest.param(None, None, "[::1]:1", "[::1]:1", id="file"),
        pytest.param(None, "2", None, "127.0.0.1:2", id="environment: the port alone"),
        pytest.param(None, "2", "[::1]:1", "[::1]:2", id="environment over file, which keeps the address"),
        pytest.param("localhost:3", "2", "[::1]:1", "localhost:3", id="flag over both"),
        pytest.param(None, " ", "[::1]:1", "[::1]:1", id="an empty variable is none"),
    ],
)
def test_where_it_listens(flag, port, file, expected):
    got = settled(flags(listen=flag), {} if port is None else {"HTTP_PORT": port}, PartialExtenderSettings(listen=file))

    assert expected == str(got.address)


@pytest.mark.parametrize(
    ("flag", "file", "expected"),
    [
        pytest.param(None, None, None, id="nowhere else"),
        pytest.param(None, "[::]:5411", "[::]:5411", id="file"),
        pytest.param("0.0.0.0:5412", None, "0.0.0.0:5412", id="flag"),
        pytest.param("127.0.0.1:0", "[::]:5411", "127.0.0.1:0", id="flag over file"),
    ],
)
@pytest.mark.parametrize(
    ("variables", "port"),
    [pytest.param({}, 5401, id="no variable"), pytest.param({"HTTP_PORT": "2"}, 2, id="HTTP_PORT is for questions")],
)
def test_where_the_pages_are_served_as_well(flag, file, expected, variables, port):
    """Open to everybody or not, it takes no certificate and is nothing to warn about."""
    got = settled(flags(pages=flag), variables, PartialExtenderSettings(pages=file))

    assert (expected, ()) == (None if got.endpoints is None else str(got.endpoints), got.complaints)
    assert ListenAddress(port=port) == got.address


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("5411", "'5411' is not ADDRESS:PORT, for example 127.0.0.1:5401", id="a port alone"),
        pytest.param(":5411", "':5411' is not ADDRESS:PORT, for example 127.0.0.1:5401", id="no address"),
        pytest.param("0.0.0.0", "'0.0.0.0' is not ADDRESS:PORT, for example 127.0.0.1:5401", id="no port"),
        pytest.param(
            "h:65536", "'h:65536' is not ADDRESS:PORT, for example 127.0.0.1:5401", id="a port beyond the last"
        ),
        pytest.param("", "'' is not ADDRESS:PORT, for example 127.0.0.1:5401", id="nothing"),
        pytest.param(":::5411", "':::5411'; put an IPv6 address in brackets, for example [::1]:5401", id="no brackets"),
    ],
)
def test_an_address_for_pages_that_is_none_is_one_clear_line(text, told):
    assert f"--pages: {told}" == refusal(flags(pages=text))


@pytest.mark.parametrize("text", ["http", "0", "65536", "-1", "80 81", "８０", "9" * 5000])
def test_a_port_that_is_none_is_one_clear_line(text):
    told = refusal(variables={"HTTP_PORT": text})

    assert told.startswith("HTTP_PORT: ")
    assert told.endswith(" is not a port; write a number from 1 to 65535")
    assert (1, True) == (len(told.splitlines()), len(told) < 150)


def test_a_port_of_the_environment_that_nobody_needs_may_be_none():
    """A Service called `http` sets the variable to an address, in every pod beside it."""
    got = settled(flags(listen="127.0.0.1:5402"), {"HTTP_PORT": "tcp://10.0.0.1:80"})

    assert "127.0.0.1:5402" == str(got.address)


def test_tls_without_anything_in_it_is_none():
    assert None is settled(file=PartialExtenderSettings(tls=TlsEntry())).tls


def test_certificates_on_the_command_line_win_over_going_without_in_the_file():
    tls = TlsEntry(cert_file="a", key_file="b", client_ca_file="c", client_names=("d",))
    got = settled(flags(tls=tls, listen="0.0.0.0:1"), {}, PartialExtenderSettings(insecure_http=True))

    assert (tls, ()) == (got.tls, got.complaints)


@pytest.mark.parametrize(
    ("verbosity", "variable", "file", "expected"),
    [
        pytest.param(None, None, None, LogLevel(0, logging.INFO), id="default"),
        pytest.param(None, None, "debug", LogLevel(4, logging.DEBUG), id="file"),
        pytest.param(None, "ALERT", "debug", LogLevel(0, logging.ERROR), id="environment over file"),
        pytest.param(2, "ALERT", "debug", LogLevel(2, logging.INFO), id="flag over both"),
        pytest.param(0, "TRACE", None, LogLevel(0, logging.INFO), id="-v 0 is something said"),
        pytest.param(4, None, None, LogLevel(4, logging.DEBUG), id="from -v 4 on everything is said"),
    ],
)
def test_how_much_is_said(verbosity, variable, file, expected):
    variables = {} if variable is None else {"LOG_LEVEL": variable}

    assert expected == settled(flags(verbosity=verbosity), variables, PartialExtenderSettings(log_level=file)).log_level


@pytest.mark.parametrize("name", LEVELS)
def test_a_level_is_known_in_any_case(name):
    expected = LEVELS[name]

    assert [(expected, ())] * 3 == [
        (got.log_level, got.complaints)
        for form in (name, name.lower(), name.title())
        for got in [settled(variables={"LOG_LEVEL": form})]
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            "LOUD",
            "LOG_LEVEL: 'LOUD' is not a log level; using INFO; choose from TRACE, DEBUG, INFO, WARNING, ERROR, ALERT",
            id="no such level",
        ),
        pytest.param(
            "",
            "LOG_LEVEL: is empty; using INFO; choose from TRACE, DEBUG, INFO, WARNING, ERROR, ALERT",
            id="empty",
        ),
    ],
)
def test_a_level_that_is_none_is_info_with_a_warning(text, told):
    got = settled(variables={"LOG_LEVEL": text}, file=PartialExtenderSettings(log_level="debug"))

    assert (LogLevel(), (told,)) == (got.log_level, got.complaints)


@pytest.mark.parametrize(
    ("written", "variable", "expected"),
    [
        pytest.param({}, "", (90, 30), id="defaults"),
        pytest.param({"utilization": 80, "percentile": 20}, "", (80, 20), id="file"),
        pytest.param({}, "70", (70, 30), id="environment"),
        pytest.param({"utilization": 80, "percentile": 20}, "70", (70, 20), id="environment over file, one by one"),
    ],
)
def test_arguments_of_plugins(written, variable, expected):
    file = PartialExtenderSettings(agents=(AgentEntry(name="safe", plugins={"SafeOverload": written}),))
    args = settled(variables={"SAFEUTILIZATION": variable}, file=file).arguments["SafeOverload"]

    assert expected == (args.utilization, args.percentile)


def test_arguments_that_do_not_go_together_across_both_are_told():
    file = PartialExtenderSettings(agents=(AgentEntry(name="safe", plugins={"SafeOverload": {"percentile": 60}}),))

    assert (
        "agent safe: arguments of SafeOverload are in conflict: utilization must not be below percentile; "
        "check the file and the environment"
    ) == refusal(variables={"SAFEUTILIZATION": "50"}, file=file)


def test_an_agents_complaints_are_passed_on():
    assert ("agent safe: SAFEUTILIZATION: 'x' is no number",) == settled(variables={"SAFEUTILIZATION": "x"}).complaints


def test_variables_of_agents_that_are_not_served_are_not_looked_at():
    assert () == settled(flags("foo"), {"SAFEUTILIZATION": "x"}).complaints


@pytest.mark.parametrize(
    ("one", "file", "names"),
    [
        pytest.param("layers,safe", None, ["layers", "safe"], id="flag"),
        pytest.param("", ["foo"], ["foo"], id="file"),
        pytest.param("layers", ["foo", "safe"], ["layers"], id="flag over file"),
    ],
)
def test_which_agents_are_served(one, file, names):
    told = PartialExtenderSettings(agents=None if file is None else tuple(AgentEntry(name=name) for name in file))

    assert names == [agent.name for agent in settled(flags(one), file=told).agents]


@pytest.mark.parametrize(
    ("one", "told"),
    [
        pytest.param(
            "",
            "lamina extender: no agent is chosen; set --agents to some of layers, safe, pigeon, congestion, foo",
            id="none",
        ),
        pytest.param(
            "save,pidgeon",
            "--agents: there is no agent 'save'; did you mean 'safe'?\n"
            "--agents: there is no agent 'pidgeon'; did you mean 'pigeon'?",
            id="nobody knows them",
        ),
        pytest.param("foo,safe,foo", "--agents: agent 'foo' is named twice", id="twice"),
    ],
)
def test_agents_that_cannot_be_served(one, told):
    assert told == refusal(flags(one))


def broken_agents():
    known = all_agents()
    known.broken["odd"] = "entry point 'odd' (odd:AGENT) of odd cannot be used: NameError: x: fix or uninstall it"
    return known


def test_a_broken_agent_that_nobody_wants_is_warned_about():
    got = merge_settings(flags("safe"), read_environment({}, []), PartialExtenderSettings(), broken_agents())

    assert tuple(broken_agents().broken.values()) == got.complaints


@pytest.mark.parametrize(
    ("one", "file"),
    [
        pytest.param(flags("safe,odd"), PartialExtenderSettings(), id="flag"),
        pytest.param(flags(""), PartialExtenderSettings(agents=(AgentEntry(name="odd"),)), id="file"),
    ],
)
def test_a_broken_agent_that_is_wanted_is_one_clear_line(one, file):
    with pytest.raises(InputError) as caught:
        merge_settings(one, read_environment({}, []), file, broken_agents())

    assert [broken_agents().broken["odd"]] == [mistake.message for mistake in caught.value.mistakes]


def test_flags_replace_what_the_file_says_field_by_field():
    file = PartialExtenderSettings(reply="full", state="body", registries="file.yaml", scheduler_names=("a",), tls=TLS)
    one = flags(reply="sparse", registries=False, scheduler_names=("b",), tls=TlsEntry(client_names=("you",)))
    got = settled(one, file=file)

    assert ("sparse", "body", False, ("b",)) == (got.reply, got.state, got.registries, got.scheduler_names)
    assert TlsEntry(cert_file="c", key_file="k", client_ca_file="ca", client_names=("you",)) == got.tls


@pytest.mark.parametrize(
    ("one", "file", "expected"),
    [
        pytest.param(None, UsageEntry(prometheus=PROMETHEUS), UsageEntry(prometheus=PROMETHEUS), id="file"),
        pytest.param(UsageEntry(prometheus=PROMETHEUS), None, UsageEntry(prometheus=PROMETHEUS), id="flag"),
        pytest.param(
            UsageEntry(prometheus=PROMETHEUS),
            UsageEntry(window="5m", prometheus=PrometheusEntry(url="http://q", user="u")),
            UsageEntry(window="5m", prometheus=PrometheusEntry(url="http://p:9090", user="u")),
            id="the flag's address, the file's window",
        ),
        pytest.param(
            UsageEntry(metrics_server=True),
            UsageEntry(every="10s", prometheus=PROMETHEUS),
            UsageEntry(every="10s", metrics_server=True),
            id="another source",
        ),
    ],
)
def test_where_usage_comes_from(one, file, expected):
    assert expected == settled(flags(usage=one), file=PartialExtenderSettings(usage=file)).usage


@pytest.mark.parametrize(
    ("one", "told"),
    [
        pytest.param(
            flags(listen="0.0.0.0:5401"),
            "--listen: 0.0.0.0:5401 is not a loopback address; set --tls-cert, --tls-key, --tls-client-ca, "
            "--client-name; or listen on 127.0.0.1:5401; or set --insecure-http",
            id="open to strangers",
        ),
        pytest.param(
            flags(listen="10.0.0.1:1", tls=TlsEntry(cert_file="c", key_file="k")),
            "--tls-cert: without --tls-client-ca any client could send requests; set --tls-client-ca",
            id="TLS that lets everybody in",
        ),
        pytest.param(
            flags(listen="0.0.0.0:1", tls=ANY_NAME),
            "--client-name: every client with a certificate of ca is accepted; list the accepted names",
            id="whoever was signed",
        ),
        pytest.param(flags(pages="127.0.0.1:5401"), PAGES_TAKEN, id="pages where questions are"),
        pytest.param(flags(pages="0.0.0.0:5401"), PAGES_TAKEN, id="pages everywhere, at the port of questions"),
        pytest.param(
            flags(listen="[::]:5401", pages="[::1]:5401", insecure_http=True),
            PAGES_TAKEN,
            id="questions everywhere, at the port of the pages",
        ),
        pytest.param(
            flags(scheduler_names=("a", "")),
            "--scheduler-name: '' is not a valid name; write 1 to 253 characters",
            id="no name",
        ),
        pytest.param(
            flags(tls=TlsEntry(client_names=("",))),
            "--client-name: '' is not a valid name; write 1 to 253 characters",
            id="a client without a name",
        ),
        pytest.param(flags(listen="x"), "--listen: 'x' is not ADDRESS:PORT, for example 127.0.0.1:5401", id="no port"),
        pytest.param(
            flags(tls=TlsEntry(cert_file="c")),
            "--tls-cert: has no key; set --tls-key\n--tls-cert: without --tls-client-ca any client could send requests; set --tls-client-ca",
            id="half a pair",
        ),
        pytest.param(
            flags(tls=TLS, insecure_http=True),
            "--insecure-http: cannot be combined with certificates; remove one of them",
            id="with certificates and without",
        ),
        pytest.param(
            flags(usage=UsageEntry(prometheus=PROMETHEUS, metrics_server=True)),
            "--metrics-server: cannot be combined with --prometheus; choose one source",
            id="two sources",
        ),
    ],
)
def test_what_does_not_go_together(one, told):
    assert told == refusal(one)


def test_a_certificate_by_flag_does_not_go_with_a_key_from_the_file():
    assert "--tls-cert: has no key; set --tls-key" == refusal(
        flags(tls=TlsEntry(cert_file="other")), file=PartialExtenderSettings(tls=TLS)
    )


@pytest.mark.parametrize(
    ("one", "warned"),
    [
        pytest.param(flags(listen="0.0.0.0:1", tls=TLS), (), id="known clients"),
        pytest.param(
            flags(tls=ANY_NAME),
            ("every client with a certificate of ca is accepted; list the accepted names with --client-name",),
            id="whoever was signed, on this machine",
        ),
        pytest.param(
            flags(listen="0.0.0.0:1", insecure_http=True),
            ("0.0.0.0:1 serves plain HTTP to every client; restrict it with a NetworkPolicy",),
            id="strangers, on purpose",
        ),
        pytest.param(flags(insecure_http=True), (), id="nobody from elsewhere can reach it"),
    ],
)
def test_what_is_only_unwise_is_warned_about(one, warned):
    assert warned == settled(one).complaints


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        pytest.param("127.0.0.1", True, id="usual"),
        pytest.param("127.8.9.1", True, id="any of the network"),
        pytest.param("::1", True, id="IPv6"),
        pytest.param("localhost", True, id="by name"),
        pytest.param("0.0.0.0", False, id="all"),
        pytest.param("::", False, id="all, IPv6"),
        pytest.param("localhost.example", False, id="a name that only begins so"),
    ],
)
def test_what_counts_as_this_machine(host, loopback):
    assert loopback == ListenAddress(host, 1).is_loopback


@pytest.fixture
def logging_as_it_was():
    """Leave logging as it was found."""
    root = logging.getLogger("lamina")
    before = root.handlers[:], root.propagate, root.level, Verbosity.level
    yield root
    root.handlers[:], root.propagate, Verbosity.level = before[0], before[1], before[3]
    root.setLevel(before[2])


@pytest.mark.parametrize(
    ("level", "told"),
    [
        pytest.param("TRACE", ["debug", "info", "warning", "error"], id="TRACE"),
        pytest.param("DEBUG", ["debug", "info", "warning", "error"], id="DEBUG"),
        pytest.param("INFO", ["info", "warning", "error"], id="INFO"),
        pytest.param("WARNING", ["warning", "error"], id="WARNING"),
        pytest.param("ERROR", ["error"], id="ERROR"),
        pytest.param("ALERT", ["error"], id="ALERT: only errors"),
    ],
)
def test_what_a_level_lets_through(logging_as_it_was, capsys, level, told):
    apply_log_level(LEVELS[level], "json")
    for severity in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("lamina.x").log(severity, "said")

    assert told == [json.loads(line)["level"] for line in capsys.readouterr().err.splitlines()]


def test_nothing_is_read_from_the_process_itself(monkeypatch):
    monkeypatch.setenv("HTTP_PORT", "nonsense")

    assert None is read_environment({}, [SAFE]).port
