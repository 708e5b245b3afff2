"""
Laws of configurations: a damaged file gives an InputError whose mistakes name their place, and never another exception.

Valid files with every field are mutated: as data (wrong types, huge numbers, unknown and duplicate names, deep nesting,
empty lists) and as text (duplicate lines, tabs, anchors, tags, merge keys, cuts).
"""

import copy
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from lamina.model.errors import InputError
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.config.named_profiles import NAMED
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.services.scheduler.recordings import configuration_text
from tests.unit.scheduling.config.test_understood import EVERYTHING, HEAD

pytestmark = pytest.mark.slow

KNOWN = registry(entry_points=False)
EXTENDERS = """\
extenders:
- urlPrefix: https://127.0.0.1:8888/scheduler
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  bindVerb: bind
  weight: 5
  enableHTTPS: true
  tlsConfig: {insecure: false, serverName: a, certFile: /c, keyFile: /k, caFile: /ca, caData: YQ==}
  httpTimeout: 5s
  nodeCacheCapable: true
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
  ignorable: true
- urlPrefix: http://b
"""
SHAPE = """\
profiles:
- schedulerName: a
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 3}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
- schedulerName: b
"""
TEXTS = [
    HEAD + EVERYTHING.replace("extenders: []\n", EXTENDERS),
    HEAD + SHAPE,
    HEAD.replace("/v1\n", "/v1beta2\n") + "healthzBindAddress: 0.0.0.0:1\n" + SHAPE,
    *(text for _, (_, text) in sorted(NAMED.items())),
]
DOCUMENTS = [yaml.safe_load(text) for text in TEXTS]

deep: Any = 0
for _ in range(60):
    deep = [deep]

hostile = st.sampled_from(
    [
        *(
            None,
            True,
            "",
            " ",
            "*",
            "\x7f",
            "a\nb",
            "é" * 300,
            "${HOME}",
            "../../etc/passwd",
            "NodeResourcesFit",
            "Pod",
        ),
        *(0, -1, 101, 2**31, 2**63, -(2**63) - 1, 10**40, 0.5, -0.0, 1e308, float("inf"), float("nan")),
        *([], {}, [None], [[]], {"": None}, {"name": 1}, {"name": "NodeName"}, [{"name": "*"}], deep),
        *("5s", "-5s", "9999999999999h", "http://", "http://[", "http://a:0", "https://u:p@h/", "application/json"),
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all values."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(one for key, item in inside for one in places(item, (*path, key)))]


PLACES = [[path for path in places(document) if path] for document in DOCUMENTS]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid document with one to three damaged values."""
    which = draw(st.integers(0, len(DOCUMENTS) - 1))
    document = copy.deepcopy(DOCUMENTS[which])
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(PLACES[which]))
        owner = document
        try:
            for step in way:
                owner = owner[step]
            value = owner[last]
        except (KeyError, IndexError, TypeError):
            continue  # damaged before
        if not isinstance(owner, dict | list):
            continue
        match draw(st.sampled_from(["replace", "remove", "twice", "rename", "wrap", "swap"])):
            case "replace":
                owner[last] = draw(hostile)
            case "remove":
                del owner[last]
            case "twice" if isinstance(owner, list):
                owner.insert(last, copy.deepcopy(value))
            case "rename" if isinstance(owner, dict):
                owner[draw(st.sampled_from([f"{last}s", str(last).upper(), "", "name", "kind", "x y", 7]))] = owner.pop(
                    last
                )
            case "wrap":
                owner[last] = draw(st.sampled_from([[value], {"args": value}, str(value)]))
            case "swap":
                owner[last] = copy.deepcopy(document.get(draw(st.sampled_from(sorted(map(str, document))))))
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


ODDITIES = (
    "\t",
    "---\n",
    "...\n",
    "? ",
    "- ",
    ": ",
    "&a ",
    "*a ",
    "!!python/object:os.system ",
    "!!binary ",
    "!!int ",
    "<<: {}\n",
    "{",
    "]",
    '"',
    "'",
    "|\n",
    ">-\n",
    "%YAML 9.9\n",
    "0x7fffffffffffffffffff",
    "1_000",
    "on",
    "#",
    "\u2028",
    "\ufeff",
)


@st.composite
def scribbled(draw: st.DrawFn) -> str:
    """A valid text with oddities of YAML in it."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(text)))
        match draw(st.sampled_from(["insert", "insert", "cut", "line twice", "line away"])):
            case "insert":
                text = text[:place] + draw(st.sampled_from(ODDITIES)) + text[place:]
            case "cut":
                text = text[:place]
            case kind:
                lines = text.splitlines(keepends=True)
                number = draw(st.integers(0, max(len(lines) - 1, 0)))
                lines[number : number + 1] = lines[number : number + 1] * (2 if kind == "line twice" else 0)
                text = "".join(lines)
    return text


def loaded(text: str) -> Configuration | InputError:
    """Load a text and build everything that a configuration is for; return the error of a bad one."""
    try:
        configuration = load(text, "file.yaml", KNOWN)
    except InputError as error:
        return error
    loop = Loop(configuration.profiles, lambda _: 0, LoopSettings(configuration.backoff))
    assert loop.profiles
    assert all(one.timeout > 0 for one in configuration.extenders)
    for one in configuration.warnings:
        assert one.line > 0
    # A recording has the configuration, and a replay must be able to read it.
    again = load(configuration_text(configuration), "recording", KNOWN)
    assert again.extenders == configuration.extenders
    return configuration


def check(found: Configuration | InputError) -> None:
    if isinstance(found, InputError):
        assert found.mistakes
        for mistake in found.mistakes:
            line = str(mistake)
            assert line.startswith("file.yaml:"), line
            assert "\n" not in line
            assert mistake.line > 0 or "too large" in mistake.message, line
            assert len(line) < 2000, line


def test_the_files_that_are_mutated_are_valid():
    assert all(isinstance(loaded(text), Configuration) for text in TEXTS)


@given(mutated())
@example("")
@example("[]")
@example("7")
@example(HEAD + "profiles: [{}, {}]")
@example(HEAD + "extenders: [[]]")
@example(HEAD + "profiles: {a: 1}")
def test_damaged_data_gives_mistakes_with_their_path_and_nothing_else(text):
    found = loaded(text)

    check(found)
    if isinstance(found, InputError) and text.startswith("apiVersion"):
        # The limit of nesting belongs to the text as a whole.
        assert all(mistake.path or "nested too deep" in mistake.message for mistake in found.mistakes), str(found)


@given(scribbled())
def test_damaged_text_gives_mistakes_with_their_line_and_nothing_else(text):
    check(loaded(text))
