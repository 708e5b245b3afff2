"""The schemas under deploy/ and the code that reads and writes the objects: the same limits, the same fields."""

from pathlib import Path
from typing import get_args

import msgspec
import pytest
import yaml

from lamina.qos.promise import QosApproach
from lamina.wire.custom_resources import image_layers, node_layers, node_layers_status, qos_history
from lamina.wire.custom_resources.api_group import GROUP, VERSION
from lamina.wire.oci.manifest import LAYER_LIMIT

CRDS = Path(__file__).resolve().parents[4] / "deploy" / "crds"


def definition(plural):
    return yaml.safe_load((CRDS / f"{plural}.yaml").read_text(encoding="utf-8"))


def schema(plural, part):
    version = definition(plural)["spec"]["versions"][0]
    return version["schema"]["openAPIV3Schema"]["properties"][part]


STATUS = schema("nodelayers", "status")["properties"]
SPEC = schema("imagelayers", "spec")["properties"]
IMAGE = STATUS["images"]["items"]["properties"]
CONTROLLERS = schema("qoshistories", "spec")["properties"]["controllers"]
CONTROLLER = CONTROLLERS["items"]["properties"]
POD = CONTROLLER["pods"]["items"]["properties"]


@pytest.mark.parametrize("module", [node_layers, image_layers, qos_history], ids=lambda module: module.KIND)
def test_kinds_are_called_as_in_the_code(module):
    spec = definition(module.PLURAL)["spec"]
    found = (spec["group"], spec["versions"][0]["name"], spec["names"]["kind"], spec["names"]["plural"])

    assert (GROUP, VERSION, module.KIND, module.PLURAL) == found
    assert f"{spec['names']['plural']}.{spec['group']}" == definition(module.PLURAL)["metadata"]["name"]


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        pytest.param(node_layers.IMAGE_LIMIT, STATUS["images"]["maxItems"], id="images"),
        pytest.param(node_layers.NAME_LIMIT, IMAGE["names"]["maxItems"], id="names"),
        pytest.param(node_layers.NAME_LENGTH, IMAGE["names"]["items"]["maxLength"], id="length of a name"),
        pytest.param(node_layers.PULL_LIMIT, STATUS["pulling"]["maxItems"], id="pulls"),
        pytest.param(node_layers.TEXT_LENGTH, STATUS["nodeUID"]["maxLength"], id="text"),
        pytest.param(
            node_layers_status.MESSAGE_LENGTH,
            STATUS["conditions"]["items"]["properties"]["message"]["maxLength"],
            id="message",
        ),
        pytest.param(image_layers.MANIFEST_LIMIT * 4 // 3, SPEC["manifest"]["maxLength"], id="manifest in base64"),
        pytest.param(LAYER_LIMIT, SPEC["diffIDs"]["maxItems"], id="diff ids"),
        pytest.param(LAYER_LIMIT, SPEC["unpackedSizes"]["maxItems"], id="unpacked sizes"),
        pytest.param(qos_history.MOST_CONTROLLERS, CONTROLLERS["maxItems"], id="controllers"),
        pytest.param(qos_history.MOST_PODS, CONTROLLER["pods"]["maxItems"], id="existing pods"),
        pytest.param(list(get_args(qos_history.State)), POD["state"]["enum"], id="states of pods"),
        pytest.param(list(QosApproach), CONTROLLER["approach"]["enum"], id="approaches"),
    ],
)
def test_limits_are_the_same_on_both_sides(limit, told):
    assert limit == told


def test_how_layers_are_reused_is_called_the_same_on_both_sides():
    assert STATUS["reuse"]["enum"] == list(node_layers.REUSES)


def test_what_weighs_is_added_up_alike_on_both_sides():
    rule = STATUS["images"]["x-kubernetes-validations"][0]["rule"]
    for number in (node_layers_status.IMAGE_WEIGHT, node_layers_status.NAME_WEIGHT, node_layers_status.IMAGES_WEIGHT):
        assert f" {number}" in f" {rule}".replace("(", " ").replace(")", " ")
    rule = schema("imagelayers", "spec")["x-kubernetes-validations"][1]["rule"]
    for number in (image_layers.DIFF_ID_WEIGHT, image_layers.SIZE_WEIGHT, image_layers.WEIGHT_LIMIT):
        assert f" {number}" in rule


@pytest.mark.parametrize(
    ("struct", "properties"),
    [
        pytest.param(node_layers.NodeLayersStatus, STATUS, id="status"),
        pytest.param(qos_history.StoredController, CONTROLLER, id="controller"),
        pytest.param(qos_history.StoredSlot, CONTROLLER["slots"]["items"]["properties"], id="slot"),
        pytest.param(qos_history.StoredPod, POD, id="existing pod"),
        pytest.param(qos_history.StoredTimes, POD["times"]["properties"], id="times"),
        pytest.param(node_layers.NodeLayersImage, IMAGE, id="image"),
        pytest.param(node_layers.NodeLayersPull, STATUS["pulling"]["items"]["properties"], id="pull"),
        pytest.param(node_layers.NodeLayersRuntime, STATUS["runtime"]["properties"], id="runtime"),
        pytest.param(node_layers.NodeLayersPlatform, STATUS["platform"]["properties"], id="platform"),
        pytest.param(
            node_layers_status.NodeLayersCondition, STATUS["conditions"]["items"]["properties"], id="condition"
        ),
        pytest.param(image_layers.ImageLayersSpec, SPEC, id="spec"),
        pytest.param(image_layers.ImageLayersPlatform, SPEC["platform"]["properties"], id="platform of an image"),
    ],
)
def test_every_field_that_is_read_is_in_the_schema(struct, properties):
    assert {field.encode_name for field in msgspec.structs.fields(struct)} <= set(properties)


def test_every_list_that_may_be_long_is_atomic():
    """Otherwise the API server would note for every single entry who wrote it."""
    lists = [STATUS["images"], IMAGE["names"], STATUS["pulling"], SPEC["diffIDs"], SPEC["unpackedSizes"]]

    assert {"atomic"} == {one["x-kubernetes-list-type"] for one in lists}
