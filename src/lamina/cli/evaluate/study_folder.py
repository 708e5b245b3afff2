"""
The folder of a study: the scenario of each point, a file for each finished run, and the results.

    study.json  scenarios/0000.yaml…  runs/0000-0001-00.json…  results.csv  summary.json  digest.md  report.html

A run is in the folder completely or not at all, so a study that was interrupted continues with the runs that are
missing. `study.json` has the fingerprint of study, scenario, profiles and version: results of another study are refused.
"""

import hashlib
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec

from lamina.cli.compare.run_pool import RunTask, scenario_for
from lamina.cli.options.scheduler_profile import configuration
from lamina.cli.output import interruption
from lamina.evaluation.comparison import Run
from lamina.evaluation.report.study_page import study_page
from lamina.evaluation.run_metrics import chosen
from lamina.evaluation.study_results import digest, results_csv, study_results
from lamina.model.errors import InputError, Mistake
from lamina.simulator.studies.study_design import documents, moved, written
from lamina.simulator.studies.study_file import StudyFile, read_study
from lamina.trace.trace_writer import atomic_write

STUDY: Final = "study.json"
RESULTS: Final = "results.csv"
SUMMARY: Final = "summary.json"
DIGEST: Final = "digest.md"
REPORT: Final = "report.html"
SCENARIOS: Final = "scenarios"
RUNS: Final = "runs"


class StudyFolder:
    """A study, its runs and its results in a folder."""

    def __init__(self, file: Path, folder: Path) -> None:
        """Read and check the study, and write the scenarios of its points. Raises InputError."""
        self._folder = folder
        self._study = study = read_study(file)
        scenario = file.parent / study.scenario
        mistakes = _mistakes(study, file)
        if mistakes:
            raise InputError(mistakes)
        self._version = metadata.version("lamina")
        made = documents(study, file, scenario)
        self._levels = [{name: written(value) for name, value in point.levels.items()} for point, _ in made]
        self._fingerprint = self._fingerprint_of(file, [document for _, document in made])
        self._claim(file)
        for name in (SCENARIOS, RUNS):
            (folder / name).mkdir(exist_ok=True)
        self.tasks: list[RunTask] = []
        """All runs, point by point; the baseline's are the first of each seed."""
        self._point_of: list[int] = []
        for point, document in made:
            path = folder / SCENARIOS / f"{point.number:04}.yaml"
            # JSON is YAML, and reads back as the same values.
            content = msgspec.json.encode(moved(document, scenario.parent, folder / SCENARIOS))
            atomic_write(path, msgspec.json.format(content, indent=2) + b"\n")
            scenario_for(path, 1, scenario.parent)
            self._add(point.number, path, file.parent, scenario.parent)

    def unfinished(self) -> list[RunTask]:
        """Return the runs that are not in the folder yet."""
        return [task for task in self.tasks if task.keep is None or not task.keep.is_file()]

    def write_results(self) -> str:
        """Write the results of all runs, and return the digest."""
        runs: dict[int, list[Run]] = {}
        for task, number in zip(self.tasks, self._point_of, strict=True):
            assert task.keep is not None, "every run of a study is kept"
            summary: dict[str, Any] = msgspec.json.decode(task.keep.read_bytes())
            runs.setdefault(number, []).append(Run(task.profile, task.seed, summary))
        names = {"study": self._name, "version": self._version, "fingerprint": self._fingerprint}
        results = study_results(runs, self._levels, self._study.metrics, names)
        text = digest(results)
        files = {
            RESULTS: results_csv(runs, self._levels, results).encode(),
            SUMMARY: msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n",
            DIGEST: text.encode(),
            REPORT: study_page(results),
        }
        for name, content in files.items():
            atomic_write(self._folder / name, content)
            interruption.keep(self._folder / name)
        return text

    # -- preparation -------------------------------------------------------------------------------------------------

    def _add(self, number: int, path: Path, beside: Path, data: Path) -> None:
        """Add the runs of one point."""
        profiles = [(name, _profile_file(name, beside), False) for name in self._study.profiles]
        profiles += [(name, "", True) for name in self._study.schedulers]
        for seed in range(1, self._study.seeds + 1):
            for place, (name, file, foreign) in enumerate(profiles):
                keep = self._folder / RUNS / f"{number:04}-{seed:04}-{place:02}.json"
                self.tasks.append(RunTask(path, name, seed, data, file, foreign=foreign, keep=keep))
                self._point_of.append(number)

    def _fingerprint_of(self, file: Path, made: list[dict[str, Any]]) -> str:
        """Return a digest of all that decides the figures, without the content of included files and data."""
        self._name = self._study.name or file.stem
        own = [_profile_file(name, file.parent) for name in self._study.profiles]
        texts = [Path(name).read_text(encoding="utf-8") for name in own if name]
        whole = msgspec.json.encode([self._version, file.read_text(encoding="utf-8"), made, texts])
        return hashlib.sha256(whole).hexdigest()[:16]

    def _claim(self, file: Path) -> None:
        """Mark the folder as this study's. Raises InputError if it has the results of another."""
        mark = self._folder / STUDY
        content = {"study": self._name, "fingerprint": self._fingerprint, "version": self._version}
        if mark.is_file():
            before = msgspec.json.decode(mark.read_bytes(), type=dict[str, str])
            if before.get("fingerprint") != self._fingerprint:
                message = f"{self._folder} has runs of another study, version or state of {file}; use another folder"
                raise InputError.one("--out", message)
            return
        atomic_write(mark, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def _profile_file(name: str, beside: Path) -> str:
    """Return the file of a profile that is one; empty for a name."""
    return str(beside / name) if name.endswith((".yaml", ".yml", ".json")) else ""


def _mistakes(study: StudyFile, file: Path) -> list[Mistake]:
    """Return what is wrong with the names in a study."""
    from lamina.apiserver.scheduler_profiles import PROFILES

    source = str(file)
    found = []
    if not study.profiles and not study.schedulers:
        found.append(Mistake(source, "nothing to compare; name at least one profile", "profiles"))
    for name in study.profiles:
        try:
            configuration(_profile_file(name, file.parent) or name)
        except InputError as error:
            found += error.mistakes
    found += [
        Mistake(source, f"{name!r} is no registered scheduler; use {', '.join(PROFILES)}", "schedulers")
        for name in study.schedulers
        if name not in PROFILES
    ]
    names = [*study.profiles, *study.schedulers]
    if len(set(names)) < len(names):
        found.append(Mistake(source, "a profile or scheduler is listed twice; list it once", "profiles"))
    try:
        chosen(study.metrics, source)
    except InputError as error:
        found += error.mistakes
    return found
