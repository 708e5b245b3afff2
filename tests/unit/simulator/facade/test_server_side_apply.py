"""Server-side apply: merged fields, their managers, conflicts, and fields that a manager gives up."""

import json
from typing import Any

import pytest

from lamina.simulator.facade.patches.json_values import MAX_DEPTH, copy_json
from lamina.simulator.facade.patches.managed_fields import MAX_UPDATE_MANAGERS
from lamina.simulator.facade.patches.patch_error import PatchError
from lamina.simulator.facade.patches.server_side_apply import apply_configuration, record_update

NOON = "2026-01-01T12:00:00Z"
LATER = "2026-01-01T13:00:00Z"


def deployment(replicas=None, containers=(), **more):
    spec: dict[str, Any] = {"template": {"spec": {"containers": list(containers)}}} if containers else {}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", **more}, "spec": spec}


def config_map(data, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **more}, "data": data}


def apply(live, applied, manager="one", force=False, now=NOON):
    before = copy_json([live, applied])
    result = apply_configuration(live, applied, manager=manager, force=force, now=now)
    assert [live, applied] == before
    return result


def plain(found):
    """Return an object without its managedFields."""
    return {**found, "metadata": {name: value for name, value in found["metadata"].items() if name != "managedFields"}}


def owned(found):
    """Return the fields of each manager."""
    return {entry["manager"]: entry["fieldsV1"] for entry in found["metadata"]["managedFields"]}


def test_the_first_apply_creates_the_object_and_owns_its_fields():
    web = {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}], "args": ["a"]}
    applied = deployment(2, [web], labels={"app": "x"}, finalizers=["f"])

    created = apply(None, applied)

    assert plain(created) == applied
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": NOON,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:finalizers": {'v:"f"': {}}, "f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:replicas": {},
                    "f:template": {
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"web"}': {
                                    ".": {},
                                    "f:args": {},
                                    "f:image": {},
                                    "f:name": {},
                                    "f:ports": {
                                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                                    },
                                }
                            }
                        }
                    },
                },
            },
        }
    ]


def test_a_second_manager_adds_fields_and_elements_without_taking_others():
    live = apply(None, deployment(2, [{"name": "web", "image": "web:1"}]), "one")

    both = apply(live, deployment(containers=[{"name": "log", "image": "log:1"}], labels={"a": "b"}), "two")

    assert both["spec"] == {
        "replicas": 2,
        "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}]}},
    }
    assert owned(both)["one"] == owned(live)["one"]
    assert both["metadata"]["labels"] == {"a": "b"}


def test_a_field_that_a_manager_no_longer_applies_is_removed():
    live = apply(None, config_map({"a": "1", "b": "2"}, labels={"x": "y"}))

    result = apply(live, config_map({"a": "1"}))

    assert plain(result) == config_map({"a": "1"})
    assert owned(result) == {"one": {"f:data": {"f:a": {}}}}


def test_an_element_that_a_manager_no_longer_applies_is_removed():
    web, log = {"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}
    live = apply(None, deployment(1, [web, log]))

    result = apply(live, deployment(1, [log]))

    assert result["spec"]["template"]["spec"]["containers"] == [log]


def test_a_field_that_another_manager_applies_too_stays():
    live = apply(apply(None, config_map({"a": "1", "b": "2"}), "one"), config_map({"b": "2"}), "two")

    result = apply(live, config_map({"a": "1"}), "one")

    assert result["data"] == {"a": "1", "b": "2"}
    assert owned(result) == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:b": {}}}}


def test_a_field_that_no_manager_applied_stays():
    live = apply(None, config_map({"a": "1"}))
    changed = record_update(live, {**live, "data": {"a": "1", "new": "2"}}, manager="other", now=LATER)

    assert apply(changed, config_map({}), "one")["data"] == {"new": "2"}


def test_metadata_of_the_server_stays_and_is_owned_by_no_manager():
    live = apply(None, config_map({"a": "1"}))
    live["metadata"] |= {"uid": "u", "resourceVersion": "5", "creationTimestamp": NOON, "namespace": "default"}

    result = apply(live, config_map({"a": "2"}))

    assert result["metadata"].keys() == live["metadata"].keys()
    assert owned(result) == {"one": {"f:data": {"f:a": {}}}}


def test_another_value_than_a_manager_applied_is_a_conflict():
    live = apply(None, deployment(2, [{"name": "web", "image": "web:1"}]), "one")

    with pytest.raises(PatchError) as caught:
        apply(live, deployment(3, [{"name": "web", "image": "web:2"}]), "two")

    assert (caught.value.status_code, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == (
        'Apply failed with 2 conflicts: conflicts with "one":\n'
        "- .spec.replicas\n"
        '- .spec.template.spec.containers[name="web"].image'
    )
    assert [cause._asdict() for cause in caught.value.causes] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": field}
        for field in (".spec.replicas", '.spec.template.spec.containers[name="web"].image')
    ]


def test_one_conflict_is_named_in_one_line():
    live = record_update(None, config_map({"a": "1"}), manager="editor", now=NOON)

    with pytest.raises(PatchError) as caught:
        apply(live, config_map({"a": "2"}))

    assert caught.value.message == (f'Apply failed with 1 conflict: conflict with "editor" using v1 at {NOON}: .data.a')


def test_a_forced_apply_takes_the_field():
    live = apply(None, config_map({"a": "1", "b": "1"}), "one")

    result = apply(live, config_map({"a": "2"}), "two", force=True)

    assert result["data"] == {"a": "2", "b": "1"}
    assert owned(result) == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_a_forced_apply_of_every_field_removes_the_other_manager():
    result = apply(apply(None, config_map({"a": "1"}), "one"), config_map({"a": "2"}), "two", force=True)

    assert list(owned(result)) == ["two"]


def test_the_same_value_is_shared_and_no_conflict():
    result = apply(apply(None, config_map({"a": "1"}), "one"), config_map({"a": "1"}), "two")

    assert owned(result) == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_the_time_of_an_entry_is_the_time_of_its_last_change():
    live = apply(None, config_map({"a": "1"}), now=NOON)

    same = apply(live, config_map({"a": "1"}), now=LATER)
    changed = apply(live, config_map({"a": "2"}), now=LATER)

    assert same == live
    assert [entry["time"] for entry in changed["metadata"]["managedFields"]] == [LATER]


def test_the_fields_of_an_object_without_managers_belong_to_the_time_before_the_first_apply():
    live = config_map({"a": "1", "b": "2"}, uid="u")

    with pytest.raises(PatchError, match=r'conflict with "before-first-apply" using v1 at .*: \.data\.a$'):
        apply(live, config_map({"a": "2"}))
    result = apply(live, config_map({"a": "2"}), force=True)

    assert result["data"] == {"a": "2", "b": "2"}
    assert owned(result) == {"before-first-apply": {"f:data": {".": {}, "f:b": {}}}, "one": {"f:data": {"f:a": {}}}}


def test_kubectl_takes_over_what_it_applied_on_the_client_side():
    last = config_map({"a": "1"})
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(last)}
    live = config_map({"a": "1", "b": "2"}, annotations=annotation)

    result = apply(live, config_map({"a": "2"}), "kubectl")

    assert result["data"] == {"a": "2", "b": "2"}
    assert json.loads(result["metadata"]["annotations"].popitem()[1]) == config_map({"a": "2"})
    with pytest.raises(PatchError, match=r"1 conflict: .*\.data\.b$"):
        apply(live, config_map({"a": "2", "b": "3"}), "kubectl")


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        pytest.param("abc", "cb", "acb", id="applied elements have their order"),
        pytest.param("ab", "xb", "axb", id="a new element comes before the shared one that it precedes"),
        pytest.param("abc", "ax", "abcx", id="a new element comes last"),
        pytest.param("abcd", "cxb", "acdxb", id="live elements stay between shared ones"),
        pytest.param("ab", "ab", "ab", id="the same"),
    ],
)
def test_a_merged_list_has_the_api_servers_order(live, applied, merged):
    first = apply(None, deployment(containers=[{"name": name, "image": "i"} for name in live]), "one")

    result = apply(first, deployment(containers=[{"name": name, "image": "i"} for name in applied]), "two")

    assert "".join(container["name"] for container in result["spec"]["template"]["spec"]["containers"]) == merged


def test_ports_are_told_apart_by_number_and_protocol():
    def service(*ports):
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": list(ports)}}

    live = apply(None, service({"port": 53, "name": "tcp"}), "one")
    result = apply(live, service({"port": 53, "protocol": "UDP", "name": "udp"}), "two")

    assert result["spec"]["ports"] == [{"port": 53, "name": "tcp"}, {"port": 53, "protocol": "UDP", "name": "udp"}]


def test_a_list_without_keys_belongs_to_one_manager():
    def pod(*tolerations):
        spec = {"tolerations": [{"key": key} for key in tolerations]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}

    live = apply(None, pod("a"), "one")

    with pytest.raises(PatchError, match=r"\.spec\.tolerations$"):
        apply(live, pod("a", "b"), "two")
    assert apply(live, pod("b"), "one")["spec"]["tolerations"] == [{"key": "b"}]


def test_a_custom_resource_is_merged_by_field():
    def queue(**spec):
        return {"apiVersion": "x.io/v1", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}

    live = apply(None, queue(weight=1, names=["a"], deep={"x": 1}), "one")
    result = apply(live, queue(deep={"y": 2}), "two")

    assert result["spec"] == {"weight": 1, "names": ["a"], "deep": {"x": 1, "y": 2}}


def test_a_repeated_element_of_the_live_object_stays():
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    live = deployment(containers=[{"name": "web", "env": env}])

    result = apply(live, deployment(containers=[{"name": "web", "image": "i"}]))

    assert result["spec"]["template"]["spec"]["containers"] == [{"name": "web", "env": env, "image": "i"}]


def test_nulls_are_not_applied():
    assert apply(None, config_map({"a": "1", "b": None}))["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("applied", "words"),
    [
        pytest.param({"kind": "Pod"}, "the applied configuration has no apiVersion", id="no version"),
        pytest.param({"apiVersion": "v1"}, "the applied configuration has no kind", id="no kind"),
        pytest.param(config_map({}, managedFields=[]), "metadata.managedFields must be nil", id="managedFields"),
        pytest.param(
            deployment(containers=[{"name": "a"}, {"name": "a"}]),
            '.spec.template.spec.containers: duplicate entries for key {"name":"a"}',
            id="two elements with one key",
        ),
        pytest.param(
            deployment(containers=["x"]), "may not have non-map elements: 'x'", id="element that is no mapping"
        ),
        pytest.param(
            deployment(containers=[{"image": "i"}]), "omits all key fields ['name']", id="element without a key"
        ),
        pytest.param(config_map({}, finalizers=[{}]), "which is no scalar", id="mapping in a list of scalars"),
    ],
)
def test_a_bad_configuration_is_refused_with_400(applied, words):
    with pytest.raises(PatchError) as caught:
        apply(None, applied)

    assert caught.value.status_code == 400
    assert words in caught.value.message


def test_a_configuration_may_not_nest_deeper_than_the_limit():
    value: Any = "x"
    for _ in range(MAX_DEPTH):
        value = {"a": value}

    with pytest.raises(PatchError, match="nested more than 64 levels"):
        apply(None, config_map(value))


def test_an_update_takes_the_fields_that_it_changes():
    live = apply(None, deployment(2, labels={"a": "b"}), "one")

    scaled = record_update(live, {**live, "spec": {"replicas": 5}}, manager="scaler", now=LATER)

    assert owned(scaled) == {
        "one": {"f:metadata": {"f:labels": {"f:a": {}}}},
        "scaler": {"f:spec": {"f:replicas": {}}},
    }
    with pytest.raises(PatchError, match=f'conflict with "scaler" using apps/v1 at {LATER}: .spec.replicas'):
        apply(scaled, deployment(2, labels={"a": "b"}), "one")


def test_an_update_that_removes_a_field_takes_it_from_its_manager():
    live = apply(None, config_map({"a": "1", "b": "2"}), "one")

    assert owned(record_update(live, {**live, "data": {"b": "2"}}, manager="m", now=LATER)) == {
        "one": {"f:data": {"f:b": {}}}
    }


def test_an_update_through_a_subresource_has_its_own_entry():
    live = record_update(None, config_map({"a": "1"}), manager="m", now=NOON)

    result = record_update(live, {**live, "status": {"x": 1}}, manager="m", now=LATER, subresource="status")

    assert [(entry["manager"], entry.get("subresource")) for entry in result["metadata"]["managedFields"]] == [
        ("m", None),
        ("m", "status"),
    ]


def test_an_object_without_managers_stays_untracked():
    live = config_map({"a": "1"})

    assert record_update(live, config_map({"a": "2"}), manager="m", now=NOON) == config_map({"a": "2"})


def test_the_oldest_updates_are_joined_if_there_are_too_many():
    live = record_update(None, config_map({"k0": "x"}), manager="m0", now=NOON)
    for number in range(1, MAX_UPDATE_MANAGERS + 5):
        data = {**live["data"], f"k{number}": "x"}
        now = f"2026-01-02T00:00:{number:02}Z"
        live = record_update(live, {**live, "data": data}, manager=f"m{number}", now=now)

    managers = owned(live)

    assert len(managers) == MAX_UPDATE_MANAGERS
    assert managers["ancient-changes"] == {"f:data": {".": {}, **{f"f:k{number}": {} for number in range(6)}}}
