"""What is printed for the stock scheduler: entries, weights, comments; and what is refused."""

import pytest
import yaml

from lamina.model.conversion import mistakes_in
from lamina.model.errors import InputError
from lamina.model.yaml_document import read_yaml
from lamina.scheduling.config.schema import KubeSchedulerConfiguration
from lamina.services.extender.kube_scheduler_config import ExtenderTarget, SchedulerTlsFiles, kube_configuration
from tests.unit.services.extender.agents import CONGESTION, FOO, LAYERS, PIGEON, SAFE

FIRST, SECOND = "127.0.0.1:5401", "127.0.0.1:5402"


def data(*served, **more):
    return yaml.safe_load(kube_configuration(served, **more))


def asked(*served):
    """For each entry: its port, what it filters and scores by, its weight, and whether it may be passed over."""
    return [
        (
            one["urlPrefix"].removeprefix("http://127.0.0.1:").removesuffix("/scheduler"),
            one.get("filterVerb", ""),
            one.get("prioritizeVerb", ""),
            one.get("weight", 0),
            one["ignorable"],
        )
        for one in data(*served)["extenders"]
    ]


RISK = ("5401", "predicates/safe-overload", "priorities/safe-overload", 1, False)


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        pytest.param(
            [ExtenderTarget((SAFE,))],
            [RISK, ("5401", "", "priorities/safe-balance", 10, True)],
            id="safe alone",
        ),
        pytest.param([ExtenderTarget((LAYERS,))], [("5401", "", "priorities/layers", 5, True)], id="layers alone"),
        pytest.param(
            [ExtenderTarget((PIGEON,))], [("5401", "", "priorities/pigeon-holing", 10, True)], id="pigeon alone"
        ),
        pytest.param(
            [ExtenderTarget((CONGESTION,))], [("5401", "", "priorities/congestion", 10, True)], id="congestion alone"
        ),
        pytest.param(
            [ExtenderTarget((FOO,))], [("5401", "predicates/foo", "priorities/foo", 10, False)], id="foo alone"
        ),
        pytest.param(
            [ExtenderTarget((SAFE,), FIRST), ExtenderTarget((CONGESTION,), SECOND)],
            [RISK, ("5401", "", "priorities/safe-balance", 1, True), ("5402", "", "priorities/congestion", 1, True)],
            id="safe and congestion, a process each",
        ),
        pytest.param(
            [ExtenderTarget((SAFE,), FIRST), ExtenderTarget((LAYERS,), SECOND)],
            [RISK, ("5401", "", "priorities/safe-balance", 1, True), ("5402", "", "priorities/layers", 5, True)],
            id="safe and layers, a process each",
        ),
        pytest.param(
            [ExtenderTarget((SAFE, LAYERS))],
            [RISK, ("5401", "", "priorities/safe-balance", 1, True), ("5401", "", "priorities/layers", 5, True)],
            id="safe and layers, one process",
        ),
    ],
)
def test_one_entry_for_each_verb(served, expected):
    assert expected == asked(*served)


def test_whoever_filters_is_asked_before_anybody_is_evicted_and_has_more_time():
    first, second = data(ExtenderTarget((SAFE,)))["extenders"]

    assert ("preemption/safe-overload", "2s") == (first["preemptVerb"], first["httpTimeout"])
    assert (False, "1s") == ("preemptVerb" in second, second["httpTimeout"])


def test_names_are_sent_and_nobody_else_binds():
    entries = data(ExtenderTarget((SAFE, LAYERS, FOO)))["extenders"]

    assert {(True, False)} == {(one["nodeCacheCapable"], "bindVerb" in one) for one in entries}


def test_another_answer_to_the_same_question_is_shown_and_not_asked():
    text = kube_configuration([ExtenderTarget((SAFE,))])

    assert "#   prioritizeVerb: priorities/low-risk-overcommitment\n" in text
    assert 2 == len(yaml.safe_load(text)["extenders"])


@pytest.mark.parametrize(
    ("agent", "share", "profile"),
    [
        pytest.param(
            LAYERS,
            100,
            {
                "schedulerName": "my-scheduler",
                "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}},
            },
            id="with layers: every node, and images are not counted twice",
        ),
        pytest.param(CONGESTION, None, {"schedulerName": "my-scheduler"}, id="without: as the scheduler has it"),
    ],
)
def test_how_many_nodes_are_looked_at(agent, share, profile):
    got = data(ExtenderTarget((agent,)))

    assert (share, [profile]) == (got.get("percentageOfNodesToScore"), got["profiles"])


def test_the_lease_is_not_the_one_of_the_clusters_own_scheduler():
    got = data(ExtenderTarget((FOO,)), scheduler_names=["other"], namespace="elsewhere")

    assert {"leaderElect": True, "resourceName": "other", "resourceNamespace": "elsewhere"} == got["leaderElection"]


@pytest.mark.parametrize(
    ("names", "profiles"),
    [
        pytest.param(["one"], ["one"], id="one name"),
        pytest.param(["one", "two"], ["one", "two"], id="two names"),
        pytest.param(["one", "two", "one"], ["one", "two"], id="a name twice, which kube-scheduler would refuse"),
    ],
)
def test_everybody_who_asks_has_a_profile_and_the_first_names_the_lease(names, profiles):
    got = data(ExtenderTarget((LAYERS,)), scheduler_names=names)

    assert profiles == [one["schedulerName"] for one in got["profiles"]]
    assert [["ImageLocality"]] * len(profiles) == [
        [off["name"] for off in one["plugins"]["score"]["disabled"]] for one in got["profiles"]
    ]
    assert "one" == got["leaderElection"]["resourceName"]


def test_https_with_everything_it_needs():
    certificates = SchedulerTlsFiles("/tls/ca.crt", "/tls/tls.crt", "/tls/tls.key", server_name="extender.example")
    entry = data(ExtenderTarget((LAYERS,), "10.96.0.20:5401", certificates, https=True))["extenders"][0]

    assert ("https://10.96.0.20:5401/scheduler", True) == (entry["urlPrefix"], entry["enableHTTPS"])
    assert {
        "serverName": "extender.example",
        "caFile": "/tls/ca.crt",
        "certFile": "/tls/tls.crt",
        "keyFile": "/tls/tls.key",
    } == entry["tlsConfig"]


@pytest.mark.parametrize("certificates", [None, SchedulerTlsFiles("")], ids=["none", "no authority among them"])
def test_https_without_an_authority_is_refused(certificates):
    """kube-scheduler would then verify nothing, and say nothing."""
    with pytest.raises(InputError) as caught:
        kube_configuration([ExtenderTarget((LAYERS,), "10.96.0.20:5401", certificates, https=True)])

    assert (
        "https://10.96.0.20:5401: without an authority kube-scheduler cannot verify the extender; "
        "give the one that signed it"
    ) == str(caught.value)


def test_a_port_that_is_not_known_yet_is_refused():
    with pytest.raises(InputError) as caught:
        kube_configuration([ExtenderTarget((LAYERS,), "127.0.0.1:0")])

    assert "127.0.0.1:0: port 0 means any free port; give the port that the scheduler calls" == str(caught.value)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        pytest.param("0.0.0.0:5401", True, id="everywhere"),
        pytest.param("[::]:5401", True, id="everywhere, IPv6"),
        pytest.param("[::1]:5401", False, id="an address"),
    ],
)
def test_where_one_listens_may_be_no_address_to_ask_at(address, told):
    text = kube_configuration([ExtenderTarget((LAYERS,), address)])

    assert told == ("Give the address of its Service with --asked-at" in text)
    assert f"http://{address}/scheduler" == yaml.safe_load(text)["extenders"][0]["urlPrefix"]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("max(5, 50 - nodes/125) %", id="the share of nodes"),
        pytest.param("opportunistic batching is off", id="batching"),
        pytest.param("Kubernetes 1.33 on it must be true", id="why names and not nodes"),
        pytest.param("while the extender is down, pods wait", id="why not ignorable"),
        pytest.param("is not synced yet does\n  # answer, and lets all nodes pass", id="and what that does not keep"),
        pytest.param("deploy/extender/rbac.yaml has my-scheduler in lamina-system", id="who may have the lease"),
    ],
)
def test_the_reasons_stand_beside(words):
    assert words in kube_configuration([ExtenderTarget((SAFE,))])


@pytest.mark.parametrize(
    "agents", [(SAFE,), (LAYERS, FOO), (SAFE, PIGEON, CONGESTION)], ids=["safe", "layers and foo", "three of them"]
)
def test_it_has_the_shape_of_a_configuration_of_kube_scheduler(agents):
    document = read_yaml(kube_configuration([ExtenderTarget(agents)]), "printed")

    assert [] == mistakes_in(document, KubeSchedulerConfiguration)


@pytest.mark.parametrize("name", ["true", "1e3", "null", "007"])
def test_a_name_that_yaml_would_take_for_something_else_stays_text(name):
    assert name == data(ExtenderTarget((FOO,)), scheduler_names=[name])["profiles"][0]["schedulerName"]


def test_a_file_with_a_strange_name_is_named_as_it_is():
    certificates = SchedulerTlsFiles('/tls/my "ca": #1.crt')
    entry = data(ExtenderTarget((LAYERS,), FIRST, certificates, https=True))["extenders"][0]

    assert '/tls/my "ca": #1.crt' == entry["tlsConfig"]["caFile"]


def test_the_same_choices_give_the_same_text():
    assert kube_configuration([ExtenderTarget((SAFE, LAYERS))]) == kube_configuration([ExtenderTarget((SAFE, LAYERS))])
