"""Extenders in a configuration: which entries are valid, what the loop learns of them, and where they are refused."""

import pytest

from lamina.model.errors import InputError
from lamina.model.events import NodeSeen
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.contract.extender_chain import CalledExtender
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import a_node, a_pod
from lamina.testing.loop_harness import LoopHarness, first

KNOWN = registry(entry_points=False)
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def loaded(text: str) -> Configuration:
    return load(HEAD + text, "f", KNOWN)


def mistakes(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        loaded(text)
    return [str(mistake).removeprefix("f:") for mistake in caught.value.mistakes]


def entry(*lines: str) -> str:
    return "extenders:\n- urlPrefix: http://a\n" + "".join(f"  {line}\n" for line in lines)


def test_all_fields_of_an_extender_are_understood():
    text = entry(
        "filterVerb: filter",
        "preemptVerb: preempt",
        "prioritizeVerb: prioritize",
        "bindVerb: bind",
        "weight: 5",
        "enableHTTPS: true",
        "tlsConfig: {serverName: a, certFile: c, keyFile: k, caFile: ca, certData: Yw==, keyData: aw==, caData: YQ==}",
        "httpTimeout: 100ms",
        "nodeCacheCapable: true",
        "managedResources: [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/other}]",
        "ignorable: true",
    )

    assert (
        CalledExtender(
            name="http://a",
            filters=True,
            prioritizes=True,
            preempts=True,
            binds=True,
            weight=5,
            ignorable=True,
            managed=frozenset({"example.com/gpu", "example.com/other"}),
            timeout=0.1,
        ),
    ) == loaded(text).extenders


def test_extenders_of_the_same_url_have_different_names_and_a_timeout_of_zero_is_the_default():
    text = entry("httpTimeout: 0s") + "- urlPrefix: http://a/\n"

    assert [("http://a", 5.0), ("http://a (2)", 5.0)] == [(one.name, one.timeout) for one in loaded(text).extenders]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            entry("prioritizeVerb: p"),
            "4: extenders[0].weight: must be at least 1 with a prioritizeVerb, found 0",
            id="scores without a weight",
        ),
        pytest.param(
            entry("bindVerb: b") + "- urlPrefix: http://b\n  bindVerb: b\n",
            "3: extenders: only one extender can bind pods, found 2 with a bindVerb",
            id="two that bind",
        ),
        pytest.param(
            entry("managedResources:", "- name: cpu"),
            "6: extenders[0].managedResources[0].name: 'cpu' is not an extended resource; write for example "
            "example.com/gpu",
            id="a native resource",
        ),
        pytest.param(
            entry("managedResources:", "- name: a.b/c d"),
            "6: extenders[0].managedResources[0].name: 'a.b/c d' is not an extended resource; write for example "
            "example.com/gpu",
            id="a name with a space",
        ),
        pytest.param(
            entry("managedResources: [{name: a.b/c}]") + "- urlPrefix: http://b\n  managedResources: [{name: a.b/c}]\n",
            "7: extenders[1].managedResources[0].name: 'a.b/c' is managed by two extenders; remove one of the entries",
            id="a resource of two extenders",
        ),
        pytest.param(
            "extenders:\n- filterVerb: f\n", "4: extenders[0].urlPrefix: required field is missing", id="no URL"
        ),
        pytest.param(
            "extenders:\n- urlPrefix: 127.0.0.1:80\n",
            "4: extenders[0].urlPrefix: is not a usable URL; write for example http://127.0.0.1:8888/scheduler",
            id="a URL without a scheme",
        ),
        pytest.param(
            "extenders:\n- urlPrefix: http://a:99999\n",
            "4: extenders[0].urlPrefix: is not a usable URL; write for example http://127.0.0.1:8888/scheduler",
            id="a port that does not exist",
        ),
        pytest.param(
            "extenders:\n- urlPrefix: http://user:secret@a\n",
            "4: extenders[0].urlPrefix: contains a password; use a client certificate (tlsConfig) instead",
            id="a URL with a password",
        ),
        pytest.param(
            entry("filterVerb: a b"),
            "5: extenders[0].filterVerb: is not part of a URL; write for example filter",
            id="a verb with a space",
        ),
        pytest.param(
            entry("httpTimeout: soon"),
            "5: extenders[0].httpTimeout: 'soon' is not a duration; write for example 500ms, 10s, 5m or 1h",
            id="a timeout in words",
        ),
        pytest.param(
            entry("httpTimeout: -1s"),
            "5: extenders[0].httpTimeout: '-1s' is negative; write 0 or more",
            id="a negative timeout",
        ),
        pytest.param(
            entry("tlsConfig: {caData: '!'}"),
            "5: extenders[0].tlsConfig.caData: is not base64; encode the PEM text with base64, or name a file",
            id="a CA that is not base64",
        ),
        pytest.param(
            entry("tlsConfig: {insecure: true, caFile: ca}"),
            "5: extenders[0].tlsConfig.insecure: does not verify the server, so that a CA has no use; remove one of them",
            id="a CA and no verification",
        ),
        pytest.param(
            entry("tlsConfig: {certFile: c}"),
            "5: extenders[0].tlsConfig.keyFile: a client certificate needs its key; set keyFile or keyData",
            id="a certificate without its key",
        ),
        pytest.param(
            entry("tlsConfig: {keyData: aw==}"),
            "5: extenders[0].tlsConfig.certFile: a client key needs its certificate; set certFile or certData",
            id="a key without its certificate",
        ),
    ],
)
def test_a_mistake_in_an_extender_is_reported_with_its_path(text, want):
    assert [want] == mistakes(text)


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        pytest.param(["enableHTTPS: true", "tlsConfig: {caFile: ca}"], [], id="a CA"),
        pytest.param(
            ["enableHTTPS: true"],
            [
                (
                    "5: extenders[0].enableHTTPS: without tlsConfig.caFile or caData, the server's certificate is not verified, "
                    "as in kube-scheduler"
                )
            ],
            id="no CA",
        ),
        pytest.param(["preemptVerb: preempt"], [], id="a preempt verb"),
    ],
)
def test_what_the_author_should_know_is_a_warning(lines, want):
    assert want == [str(one).removeprefix("f:") for one in loaded(entry(*lines)).warnings]


@pytest.mark.parametrize(
    ("ignored", "placed"),
    [pytest.param("true", {"p": "n1"}, id="ignored"), pytest.param("false", {}, id="checked as well")],
)
def test_a_resource_that_the_scheduler_ignores_is_not_checked_by_noderesourcesfit(ignored, placed):
    """It replaces the plugin's own list, as upstream; its other arguments stay."""
    text = entry("filterVerb: f", f"managedResources: [{{name: example.com/gpu, ignoredByScheduler: {ignored}}}]")
    text += "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {ignoredResourceGroups: [other.com]}\n"
    harness = LoopHarness(Loop(loaded(text).profiles, first))

    harness.tell(NodeSeen(a_node("n1")))
    harness.see(a_pod("p", more={"example.com/gpu": 1, "other.com/x": 1}))

    assert placed == harness.bound


def test_a_configuration_with_extenders_is_refused_where_none_can_be_called():
    with pytest.raises(InputError) as caught:
        loaded(entry("filterVerb: f")).refuse_extenders("my.yaml", "a simulation")

    want = "my.yaml: extenders: a simulation calls no extenders, and would decide differently without them; remove the list"
    assert want == str(caught.value)


def test_a_configuration_without_extenders_is_refused_nowhere():
    configuration = loaded("extenders: []\n")

    assert configuration is configuration.refuse_extenders("f", "a simulation")
