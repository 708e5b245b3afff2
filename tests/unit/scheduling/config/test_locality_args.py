"""Load: what can be set about LayerLocality and the formulas beside it, and what cannot."""

import pytest

from lamina.model.errors import InputError, WiringError
from lamina.scheduling.config.loader import load
from lamina.scheduling.plugins.in_tree import registry
from tests.unit.scheduling.bench import Bench

TEXT = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: {plugin}
    args: {args}
"""
TWO = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: one
  plugins: {{multiPoint: {{enabled: [{{name: LayerLocality, weight: 5}}]}}}}
- schedulerName: two
  plugins: {{multiPoint: {{enabled: [{{name: LayerLocality, weight: 5}}]}}}}
  pluginConfig:
  - {{name: LayerLocality, args: {args}}}
"""
KNOWN = registry(entry_points=False)


@pytest.mark.parametrize(
    ("plugin", "args", "want"),
    [
        pytest.param("LayerLocality", "{mode: layers}", ".mode: 'layers' is not allowed; ", id="no such mode"),
        pytest.param(
            "LayerLocality", "{knowledge: bits}", ".knowledge: 'bits' is not allowed; ", id="no such knowledge"
        ),
        pytest.param("LayerLocality", "{halfScore: 0}", ".halfScore: must be more than 0", id="half at nothing"),
        pytest.param("LayerLocality", "{halfScore: .nan}", ".halfScore: ", id="half at no number"),
        pytest.param("LayerLocality", "{neutral: -1}", ".neutral: must be at least 0", id="less than nothing"),
        pytest.param("LayerLocality", "{neutral: .inf}", ".neutral: ", id="for ever"),
        pytest.param("LayerLocality", "{bytePrice: -0.1}", ".bytePrice: must be at least 0", id="paid to download"),
        pytest.param("LayerLocality", "{bandwidth: 100MB}", ".bandwidth: expected a number", id="a unit"),
        pytest.param("LayerLocality", "{bandwidth: 1}", ".bandwidth: must be at least 10000", id="a byte a second"),
        pytest.param(
            "LayerLocality", "{unpackRate: 1e12}", ".unpackRate: must be at most ", id="quicker than any disk"
        ),
        pytest.param("LayerLocality", "{barrier: {width: 0}}", ".barrier.width: must be more than 0", id="a wall"),
        pytest.param(
            "LayerLocality", "{barrier: {begin: -1}}", ".barrier.begin: must be at least 0", id="below the mean"
        ),
        pytest.param("LayerLocality", "{barrier: {floor: 0}}", ".barrier.floor: must be more than 0", id="no floor"),
        pytest.param("LayerLocality", "{barrier: {from: 1}}", ".barrier.from: unknown field 'from'", id="misspelt"),
        pytest.param("LayerLocality", "{barrier: off}", ".barrier: expected a mapping", id="a word for none"),
        pytest.param("LayerLocality", "{replicaShare: 1.5}", ".replicaShare: must be at most 1", id="more than all"),
        pytest.param(
            "LayerLocality", "{byte_price: 1}", ".byte_price: unknown field 'byte_price'", id="Python's spelling"
        ),
        pytest.param("HotEdge", "{loadShare: 2}", ".loadShare: must be at most 1", id="more load than all"),
        pytest.param("LRScheduler", "{weight: 2}", ".weight: unknown field 'weight'", id="takes no arguments"),
        pytest.param("ImagePresence", "{weight: 2}", ".weight: unknown field 'weight'", id="takes none either"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(plugin, args, want):
    with pytest.raises(InputError) as caught:
        load(TEXT.format(plugin=plugin, args=args), "c.yaml", KNOWN)

    assert f"c.yaml:6: profiles[0].pluginConfig[0].args{want}" in str(caught.value)


@pytest.mark.parametrize(
    "args", ["{}", "{barrier: null}", "{barrier: {}}", "{mode: bytes, replicaShare: 0}", "{neutral: 0}"]
)
def test_what_makes_sense_is_taken(args):
    load(TEXT.format(plugin="LayerLocality", args=args), "c.yaml", KNOWN)


@pytest.mark.parametrize("args", ["{mode: bytes}", "{bandwidth: 125e6}", "{halfScore: 10, barrier: null}"])
def test_profiles_may_differ_in_how_they_rank(args):
    assert ["one", "two"] == list(load(TWO.format(args=args), "c.yaml", KNOWN).profiles(Bench().context))


@pytest.mark.parametrize("args", ["{bandwidth: 50e6}", "{unpackRate: 50e6}"])
def test_profiles_that_assume_different_rates_do_not_go_together(args):
    """They look at one cluster."""
    with pytest.raises(WiringError) as caught:
        load(TWO.format(args=args), "c.yaml", KNOWN).profiles(Bench().context)

    assert "must assume the same bandwidth and unpack rate" in str(caught.value)
