"""Label and field selectors: what they match, and the API server's words for those that it refuses."""

import pytest

from lamina.simulator.facade.selectable_fields import custom_selectable_fields, selectable_fields
from lamina.simulator.facade.selectors import SelectorError, parse_field_selector, parse_label_selector

LABELS = {"app": "web", "tier": "a", "rank": "7", "in": "x", "example.com/zone": "z1", "empty": ""}
PODS = selectable_fields("", "pods")
POD = {
    "metadata": {"name": "p1", "namespace": "default"},
    "spec": {"nodeName": "n1", "schedulerName": "lamina"},
    "status": {"phase": "Running", "podIP": "10.0.0.1"},
}
NAME_FORM = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        pytest.param("", True, id="empty"),
        pytest.param("app=web", True, id="equal"),
        pytest.param("app==web", True, id="double equal"),
        pytest.param("app=db", False, id="another value"),
        pytest.param("gone=x", False, id="missing label"),
        pytest.param("app!=db", True, id="not equal"),
        pytest.param("gone!=x", True, id="not equal, missing label"),
        pytest.param("app in (db, web)", True, id="in"),
        pytest.param("app in (db)", False, id="not in the values"),
        pytest.param("app notin (db,cache)", True, id="notin"),
        pytest.param("gone notin (x)", True, id="notin, missing label"),
        pytest.param("app", True, id="exists"),
        pytest.param("gone", False, id="does not exist"),
        pytest.param("!gone", True, id="negation"),
        pytest.param("! app", False, id="negation with a space"),
        pytest.param("rank>6", True, id="greater"),
        pytest.param("rank<7", False, id="less"),
        pytest.param("app>1", False, id="greater, but the label is no number"),
        pytest.param("gone<1", False, id="less, missing label"),
        pytest.param("app=web,tier=a", True, id="and"),
        pytest.param("app=web,tier=b", False, id="and, one condition not met"),
        pytest.param(" \tapp = web ,\n tier ", True, id="white space"),
        pytest.param("empty=", True, id="empty value"),
        pytest.param("empty in ()", True, id="empty set"),
        pytest.param("empty in (a,)", True, id="empty place in a set"),
        pytest.param("in in (in,x)", True, id="a label with the name of an operator"),
        pytest.param("example.com/zone=z1", True, id="key with a prefix"),
    ],
)
def test_a_label_selector_matches_as_in_the_api_server(selector, matches):
    query = parse_label_selector(selector)

    assert query.matches({"metadata": {"labels": LABELS}}) is matches
    assert query.matches_labels(LABELS) is matches


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        pytest.param("app=web,", "found '', expected: identifier after ','", id="comma at the end"),
        pytest.param(",app", "found ',', expected: !, identifier, or 'end of string'", id="comma at the start"),
        pytest.param("a=b c", "found 'c', expected: ',' or 'end of string'", id="two values"),
        pytest.param("!a=b", "found '=', expected: ',' or 'end of string'", id="negation with a value"),
        pytest.param("!", "unable to parse requirement: found '', expected: identifier", id="negation of nothing"),
        pytest.param(
            "a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt", id="no operator"
        ),
        pytest.param("a in b", "unable to parse requirement: found 'b' expected: '('", id="no parenthesis"),
        pytest.param("a in (b", "unable to parse requirement: found '', expected: ',' or ')'", id="not closed"),
        pytest.param("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier", id="no value"),
        pytest.param(
            "a in (=",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
            id="operator in a set",
        ),
        pytest.param("a=(", "unable to parse requirement: found '(', expected: identifier", id="operator as a value"),
        pytest.param(
            "a@b=c", f'unable to parse requirement: <nil>: Invalid value: "a@b": name part {NAME_FORM}', id="bad key"
        ),
        pytest.param(
            "/a",
            'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty',
            id="empty prefix",
        ),
        pytest.param(
            "x" * 64,
            f'unable to parse requirement: <nil>: Invalid value: "{"x" * 64}": name part must be no more than 63 bytes',
            id="long key",
        ),
        pytest.param(
            "a=" + "x" * 64,
            f'unable to parse requirement: values[0][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
            id="long value",
        ),
        pytest.param(
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
            id="comparison with a word",
        ),
    ],
)
def test_a_bad_label_selector_is_refused_in_the_api_servers_words(selector, words):
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(selector)

    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("selector", "start"),
    [
        pytest.param(
            "a/b/c", 'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key', id="key"
        ),
        pytest.param(
            "UP/x", 'unable to parse requirement: <nil>: Invalid value: "UP/x": prefix part a low', id="prefix"
        ),
        pytest.param("a=_", 'unable to parse requirement: values[0][a]: Invalid value: "_": a valid label', id="value"),
        pytest.param(
            "a>_", "unable to parse requirement: [values[0]: Invalid value: \"_\": for 'Gt'", id="two problems"
        ),
    ],
)
def test_a_bad_label_is_refused_with_its_form(selector, start):
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(selector)

    assert str(caught.value).startswith(start)


def test_an_object_without_labels_has_none():
    assert parse_label_selector("!app").matches({"metadata": {"labels": None}})
    assert parse_label_selector("!app").matches({})


def test_a_label_query_names_its_exact_requirements():
    query = parse_label_selector("app=web,tier in (a),zone in (b,c),rank!=1")

    assert query.equals == {"app": "web", "tier": "a"}
    assert not query.everything
    assert parse_label_selector(" ").everything


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        pytest.param("", True, id="empty"),
        pytest.param("spec.nodeName=n1", True, id="equal"),
        pytest.param("spec.nodeName==n1", True, id="double equal"),
        pytest.param("spec.nodeName!=n1", False, id="not equal"),
        pytest.param("spec.host=n1", True, id="old name"),
        pytest.param("status.phase!=Succeeded,status.phase!=Failed", True, id="and"),
        pytest.param("status.nominatedNodeName=", True, id="missing text"),
        pytest.param("spec.hostNetwork=false", True, id="missing boolean"),
        pytest.param("metadata.name=p1,metadata.namespace=other", False, id="one condition not met"),
        pytest.param("status.podIPs=10.0.0.1", False, id="a label without a value"),
        pytest.param(",,status.phase=Running,", True, id="empty terms"),
    ],
)
def test_a_field_selector_matches_pods_as_in_the_api_server(selector, matches):
    assert parse_field_selector(selector, PODS).matches(POD) is matches


@pytest.mark.parametrize(
    ("group", "resource", "selector", "obj"),
    [
        pytest.param("", "nodes", "spec.unschedulable=false", {"spec": {}}, id="node that can be scheduled"),
        pytest.param("", "nodes", "spec.unschedulable=true", {"spec": {"unschedulable": True}}, id="cordoned node"),
        pytest.param("", "namespaces", "status.phase=Active", {"status": {"phase": "Active"}}, id="namespace"),
        pytest.param("", "secrets", "type=Opaque", {"type": "Opaque"}, id="secret"),
        pytest.param("", "replicationcontrollers", "status.replicas=0", {}, id="replication controller"),
        pytest.param("batch", "jobs", "status.successful=2", {"status": {"succeeded": 2}}, id="job"),
        pytest.param("batch", "jobs", "status.successful=0", {"status": {}}, id="job without a success"),
        pytest.param(
            "",
            "events",
            "involvedObject.name=p1,source=s,reason=R",
            {"involvedObject": {"name": "p1"}, "reportingComponent": "s", "reason": "R"},
            id="event, source is the reporting component",
        ),
        pytest.param("", "events", "source=s", {"source": {"component": "s"}, "reportingComponent": "r"}, id="event"),
        pytest.param(
            "events.k8s.io",
            "events",
            "regarding.name=p1,reportingController=s",
            {"regarding": {"name": "p1"}, "reportingController": "s"},
            id="event of events.k8s.io",
        ),
        pytest.param("apps", "deployments", "metadata.name=d", {"metadata": {"name": "d"}}, id="deployment"),
        pytest.param("resource.k8s.io", "resourceslices", "spec.driver=d", {"spec": {"driver": "d"}}, id="slice"),
    ],
)
def test_each_resource_has_its_fields(group, resource, selector, obj):
    assert parse_field_selector(selector, selectable_fields(group, resource)).matches(obj)


@pytest.mark.parametrize(
    ("group", "resource", "words"),
    [
        pytest.param("", "pods", "field label not supported: spec.image", id="pods"),
        pytest.param("batch", "jobs", 'field label "spec.image" not supported for Job', id="jobs"),
        pytest.param(
            "apps",
            "replicasets",
            '"spec.image" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="resource without a list of its own",
        ),
        pytest.param(
            "resource.k8s.io",
            "resourceslices",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.image",
            id="resource slices",
        ),
    ],
)
def test_an_unknown_field_is_refused_in_the_resources_words(group, resource, words):
    with pytest.raises(SelectorError) as caught:
        parse_field_selector("spec.image=x", selectable_fields(group, resource))

    assert str(caught.value) == words


def test_a_custom_resource_has_the_fields_that_its_definition_selects():
    fields = custom_selectable_fields(namespaced=False, json_paths=[".spec.color.name"])

    assert parse_field_selector("spec.color.name=red", fields).matches({"spec": {"color": {"name": "red"}}})
    with pytest.raises(SelectorError, match=r"^field label not supported: metadata\.namespace$"):
        parse_field_selector("metadata.namespace=x", fields)


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        pytest.param(r"metadata.name=a\,b", "a,b", id="comma"),
        pytest.param(r"metadata.name=a\=b", "a=b", id="equals sign"),
        pytest.param(r"metadata.name=a\\", "a\\", id="backslash"),
    ],
)
def test_a_value_may_hold_escaped_characters(selector, name):
    assert parse_field_selector(selector, PODS).equals == {"metadata.name": name}


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        pytest.param("a", "invalid selector: 'a'; can't understand 'a'", id="no operator"),
        pytest.param(r"a=\x", r"invalid field selector: invalid escape sequence: \x", id="unknown escape"),
        pytest.param("a=b\\", "invalid field selector: invalid escape sequence: \\", id="escape at the end"),
        pytest.param("a=b=c", "invalid field selector: unescaped character in value: 61", id="two operators"),
    ],
)
def test_a_bad_field_selector_is_refused_in_the_api_servers_words(selector, words):
    with pytest.raises(SelectorError) as caught:
        parse_field_selector(selector, PODS)

    assert str(caught.value) == words


def test_a_field_query_names_its_exact_requirements_by_the_fields_name():
    query = parse_field_selector("spec.host=n1,status.phase!=Failed,metadata.name=p1", PODS)

    assert query.equals == {"spec.nodeName": "n1", "metadata.name": "p1"}
    assert not query.everything
    assert parse_field_selector("", PODS).everything


def test_an_object_of_another_form_reads_as_empty():
    assert parse_field_selector("spec.nodeName=", PODS).matches({"spec": "text", "status": None})
