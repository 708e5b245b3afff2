"""The parts of `lamina demo`. All numbers in the text come from simulator runs."""

import shlex
from pathlib import Path
from typing import Any, Final

import msgspec
from rich import box
from rich.table import Table

from lamina.cli.compare import comparison_table, run_pool
from lamina.cli.compare.comparison_notes import with_unsupported
from lamina.cli.demo.picture import NodeContents, contents, picture
from lamina.cli.explain.decision_table import headline, show_nodes
from lamina.cli.options.scheduler_profile import configuration
from lamina.cli.output.command_name import command_name
from lamina.cli.output.screen import Screen
from lamina.cli.report.report_file import write_report
from lamina.evaluation import comparison
from lamina.model.decision import Decision
from lamina.model.errors import InputError
from lamina.model.image import Image
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes
from lamina.scheduling.config.named_profiles import unsupported
from lamina.scheduling.plugins.upstream.image_locality import FLOOR
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.run import SimulationResult, simulate, summary
from lamina.simulator.workloads import Scenario, load_scenario
from lamina.trace.trace_records import PodDecided, PodRemoved, PodStarted, TraceRecord

STUDY_PROFILES: Final = ("kube-default", "ryax", "lamina-images", "lamina-balanced")
SEEDS: Final = 3
CLASSIC_PROFILES: Final = ("kube-default", "image-locality", "lamina-balanced", "lamina-local")


class DemoStep(msgspec.Struct, frozen=True):
    """One decision, and the cluster's contents at that moment."""

    at: float
    before: str
    """What has happened since the previous decision, as text."""
    decision: Decision
    image: Image
    nodes: tuple[NodeContents, ...]


def play(seed: int, report: Path) -> None:
    """Print all four parts of the tour; write the report about the last one."""
    screen = Screen()
    folder = examples()
    founding(screen, load_scenario(folder / "founding" / "scenario.yaml"), seed)
    classic(screen, load_scenario(folder / "classic" / "scenario.yaml"), seed)
    small(screen, load_scenario(folder / "classic" / "small.yaml"), seed)
    study(screen, folder / "churn" / "scenario.yaml", report)
    screen.title("Next")
    for line in next_steps(command_name(), folder):
        screen.say_command(line)


def next_steps(lamina: str, folder: Path) -> list[str]:
    """Return the commands to try after the tour; they work when pasted in the folder where the tour ran."""
    here = Path.cwd()
    near = folder.relative_to(here) if folder.is_relative_to(here) else folder
    founding, churn = (shlex.quote(str(near / name / "scenario.yaml")) for name in ("founding", "churn"))
    return [
        f"{lamina} simulate {founding} --detail full --out /tmp/founding",
        f"{lamina} explain p3 --trace /tmp/founding",
        f"{lamina} compare {churn} --profiles kube-default,lamina-even,lamina-local --seeds 2",
        f"{lamina} profiles lamina-balanced  # the configuration, to copy and change",
    ]


def examples() -> Path:
    """Return the folder of example scenarios: in the installed package, or beside it in a checkout."""
    here = Path(__file__).resolve()
    for folder in (here.parents[1] / "examples", here.parents[4] / "examples"):
        if (folder / "founding" / "scenario.yaml").is_file():
            return folder
    raise InputError.one("lamina demo", "the example scenarios are not installed; reinstall the package")


def founding(screen: Screen, scenario: Scenario, seed: int) -> None:
    """Show the founding scenario, decision by decision."""
    screen.title("1  A pod goes where its layers are")
    screen.say(
        "img1 and img2 share their two lower layers. Three equal nodes; every pod fills one. p1 runs img1, p2 runs img2 "
        "and is removed after a while. Then another pod needs img1, and no free node has it."
    )
    for step in steps(scenario, seed):
        screen.say(
            f"\n[bold]{step.at:,.0f} s[/bold]  {step.before}[bold]{_name(step.decision)}[/bold] needs "
            f"{step.image.names[0]}, {human_bytes(step.image.size)} in {plural(len(step.image.layers), 'layer')}"
        )
        screen.console.print(picture(screen, step.nodes, scenario.images, step.image, scenario.layer_names))
        show_nodes(step.decision, screen, facts=False)
        screen.say(headline(step.decision, screen))
    chosen = step.decision.chosen
    assert chosen is not None, "every pod of the story finds a node"
    facts = next(score.facts for score in chosen.scores if "present" in score.facts)
    screen.say(
        f"\nA scheduler that only knows whole images sees two equal nodes for {_name(step.decision)}. "
        f"By layers, {human_bytes(facts['present'])} of {human_bytes(facts['total'])} are on {chosen.node} already."
    )


def steps(scenario: Scenario, seed: int) -> list[DemoStep]:
    """Run a scenario and return every placement with the cluster's contents at that moment."""
    taken: list[DemoStep] = []
    since: list[str] = []
    by_name = {name: image for image in scenario.images for name in image.names}
    images = {arrival.pod.key: by_name[arrival.pod.images[0]] for arrival in scenario.arrivals}

    def observe(now: float, record: TraceRecord, cluster: VirtualCluster) -> None:
        if isinstance(record, PodDecided) and record.decision.outcome == "placed":
            image = images[record.decision.pod]
            before = "".join(f"{one}; " for one in since)
            taken.append(DemoStep(now, before, record.decision, image, contents(cluster)))
            since.clear()
        elif isinstance(record, PodRemoved):
            since.append(f"{record.pod.split('/')[1]} was removed at {now:,.0f} s")
        elif isinstance(record, PodStarted):
            since.append(f"{record.pod.split('/')[1]} runs on {record.node} since {now:,.1f} s")

    simulate(scenario, configuration(scenario.profile), seed=seed, detail="full", observer=observe)
    return taken


def classic(screen: Screen, scenario: Scenario, seed: int) -> None:
    """Run one workload under several profiles and count the pulls."""
    screen.title("2  The same pods, fewer pulls")
    sizes = ", ".join(f"{image.names[0]} {human_bytes(image.size)}" for image in scenario.images)
    screen.say(
        f"{len(scenario.arrivals)} pods, one a minute: {_order(scenario)}. {len(scenario.nodes)} nodes. {sizes}."
    )
    compare(screen, scenario, seed)


def small(screen: Screen, scenario: Scenario, seed: int) -> None:
    """Run the same pods with images below ImageLocality's minimum size, and show why it scores them 0."""
    screen.title("3  Why a small image scores 0 everywhere")
    size = scenario.images[0].size
    screen.say(f"The same pods with images of {human_bytes(size)}.")
    compare(screen, scenario, seed)
    result = run(scenario, "image-locality", seed)
    second = result.decisions[1]
    screen.say(f"{_name(second)} under image-locality, a minute after the first pod brought the image onto a node:")
    show_nodes(second, screen)
    screen.say(
        f"ImageLocality counts size times the share of nodes that have the image, and nothing below "
        f"{human_bytes(FLOOR)}: {human_bytes(size)} is under the floor, on however many nodes it is."
    )


def study(screen: Screen, path: Path, report: Path) -> None:
    """Run a generated workload under several profiles and seeds, compare, and write a report."""
    screen.title("4  What it is worth, and what it costs")
    scenario = load_scenario(path)
    screen.say(
        f"{len(scenario.images)} generated images, alike in numbers to public ones; {len(scenario.arrivals):,} pods on "
        f"{len(scenario.nodes)} nodes, applications that are updated meanwhile. {len(STUDY_PROFILES)} profiles, "
        f"{SEEDS} seeds each, the same pods under every profile:"
    )
    tasks = run_pool.reported(
        [run_pool.RunTask(path, profile, seed) for seed in range(1, SEEDS + 1) for profile in STUDY_PROFILES]
    )
    with run_pool.RunPoolProgress(len(tasks)) as waiting:
        figures = run_pool.run_all(tasks, run_pool.cores(), waiting.done)
    records = [one.pop(run_pool.RECORD) for one in figures]
    runs = [comparison.Run(task.profile, task.seed, one) for task, one in zip(tasks, figures, strict=True)]
    compared = with_unsupported(comparison.compare(runs, STUDY_PROFILES[0]))
    comparison_table.print_comparison(compared, None, screen)
    words = ["compare", str(path), "--profiles", ",".join(STUDY_PROFILES), "--seeds", str(SEEDS)]
    write_report(report, words, records, compared, comparison_table.shown_metrics(compared))
    screen.say("\nThe same with charts, every pod and the reason for its node; open it in a browser:")
    screen.say_command(str(report))


def compare(screen: Screen, scenario: Scenario, seed: int) -> None:
    """Draw one line per profile."""
    figures = {profile: summary(run(scenario, profile, seed)) for profile in CLASSIC_PROFILES}
    most = max(one["bytes_pulled"] for one in figures.values())
    drawn = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    for column in ("profile", "pulls", "downloaded", "", "mean start"):
        drawn.add_column(column, justify="left" if column in ("profile", "") else "right")
    for profile, one in figures.items():
        drawn.add_row(profile, str(one["pulls"]), human_bytes(one["bytes_pulled"]), *_bytes(screen, one, most))
    screen.console.print(drawn)
    for line in filter(None, map(unsupported, CLASSIC_PROFILES)):
        screen.say(f"[dim]{line}[/dim]")


def run(scenario: Scenario, profile: str, seed: int) -> SimulationResult:
    """Run a scenario under a profile, with decisions in full detail."""
    return simulate(scenario.under(profile), configuration(profile), seed=seed, detail="full")


def _bytes(screen: Screen, figures: dict[str, Any], most: int) -> tuple[str, str]:
    seconds = figures["startup_seconds"]["total"]["mean"]
    return screen.bar(figures["bytes_pulled"], most, 12 if screen.narrow else 24), f"{seconds:.2f} s"


def _order(scenario: Scenario) -> str:
    return " ".join(arrival.pod.images[0].rsplit("/", 1)[-1].split(":")[0] for arrival in scenario.arrivals)


def _name(decision: Decision) -> str:
    return decision.pod.split("/", 1)[1]
