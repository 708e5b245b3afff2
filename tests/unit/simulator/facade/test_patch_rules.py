"""The table of merge rules: it can be read, and holds the facts that schedulers depend on."""

import pytest

from lamina.simulator.facade.patches.merge_rules import FieldRule, field_rules, type_of
from lamina.simulator.facade.patches.type_entries import TYPE_ENTRIES


def rule(api_version, kind, path):
    """Follow a path from a kind to the rule of its last field."""
    type_name, found = type_of(api_version, kind), FieldRule()
    for name in path.split("."):
        found = field_rules(type_name).get(name, FieldRule())
        type_name = found.child
    return found


def test_every_entry_can_be_read_and_every_type_exists():
    for type_name in TYPE_ENTRIES:
        children = {each.child for each in field_rules(type_name).values() if each.child}

        assert children <= TYPE_ENTRIES.keys(), type_name


def test_every_type_is_used():
    children = {each.child for type_name in TYPE_ENTRIES for each in field_rules(type_name).values()}
    kinds = {type_name for type_name, entries in TYPE_ENTRIES.items() if "metadata>ObjectMeta" in entries}

    assert TYPE_ENTRIES.keys() - children - kinds == set()


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "merge_key", "list_keys"),
    [
        pytest.param("v1", "Pod", "spec.containers", "name", ("name",), id="containers"),
        pytest.param("v1", "Pod", "spec.initContainers", "name", ("name",), id="init containers"),
        pytest.param("v1", "Pod", "spec.ephemeralContainers", "name", ("name",), id="ephemeral containers"),
        pytest.param(
            "v1", "Pod", "spec.containers.ports", "containerPort", ("containerPort", "protocol"), id="container ports"
        ),
        pytest.param("v1", "Pod", "spec.containers.env", "name", ("name",), id="env"),
        pytest.param("v1", "Pod", "spec.containers.volumeMounts", "mountPath", ("mountPath",), id="volume mounts"),
        pytest.param("v1", "Pod", "spec.containers.volumeDevices", "devicePath", ("devicePath",), id="volume devices"),
        pytest.param("v1", "Pod", "spec.containers.resources.claims", None, ("name",), id="claims of a container"),
        pytest.param("v1", "Pod", "spec.containers.args", None, None, id="args"),
        pytest.param("v1", "Pod", "spec.volumes", "name", ("name",), id="volumes"),
        pytest.param("v1", "Pod", "spec.imagePullSecrets", "name", ("name",), id="image pull secrets"),
        pytest.param("v1", "Pod", "spec.hostAliases", "ip", ("ip",), id="host aliases"),
        pytest.param("v1", "Pod", "spec.tolerations", None, None, id="tolerations"),
        pytest.param("v1", "Pod", "spec.schedulingGates", "name", ("name",), id="scheduling gates"),
        pytest.param("v1", "Pod", "spec.resourceClaims", "name", ("name",), id="resource claims"),
        pytest.param(
            "v1",
            "Pod",
            "spec.topologySpreadConstraints",
            "topologyKey",
            ("topologyKey", "whenUnsatisfiable"),
            id="spread constraints",
        ),
        pytest.param("v1", "Pod", "status.conditions", "type", ("type",), id="pod conditions"),
        pytest.param("v1", "Pod", "status.podIPs", "ip", ("ip",), id="pod addresses"),
        pytest.param("v1", "Pod", "status.hostIPs", "ip", None, id="host addresses"),
        pytest.param("v1", "Pod", "status.containerStatuses", None, None, id="container statuses"),
        pytest.param("v1", "Pod", "metadata.ownerReferences", "uid", ("uid",), id="owner references"),
        pytest.param("v1", "Pod", "metadata.finalizers", "", (), id="finalizers"),
        pytest.param("v1", "Node", "spec.taints", None, None, id="taints"),
        pytest.param("v1", "Node", "status.addresses", "type", ("type",), id="node addresses"),
        pytest.param("v1", "Node", "status.conditions", "type", ("type",), id="node conditions"),
        pytest.param("v1", "Node", "status.images", None, None, id="node images"),
        pytest.param("v1", "Service", "spec.ports", "port", ("port", "protocol"), id="service ports"),
        pytest.param("v1", "ServiceAccount", "secrets", "name", ("name",), id="secrets of a service account"),
        pytest.param("batch/v1", "Job", "status.conditions", "type", None, id="job conditions"),
        pytest.param("apps/v1", "Deployment", "spec.template.spec.containers", "name", ("name",), id="pod template"),
        pytest.param(
            "batch/v1",
            "CronJob",
            "spec.jobTemplate.spec.template.spec.containers",
            "name",
            ("name",),
            id="pod template of a cron job",
        ),
        pytest.param("v1", "ConfigMap", "metadata.finalizers", "", (), id="kind without rules of its own"),
        pytest.param("x.io/v1", "Pod", "spec.containers", None, None, id="custom resource with a known name"),
        pytest.param("x.io/v1", "Pod", "metadata.finalizers", "", (), id="metadata of a custom resource"),
    ],
)
def test_a_list_is_merged_by_its_keys(api_version, kind, path, merge_key, list_keys):
    found = rule(api_version, kind, path)

    assert (found.merge_key, found.list_keys) == (merge_key, list_keys)


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        pytest.param("v1", "Pod", "spec.nodeSelector", id="node selector"),
        pytest.param("apps/v1", "Deployment", "spec.selector", id="label selector"),
        pytest.param("v1", "Event", "involvedObject", id="object reference"),
        pytest.param("events.k8s.io/v1", "Event", "regarding", id="object reference of events.k8s.io"),
        pytest.param("v1", "Pod", "spec.containers.env.valueFrom.fieldRef", id="field reference"),
    ],
)
def test_server_side_apply_treats_some_mappings_as_one_value(api_version, kind, path):
    assert rule(api_version, kind, path).atomic


def test_only_the_selector_of_a_disruption_budget_is_replaced_by_strategic_merge_patches():
    replaced = [name for name in TYPE_ENTRIES for each in field_rules(name).values() if each.replaced]

    assert replaced == ["PodDisruptionBudgetSpec"]
