"""Resource types: built-in resources, their legacy views, and custom resources from their definitions."""

import pytest

from lamina.simulator.facade.api_errors import StatusError
from lamina.simulator.facade.gang_resources import gang_custom_resources
from lamina.simulator.facade.resource_type import version_priority
from lamina.simulator.facade.resource_types import MAX_CUSTOM_TYPES, ResourceTypes, ScalePaths, split_api_version


def definition(group="example.com", plural="widgets", kind="Widget", **spec):
    versions = [{"name": "v1", "served": True, "storage": True}]
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": versions,
            **spec,
        },
    }


def refusal(types, crd):
    with pytest.raises(StatusError) as error:
        types.add_custom(crd)
    assert error.value.code == 422
    return error.value.message


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        pytest.param(("", "v1", "pods"), "v1", id="core"),
        pytest.param(("apps", "v1", "replicasets"), "apps/v1", id="group"),
        pytest.param(("extensions", "v1beta1", "replicasets"), "apps/v1", id="extensions"),
        pytest.param(("extensions", "v1beta1", "ingresses"), "networking.k8s.io/v1", id="extensions, another group"),
        pytest.param(("apps", "v1beta1", "statefulsets"), "apps/v1", id="apps/v1beta1"),
        pytest.param(("apps", "v1beta2", "daemonsets"), "apps/v1", id="apps/v1beta2"),
        pytest.param(("policy", "v1beta1", "poddisruptionbudgets"), "policy/v1", id="policy"),
        pytest.param(("scheduling.k8s.io", "v1alpha1", "priorityclasses"), "scheduling.k8s.io/v1", id="scheduling"),
        pytest.param(("storage.k8s.io", "v1beta1", "csinodes"), "storage.k8s.io/v1", id="storage"),
        pytest.param(("resource.k8s.io", "v1beta2", "resourceclaims"), "resource.k8s.io/v1", id="resource"),
        pytest.param(("batch", "v1beta1", "cronjobs"), "batch/v1", id="batch"),
        pytest.param(("autoscaling", "v1", "horizontalpodautoscalers"), "autoscaling/v2", id="autoscaling"),
    ],
)
def test_a_path_names_the_type_that_stores_its_objects(path, stored):
    found = ResourceTypes().find(*path)

    assert found.api_version == stored


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(("", "v1", "deployments"), id="resource of another group"),
        pytest.param(("apps", "v1beta1", "daemonsets"), id="version that never had it"),
        pytest.param(("batch", "v1beta1", "jobs"), id="resource that was never beta there"),
        pytest.param(("example.com", "v1", "widgets"), id="unknown group"),
    ],
)
def test_a_path_that_no_server_had_names_no_type(path):
    assert ResourceTypes().find(*path) is None


def test_core_events_and_those_of_events_k8s_io_are_two_resources():
    types = ResourceTypes()

    assert types.find("", "v1", "events") != types.find("events.k8s.io", "v1", "events")
    assert types.find("events.k8s.io", "v1beta1", "events") is types.find("events.k8s.io", "v1", "events")


def test_a_kind_is_found_by_the_api_version_of_a_view():
    types = ResourceTypes()

    assert types.by_kind("extensions/v1beta1", "Deployment") is types.by_kind("apps/v1", "Deployment")
    assert types.by_kind("v1", "Deployment") is None


def test_without_legacy_only_current_versions_are_served():
    types = ResourceTypes(legacy=False)

    assert types.find("extensions", "v1beta1", "replicasets") is None
    assert {version for versions in types.served().values() for version in versions} == {"v1", "v2"}


def test_reviews_and_bindings_are_not_stored():
    types = ResourceTypes()

    assert sorted(each.resource for each in types.all() if not each.stored) == [
        "bindings",
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
        "tokenreviews",
    ]


def test_versions_are_sorted_as_kubernetes_sorts_them():
    mixed = ["v10", "v1", "v1beta2", "v2", "v1alpha2", "v2beta1", "v1alpha1", "v1beta1"]

    assert sorted(mixed, key=version_priority) == [
        *("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v2beta1", "v1", "v2", "v10"),
    ]
    assert version_priority("newest") < version_priority("v1alpha1")


@pytest.mark.parametrize(
    ("api_version", "parts"),
    [pytest.param("v1", ("", "v1"), id="core"), pytest.param("apps/v1", ("apps", "v1"), id="group")],
)
def test_an_api_version_is_split_into_group_and_version(api_version, parts):
    assert split_api_version(api_version) == parts


def test_a_definition_adds_a_resource_and_its_removal_takes_it_away():
    types = ResourceTypes()
    revision = types.revision

    added = types.add_custom(definition())

    assert types.find("example.com", "v1", "widgets") is added
    assert types.by_kind("example.com/v1", "Widget") is added
    assert (added.singular, added.list_kind, added.custom) == ("widget", "WidgetList", True)
    assert types.revision > revision
    assert types.remove_custom("widgets.example.com") is added
    assert types.remove_custom("widgets.example.com") is None
    assert types.find("example.com", "v1", "widgets") is None


def test_versions_that_are_not_served_have_no_path():
    types = ResourceTypes()
    versions = [
        {"name": "v1alpha1", "served": False, "storage": False},
        {"name": "v1beta1", "served": True, "storage": True},
        {"name": "v1", "served": True, "storage": False},
    ]

    added = types.add_custom(definition(versions=versions))

    assert added.versions == ("v1", "v1beta1")
    assert added.version == "v1beta1"
    assert types.find("example.com", "v1alpha1", "widgets") is None


def test_a_definition_of_v1beta1_has_its_version_and_subresources_outside_of_the_list():
    added = ResourceTypes().add_custom(
        definition(
            versions=None,
            version="v1alpha1",
            subresources={"status": {}, "scale": {"specReplicasPath": ".spec.size"}},
            additionalPrinterColumns=[{"name": "Size", "type": "integer", "JSONPath": ".spec.size"}],
        )
    )

    assert added.versions == ("v1alpha1",)
    assert added.subresources == ("scale", "status")
    assert added.scale == ScalePaths(spec_replicas=".spec.size")
    assert added.columns_of("v1alpha1")[0].json_path == ".spec.size"
    assert added.columns_of("v2") == ()


@pytest.mark.parametrize(
    ("crd", "words"),
    [
        pytest.param(definition(names={"kind": "Widget"}), "spec.names.plural: Required value", id="no plural"),
        pytest.param(definition(versions=[]), "spec.versions: Required value", id="no version"),
        pytest.param(definition(scope="World"), 'spec.scope: Unsupported value: "World"', id="unknown scope"),
        pytest.param({**definition(), "metadata": {"name": "w"}}, "must be spec.names.plural", id="wrong name"),
        pytest.param(
            definition(versions=[{"name": "v1", "served": True}]), "exactly one version marked", id="no storage version"
        ),
        pytest.param(
            definition(versions=[{"name": f"v{n}", "storage": n == 1} for n in range(1, 99)]),
            "must have at most 32 items",
            id="too many versions",
        ),
        pytest.param(definition("apps", "deployments"), '"deployments" is already served', id="built-in plural"),
        pytest.param(definition("apps", "x", "Deployment"), 'kind "Deployment" is already served', id="built-in kind"),
        pytest.param({}, "spec.group: Required value", id="empty"),
    ],
)
def test_a_definition_that_cannot_be_served_is_refused(crd, words):
    types = ResourceTypes()

    assert words in refusal(types, crd)
    assert not any(each.custom for each in types.all())


def test_a_definition_replaces_the_one_of_the_same_name():
    types = ResourceTypes()
    types.add_custom(definition())

    types.add_custom(definition(scope="Cluster"))

    assert not types.find("example.com", "v1", "widgets").namespaced


def test_the_number_of_custom_resources_is_limited():
    types = ResourceTypes()
    types.add_customs(definition(f"g{number}.example.com") for number in range(MAX_CUSTOM_TYPES))

    assert "delete some of them" in refusal(types, definition("one.more.example.com"))


def test_gang_schedulers_find_their_resources():
    types = ResourceTypes()
    types.add_customs(gang_custom_resources())
    expected = {
        ("scheduling.incubator.k8s.io", "v1alpha1", "podgroups"): (True, ()),
        ("scheduling.incubator.k8s.io", "v1alpha1", "queues"): (False, ()),
        ("scheduling.sigs.dev", "v1alpha2", "podgroups"): (True, ()),
        ("scheduling.sigs.dev", "v1alpha2", "queues"): (False, ()),
        # Volcano writes the status of a PodGroup with an ordinary update, the one of a Queue through the subresource.
        ("scheduling.volcano.sh", "v1beta1", "podgroups"): (True, ()),
        ("scheduling.volcano.sh", "v1beta1", "queues"): (False, ("status",)),
        ("topology.volcano.sh", "v1alpha1", "hypernodes"): (False, ("status",)),
        ("nodeinfo.volcano.sh", "v1alpha1", "numatopologies"): (False, ()),
        ("batch.volcano.sh", "v1alpha1", "jobs"): (True, ("status",)),
        ("bus.volcano.sh", "v1alpha1", "commands"): (True, ()),
        ("scheduling.x-k8s.io", "v1alpha1", "podgroups"): (True, ("status",)),
        ("lamina.dev", "v1alpha1", "nodelayers"): (False, ("status",)),
        ("lamina.dev", "v1alpha1", "imagelayers"): (False, ()),
    }

    found = {path: types.find(*path) for path in expected}

    assert {path: (each.namespaced, each.subresources) for path, each in found.items()} == expected
