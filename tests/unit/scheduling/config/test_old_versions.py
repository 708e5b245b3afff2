"""Old versions: what v1 still has is read with a warning; what it no longer has is told with what replaces it."""

import pytest

from lamina.model.errors import InputError
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.config.old_versions import OLD_FIELDS, OLD_VERSIONS, REMOVED_PLUGINS
from lamina.scheduling.plugins.in_tree import registry

KNOWN = registry(entry_points=False)
V1 = "kubescheduler.config.k8s.io/v1"
KIND = "kind: KubeSchedulerConfiguration\n"
SCORING = """\
profiles:
- schedulerName: packing
  plugins:
    score:
      disabled: [{name: ImageLocality}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1beta2
      kind: NodeResourcesFitArgs
      scoringStrategy: {type: MostAllocated}
"""


def loaded(text: str) -> Configuration:
    return load(text, "c.yaml", KNOWN)


def warnings(text: str) -> list[str]:
    return [str(one) for one in loaded(text).warnings]


def mistakes(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        loaded(text)
    return [str(one).removeprefix("c.yaml:") for one in caught.value.mistakes]


@pytest.mark.parametrize(
    ("head", "want"),
    [
        pytest.param(
            KIND,
            f"c.yaml:1: apiVersion: is missing, so the file is read as {V1}; add `apiVersion: {V1}`",
            id="no version",
        ),
        pytest.param(
            f"apiVersion: {V1}beta1\n{KIND}",
            f"c.yaml:1: apiVersion: '{V1}beta1' is not read by Kubernetes 1.23 and later; change it to {V1}; "
            "the default weights are v1's: TaintToleration 3, NodeAffinity 2, InterPodAffinity 2 (were 1)",
            id="v1beta1",
        ),
        pytest.param(
            f"{KIND}apiVersion: {V1}beta2\n",
            f"c.yaml:2: apiVersion: '{V1}beta2' is not read by Kubernetes 1.28 and later; change it to {V1}; "
            "the default weights are v1's: TaintToleration 3, NodeAffinity 2, InterPodAffinity 2 (were 1)",
            id="v1beta2, below the kind",
        ),
        pytest.param(
            f"apiVersion: {V1}beta3\n{KIND}",
            f"c.yaml:1: apiVersion: '{V1}beta3' is not read by Kubernetes 1.29 and later; change it to {V1}",
            id="v1beta3",
        ),
    ],
)
def test_an_old_version_is_read_as_v1_with_one_warning(head, want):
    assert [want] == warnings(head + SCORING)
    assert loaded(f"apiVersion: {V1}\n{KIND}{SCORING}").config == loaded(head + SCORING).config


def test_v1_has_no_warning():
    assert [] == warnings(f"apiVersion: {V1}\n{KIND}{SCORING}")


def test_another_name_keeps_the_warnings():
    assert 1 == len(loaded(KIND).called("other").warnings)


@pytest.mark.parametrize("field", OLD_FIELDS)
@pytest.mark.parametrize(
    "head", ["", f"apiVersion: {V1}beta1\n", f"apiVersion: {V1}beta2\n"], ids=["none", "v1beta1", "v1beta2"]
)
def test_a_field_that_only_old_versions_have_is_ignored_and_told_with_what_replaces_it(head, field):
    text = f"{head}{KIND}{field}: 0.0.0.0:10251\n"
    _, about_the_field = warnings(text)

    assert (
        f"c.yaml:{text.count(chr(10))}: {field}: is ignored, v1 does not have it; "
        "set the address with `lamina scheduler --listen ADDRESS:PORT`"
    ) == about_the_field


@pytest.mark.parametrize("version", ["", "beta3"], ids=["v1", "v1beta3"])
@pytest.mark.parametrize("field", OLD_FIELDS)
def test_it_is_a_mistake_in_a_version_that_never_had_it(version, field):
    (mistake,) = mistakes(f"apiVersion: {V1}{version}\n{KIND}{field}: 0.0.0.0:10251\n")

    assert mistake.startswith(f"3: {field}: unknown field '{field}'")


@pytest.mark.parametrize("version", [V1, *OLD_VERSIONS])
@pytest.mark.parametrize("plugin", REMOVED_PLUGINS)
def test_a_plugin_that_was_removed_cannot_be_enabled_or_configured_and_is_told_with_what_replaces_it(version, plugin):
    """Without it pods would be placed differently, so a warning is not enough."""
    text = f"""\
apiVersion: {version}
{KIND}profiles:
- plugins:
    score:
      enabled:
      - name: {plugin}
  pluginConfig:
  - name: {plugin}
"""
    said = f"plugin '{plugin}' was removed from kube-scheduler; use {REMOVED_PLUGINS[plugin]}"

    assert [
        f"7: profiles[0].plugins.score.enabled[0].name: {said}",
        f"9: profiles[0].pluginConfig[0].name: {said}",
    ] == mistakes(text)


@pytest.mark.parametrize("plugin", [name for name in REMOVED_PLUGINS if name != "NodeResourcesLeastAllocated"])
def test_disabling_a_plugin_that_is_gone_changes_nothing(plugin):
    head = f"apiVersion: {V1}\n{KIND}"
    text = f"{head}profiles:\n- plugins: {{score: {{disabled: [{{name: {plugin}}}]}}}}\n"

    assert [] == warnings(text)


def test_disabling_what_another_plugin_does_now_names_that_plugin():
    text = f"apiVersion: {V1}beta1\n{KIND}profiles:\n- plugins: {{score: {{disabled: [{{name: NodeResourcesLeastAllocated}}]}}}}\n"

    assert [
        (
            "4: profiles[0].plugins.score.disabled[0].name: plugin 'NodeResourcesLeastAllocated' was removed from "
            "kube-scheduler; disable NodeResourcesFit under score instead"
        )
    ] == mistakes(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            f"apiversion: {V1}\n{KIND}",
            ["1: apiversion: unknown field 'apiversion'; did you mean 'apiVersion'?"],
            id="a misspelt version is not a missing one",
        ),
        pytest.param(
            f"apiVersion: {V1}beta1\n{KIND}podMaxBackofSeconds: 5\n",
            ["3: podMaxBackofSeconds: unknown field 'podMaxBackofSeconds'; did you mean 'podMaxBackoffSeconds'?"],
            id="unknown fields stay mistakes",
        ),
        pytest.param("podMaxBackoffSeconds: 5\n", ["1: kind: required field is missing"], id="no kind"),
    ],
)
def test_what_no_version_has_stays_a_mistake(text, want):
    assert want == mistakes(text)
