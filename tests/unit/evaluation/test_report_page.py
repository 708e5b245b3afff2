"""The page of a report: complete without a network or script, safe with any name, the same bytes every time."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from lamina.evaluation.comparison import ProfileComparison, Run, compare
from lamina.evaluation.report.decision_reasons import reasons
from lamina.evaluation.report.report_page import ReportNotes, report_page
from lamina.evaluation.report.run_record import POINTS, HeldChange, LayerColumn, PodTimes, RunRecord, RunSeries
from lamina.evaluation.report.weak_points import weak_points
from lamina.evaluation.run_metrics import METRICS
from lamina.model.decision import Decision, NodeVerdict, PluginScore

SHOWN = ["bytes_pulled", "startup_mean", "peak_load"]
ABOUT = ReportNotes("lamina compare story.yaml --report", "1.2.3", ("A limit of the runs.",))
NASTY = "</script><img src=x onerror=alert(1)>&\"'"


def a_summary(pulled: int, start: float) -> dict[str, Any]:
    return {
        "scenario": "story",
        "bytes_pulled": pulled,
        "pulls": 3,
        "peak_load": 1.5,
        "imbalance": 0.5,
        "pods": {"total": 2, "started": 2, "finished": 2, "not_started": {"total": 0}, "pending": [], "rejected": 0},
        "startup_seconds": {"total": dict.fromkeys(("p50", "p95", "p99", "mean", "max"), start)},
    }


def a_pod(pod: str = "p", node: str = "n1", pull: float = 2.0, **changes: Any) -> PodTimes:
    facts: dict[str, Any] = {"phase": "finished", "arrived": 0.0, "queue": 1.0, "pull": pull, "start": 0.5, "run": 9.0}
    return PodTimes(**{"pod": pod, "node": node, **facts, "bytes_wanted": 100, "bytes_pulled": 100, **changes})


def a_record(profile: str, seed: int = 1, pods: tuple[PodTimes, ...] = (), node: str = "n1") -> RunRecord:
    series = RunSeries(
        at=(0.0, 10.0),
        bytes_pulled=(0, 100),
        peak_load=(None, 1.5),
        imbalance=(None, 0.5),
        first_arrival=0.0,
        last_arrival=10.0,
    )
    return RunRecord(
        profile=profile,
        seed=seed,
        scenario="story",
        seconds=20.0,
        series=series,
        start_quantiles=(0.5, 3.5),
        started=2,
        all_nodes=1,
        all_pods=len(pods),
        nodes=(node,) if pods else (),
        pods=pods,
        layers=(LayerColumn("base", 100),) if pods else (),
        changes=(HeldChange(1.0, 0, 0, held=True),) if pods else (),
        all_layers=1,
    )


def compared(*profiles: str, seeds: int = 2) -> ProfileComparison:
    runs = [
        Run(profile, seed, a_summary(100 * seed * (index + 1), 1.0 + index))
        for index, profile in enumerate(profiles)
        for seed in range(1, seeds + 1)
    ]
    return compare(runs, profiles[0], METRICS)


def a_page(name: str = "base") -> str:
    records = [a_record(name, 1, (a_pod(f"{name}/p"),)), a_record("other", 1, (a_pod(),)), a_record(name, 2)]
    return report_page(records, compared(name, "other"), SHOWN, ABOUT).decode()


class Outline(HTMLParser):
    """Collects what the tests ask about."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "input", "img", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.text += data


def test_a_page_is_complete_and_balanced():
    outline = Outline(a_page())

    assert outline.unbalanced == []
    assert outline.open == []
    names = [facts["data-chart"] for _, facts in outline.tags if "data-chart" in facts]
    assert names == ["ratios", "starts", "bytes", "peak", "imbalance", "timeline", "map"]


def test_a_page_loads_nothing():
    outline = Outline(a_page())

    assert [tag for tag, facts in outline.tags if "src" in facts or tag in {"link", "img", "iframe"}] == []
    policy = next(facts["content"] for _, facts in outline.tags if facts.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "Permission to use, copy, modify" in a_page()


def test_every_figure_has_its_data_and_every_control_a_name():
    page = a_page()
    outline = Outline(page)

    for figure in re.findall(r"<figure>.*?</figure>", page, flags=re.DOTALL):
        assert "<details>" in figure
        assert "<table" in figure
        assert "<figcaption>" in figure
    ids = [facts["id"] for _, facts in outline.tags if "id" in facts]
    assert len(ids) == len(set(ids))
    for control in re.findall(r"(?:<label>[^<]*)?<(?:select|input|button)[^>]*>", page):
        assert control.startswith("<label>") or "aria-label" in control


def test_names_are_text_and_nothing_else():
    page = a_page(NASTY)
    outline = Outline(page)

    assert "img" not in [tag for tag, _ in outline.tags]
    assert NASTY in outline.text
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["profiles"] == [NASTY, "other"]


@pytest.mark.parametrize(
    ("seeds", "kept"),
    [
        pytest.param(1, [float(second) for second in range(1, POINTS + 1)], id="one seed: all"),
        pytest.param(4, [float(second) for second in range(4, 4 * POINTS + 1, 4)], id="four seeds: every fourth"),
    ],
)
def test_the_data_of_start_times_does_not_grow_with_the_seeds(seeds, kept):
    records = [
        msgspec.structs.replace(
            a_record("base", seed), start_quantiles=tuple(float(seed + seeds * step) for step in range(POINTS))
        )
        for seed in range(1, seeds + 1)
    ]
    page = report_page(records, compared("base", seeds=seeds), SHOWN, ABOUT).decode()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)

    assert data is not None
    assert json.loads(data[1])["starts"] == {"base": kept}


def test_the_same_runs_give_the_same_bytes():
    assert a_page() == a_page()


def test_headline_figures_have_intervals_ratios_and_verdicts():
    text = Outline(a_page()).text

    # 100 and 200 bytes: mean 150, half width 12.706 · 70.71 / √2 = 635; the other profile has twice as much each time.
    assert "150 B ± 635 B" in text
    assert "×2.00 [2.00, 2.00], worse" in text


def test_one_run_has_no_comparison():
    page = report_page([a_record("base", 1, (a_pod(),))], compared("base", seeds=1), SHOWN, ABOUT).decode()
    text = Outline(page).text

    assert "One seed has no confidence interval." in text
    assert 'data-chart="ratios"' not in page
    assert "A limit of the runs." in text


def test_a_report_without_pods_says_so():
    text = Outline(report_page([a_record("base")], compared("base"), SHOWN, ABOUT).decode()).text

    assert "No pods were recorded." in text
    assert "No layers were recorded." in text


def test_weak_points_name_worse_figures_and_pods_that_started_later():
    base = a_record("base", 1, (a_pod("a", pull=2.0), a_pod("b", pull=0.0, bytes_pulled=0)))
    other = a_record("other", 1, (a_pod("a", pull=1.0), a_pod("b", pull=4.0)))
    said = weak_points([base, other], compared("base", "other"), SHOWN)

    assert said[0].startswith("other is worse than base in: downloaded ×2.00")
    assert said[1] == "No difference between other and base is shown in: peak load."
    assert "base, seed 1: 1 of 2 listed pods that started found no byte" in said[2]
    # b took 1.0 + 4.0 + 0.5 s instead of 1.5 s; a was faster.
    assert said[-1].endswith("1 of 2 started later than under base, most of all b 4.0 s.")


def a_decision(**changes: Any) -> Decision:
    chosen = NodeVerdict("n1", 90, (PluginScore("Fit", 30, 1), PluginScore("Layers", 60, 1)))
    other = NodeVerdict("n2", 70, (PluginScore("Fit", 70, 1),))
    facts = {"pod": "d/p", "uid": "u", "at": 0.0, "attempt": 1, "profile": "s", "outcome": "placed", "nodes": 3}
    return Decision(**{**facts, "feasible": 2, "chosen": chosen, "runner_up": other, "tied": 1, **changes})


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        pytest.param({}, "2 of 3 nodes fitted; n1 leads n2 by 20 points.", id="ahead"),
        pytest.param(
            {"tied": 2}, "2 of 3 nodes fitted; n1 is one of 2 equally good nodes, drawn at random.", id="tied"
        ),
        pytest.param(
            {"feasible": 1, "runner_up": None}, "1 of 3 nodes fitted; n1 is the only node that fits.", id="alone"
        ),
        pytest.param({"outcome": "unschedulable", "chosen": None, "message": "0/3 nodes"}, "0/3 nodes", id="pending"),
    ],
)
def test_a_decision_is_told_in_sentences(changes, first):
    assert reasons(a_decision(**changes))[0] == first


def test_the_points_of_both_nodes_are_told():
    assert reasons(a_decision())[1] == "Points of n1: Layers 60, Fit 30 (70); in brackets those of n2."
