"""
SWF workloads, the format of the Parallel Workloads Archive: a line of 18 fields for each job.

    1 number   2 submit (s)   3 wait (s)   4 run (s)     5 processors    6 cpu (s)        7 memory (KB)
    8 processors wanted       9 time wanted (s)         10 memory wanted (KB per processor)     11 status
    12 user    13 group      14 executable             15 queue         16 partition     17 preceding job   18 think (s)

Fields that are unknown are -1, or any negative number. Lines that begin with a semicolon are comments; those at the top
describe the log (``; MaxProcs: 128``). A job becomes one pod for each processor that it wanted, or else used, and runs
as long as it ran. The time it wanted is its deadline. Jobs with the same executable run one image; where executables are
not known, jobs of the same user do.

Left out, and counted in a note: jobs that never ran, jobs whose processors or run time are unknown, and lines about parts
of a job (status 2 to 4), whose sum is a line of its own.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lamina.model import resources
from lamina.model.duration import LONGEST
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import plural, shown
from lamina.model.resources import CPU, MEMORY, Amounts
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.batsim_source import BatsimSource
from lamina.simulator.workloads.imports import import_files, pod_drafts
from lamina.simulator.workloads.imports.batsim_job import BatsimJob
from lamina.simulator.workloads.imports.import_schema import MOST_PODS, ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.imports.job_pods import JobPods
from lamina.simulator.workloads.imports.pod_drafts import ImageChooser, PodDraft

FIELDS: Final = (
    *("number", "submit", "wait", "run", "processors", "cpu", "memory", "processorsWanted", "timeWanted"),
    *("memoryWanted", "status", "user", "group", "executable", "queue", "partition", "precedingJob", "thinkTime"),
)
COMMENT: Final = ";"
KILOBYTE: Final = 1024
FAILED: Final = 0
PARTS: Final = (2, 3, 4)
CANCELLED: Final = 5
MOST_HEADER: Final = 200
"""Comment lines that are read as a description of the log."""


class SwfJob(msgspec.Struct, frozen=True):
    """The fields of a line that are used; unknown ones are None."""

    line: int
    number: int
    submit: float
    run: float | None
    processors: int | None
    walltime: float | None
    memory: int | None
    """KB per processor."""
    status: int | None
    application: str
    depends: bool
    """Whether it came after another job of its user had ended."""


class SwfLog(msgspec.Struct):
    """A file: what its header says, and its jobs."""

    header: dict[str, str]
    jobs: list[SwfJob]


def read_swf(path: Path) -> SwfLog:
    """Return the jobs of a file. Raises InputError with the mistakes of all lines."""
    log = SwfLog({}, [])
    mistakes: list[Mistake] = []
    numbers: dict[int, int] = {}
    for number, line in import_files.lines(path):
        try:
            if line.lstrip().startswith(COMMENT.encode()):
                # Names of people and places in old logs have any encoding.
                _describe(log.header, line.decode("utf-8", "replace").strip())
            elif words := import_files.text_of(line, str(path)).split():
                job = _job(words, number, str(path))
                first = numbers.setdefault(job.number, number)
                if first != number and job.status not in PARTS:
                    message = f"there is a second job {job.number}, the first is on line {first}"
                    raise InputError.one(str(path), message, path="number", line=number)
                log.jobs.append(job)
        except InputError as error:
            mistakes += (msgspec.structs.replace(one, line=number) for one in error.mistakes)
            if len(mistakes) >= import_files.MOST_MISTAKES:
                break
    if not mistakes and not log.jobs:
        mistakes.append(Mistake(str(path), f"has no job; a line has the fields {', '.join(FIELDS)}"))
    if mistakes:
        raise InputError(mistakes)
    return log


def _describe(header: dict[str, str], text: str) -> None:
    """Take a comment such as ``; MaxProcs: 128``; later lines with the same name add nothing."""
    name, colon, value = text.lstrip(COMMENT).strip().partition(":")
    if colon and len(header) < MOST_HEADER and name and " " not in name:
        header.setdefault(name, value.strip())


def _job(words: list[str], line: int, source: str) -> SwfJob:
    if len(words) != len(FIELDS):
        message = f"has {len(words)} of {len(FIELDS)} fields: was the line cut short, or is it another format?"
        raise InputError.one(source, message, line=line)
    fields = _Fields(words, source)
    number, submit = fields.count("number"), fields.seconds("submit")
    if number is None or submit is None:
        name = "number" if number is None else "submit"
        raise InputError.one(source, "is unknown, and every job needs one", path=name)
    executable, user = fields.count("executable"), fields.count("user")
    application = f"user-{user}" if user is not None else "job"
    return SwfJob(
        line=line,
        number=number,
        submit=submit,
        run=fields.seconds("run"),
        processors=fields.count("processorsWanted") or fields.count("processors") or None,
        walltime=fields.seconds("timeWanted") or None,
        memory=fields.count("memoryWanted") or fields.count("memory") or None,
        status=fields.count("status"),
        application=application if executable is None else f"executable-{executable}",
        depends=(fields.count("precedingJob") or 0) > 0,
    )


class _Fields:
    """The fields of one line."""

    def __init__(self, words: list[str], source: str) -> None:
        self._words, self._source = words, source

    def _number(self, name: str) -> float | None:
        word = self._words[FIELDS.index(name)]
        try:
            number = float(word) if word.isascii() and "_" not in word else float("nan")
        except ValueError:
            number = float("nan")
        if not abs(number) <= import_files.LARGEST_NUMBER:
            raise InputError.one(self._source, f"{shown(word)} is not a number", path=name)
        return None if number < 0 else number

    def count(self, name: str) -> int | None:
        number = self._number(name)
        return None if number is None else int(number)

    def seconds(self, name: str) -> float | None:
        number = self._number(name)
        if number is not None and number > LONGEST:
            raise InputError.one(self._source, f"{number:g} s are too long; at most ten years are simulated", path=name)
        return number


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read the log that an entry names."""
    assert entry.swf is not None, "the entry is of this kind"
    path = import_files.located(context, folder, entry.swf, "swf")
    log = read_swf(path)
    own = pod_drafts.equal_nodes(entry, context)
    nodes = (*context.nodes, *own)
    if not nodes:
        wanted = log.header.get("MaxProcs") or log.header.get("MaxNodes") or "128"
        hint = f"say nodes: {wanted}" + (", as its header does" if wanted != "128" else ", for example")
        raise InputError([context.entry.mistake(f"needs nodes to run on; {hint}", "nodes")])
    reader = _SwfJobs(entry, str(path), JobPods(str(path), nodes, whole_nodes=entry.whole_nodes))
    drafts = pod_drafts.select_drafts(reader.drafts(log.jobs), entry)
    pod_drafts.check_room(str(path), drafts, own, context, "job")
    images = ImageChooser(entry, folder, context).choose(pod_drafts.applications(drafts))
    source = BatsimSource(name=reader.name, file=str(path), profiles=reader.profiles)
    return Imported(
        nodes=own,
        arrivals=pod_drafts.arrivals(drafts, images, entry),
        batsim=source,
        notes=tuple(reader.notes(str(path), log.header)),
    )


class _SwfJobs:
    """Converts the jobs of a log to drafts of pods."""

    def __init__(self, entry: ImportEntry, source: str, pods: JobPods) -> None:
        self.name = entry.name or "swf"
        self.profiles: dict[str, msgspec.Raw] = {}
        self._entry, self._source, self._pods = entry, source, pods
        self._window = pod_drafts.TraceWindow(entry)
        self._left_out: dict[str, int] = {}
        self._depend = 0

    def drafts(self, jobs: list[SwfJob]) -> list[PodDraft]:
        """Return the pods of all jobs. Raises InputError with the mistakes of all of them."""
        found: list[PodDraft] = []
        mistakes: list[Mistake] = []
        for job in jobs:
            if reason := _left_out(job):
                self._left_out[reason] = self._left_out.get(reason, 0) + 1
                continue
            try:
                found += self._job(job)
            except (ValueError, InputError) as error:
                wrong = InputError.one(self._source, str(error), path="processors", line=job.line)
                mistakes += error.mistakes if isinstance(error, InputError) else wrong.mistakes
                if len(mistakes) >= import_files.MOST_MISTAKES:
                    break
        if mistakes:
            raise InputError(mistakes)
        return found

    def _job(self, job: SwfJob) -> Iterator[PodDraft]:
        run, processors = job.run or 0.0, job.processors or 1
        shape = self._pods.shape(self._asked(job), processors)
        placed = self._window.place(job.submit, run)
        if placed is None:
            return
        self._depend += job.depends
        seconds = placed[1] or 0.0
        profile = f"run{seconds!r}".removesuffix(".0")
        self.profiles[profile] = msgspec.Raw(msgspec.json.encode({"type": "delay", "delay": seconds}))
        fails = job.status in (FAILED, CANCELLED)
        life = PodLifecycle(seconds=seconds, deadline=job.walltime, failures=-1 if fails else 0)
        walltime = -1.0 if job.walltime is None else job.walltime
        known = BatsimJob(self.name, str(job.number), profile, processors, walltime)
        yield from self._pods.drafts(known, shape, placed[0], life, job.application, job.line)

    def _asked(self, job: SwfJob) -> Amounts:
        """Return the requests of one processor: one cpu and the memory of the log, unless the entry says otherwise."""
        cpu = 1 if self._entry.cpu is None else self._entry.cpu
        memory = self._entry.memory
        if memory is None and job.memory is not None:
            memory = job.memory * KILOBYTE
        return resources.amounts({CPU: cpu, **({} if memory is None else {MEMORY: memory})})

    def notes(self, source: str, header: dict[str, str]) -> Iterator[str]:
        """Yield sentences about the log, and about what was left out."""
        about = ", ".join(
            f"{name} {header[name]}" for name in ("Computer", "Installation", "MaxProcs") if name in header
        )
        if about:
            yield f"{source}: {about}"
        for reason, count in self._left_out.items():
            yield f"{source}: {plural(count, 'line')} left out: {reason}"
        if self._depend:
            yield f"{source}: {plural(self._depend, 'job')} waited for others in the log; here they come when they came there"


def _left_out(job: SwfJob) -> str:
    """Return why a line is no job to run; empty if it is one."""
    if job.status in PARTS:
        return "parts of a job"
    if job.status == CANCELLED and not job.run:
        return "cancelled before they ran"
    if job.run is None:
        return "no run time"
    if job.processors is None:
        return "no number of processors"
    if job.processors > MOST_PODS:
        return f"more than {MOST_PODS} processors"
    return ""
