"""Laws of the extender's settings: whatever is written, it is understood or told about, and what is printed is YAML."""

import contextlib
from collections.abc import Callable

import yaml
from hypothesis import given
from hypothesis import strategies as st

from lamina.model.errors import InputError
from lamina.scheduling.contract.scheduling_agent import SchedulingAgentRegistry
from lamina.scheduling.plugins.agents.safe import AGENT as REAL_SAFE
from lamina.services.extender.address import ListenAddress, parse_address
from lamina.services.extender.configuration import AgentEntry, PartialExtenderSettings, read_configuration
from lamina.services.extender.environment_variables import read_environment
from lamina.services.extender.kube_scheduler_config import ExtenderTarget, SchedulerTlsFiles, kube_configuration
from lamina.services.extender.settings import ExtenderFlags, merge_settings
from tests.unit.services.extender.agents import LAYERS, SAFE, all_agents

HEAD = "apiVersion: lamina.dev/v1alpha1\nkind: ExtenderConfiguration\n"
WORDS = st.sampled_from(["safe", "layers", "SafeOverload", "utilization", "127.0.0.1:80", "INFO", "sparse", "1m", "x"])
SCALARS = WORDS | st.none() | st.booleans() | st.integers(-5, 200) | st.floats(allow_nan=True) | st.text(max_size=8)
KEYS = st.sampled_from(
    [
        "listen",
        "agents",
        "name",
        "plugins",
        "SafeOverload",
        "utilization",
        "reply",
        "state",
        "tls",
        "certFile",
        "keyFile",
        "clientCAFile",
        "clientNames",
        "usage",
        "prometheus",
        "url",
        "window",
        "every",
        "metricsServer",
        "registries",
        "schedulerNames",
        "logLevel",
        "insecureHTTP",
    ]
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF, exclude_characters="\x7f\x85"), min_size=1)
HOSTS = st.sampled_from(["127.0.0.1", "localhost", "::1", "::", "0.0.0.0", "extender.example"])


def refusal(reads: Callable[[], object]) -> InputError | None:
    """How somebody is told off; None when there is nothing to tell."""
    try:
        reads()
    except InputError as error:
        return error
    return None


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_whatever_is_written_is_understood_or_told_about(fields):
    text = HEAD + (yaml.safe_dump(fields, allow_unicode=True) if fields else "")
    told = refusal(lambda: read_configuration(text, "extender.yaml", all_agents()))

    assert told is None or told.mistakes
    assert [] == [one for one in (told.mistakes if told else ()) if one.line < 0 or "\n" in str(one)]


@given(HOSTS, st.integers(0, 65_535))
def test_an_address_is_read_as_it_is_written(host, port):
    assert ListenAddress(host, port) == parse_address(str(ListenAddress(host, port)))


@given(st.text(max_size=40))
def test_text_is_an_address_or_refused_in_words(text):
    with contextlib.suppress(ValueError):
        address = parse_address(text)
        assert address == parse_address(str(address))


@given(st.dictionaries(st.sampled_from(["HTTP_PORT", "LOG_LEVEL", "SAFEUTILIZATION"]), st.text(max_size=12)))
def test_an_environment_is_settled_or_refused_in_one_line(variables):
    environment = read_environment(variables, [REAL_SAFE])
    told = refusal(
        lambda: merge_settings(
            ExtenderFlags(agents=(AgentEntry(name="safe"),)),
            environment,
            PartialExtenderSettings(),
            SchedulingAgentRegistry(REAL_SAFE),
        )
    )

    assert told is None or str(told).startswith("HTTP_PORT: ")
    assert told is None or 1 == len(str(told).splitlines())


@given(PRINTABLE, PRINTABLE, PRINTABLE)
def test_names_of_any_kind_come_out_of_what_is_printed_as_they_went_in(scheduler, namespace, ca):
    served = ExtenderTarget((SAFE, LAYERS), "127.0.0.1:5401", SchedulerTlsFiles(ca), https=True)
    got = yaml.safe_load(kube_configuration([served], [scheduler], namespace=namespace))

    assert (scheduler, namespace) == (got["profiles"][0]["schedulerName"], got["leaderElection"]["resourceNamespace"])
    assert {ca} == {one["tlsConfig"]["caFile"] for one in got["extenders"]}
