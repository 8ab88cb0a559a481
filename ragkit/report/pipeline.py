"""The notebooks as a workflow: what each needs, what can run, what is fresh.

`notebooks/catalogue.toml` names the notebooks in order. The `Snakefile` makes one rule of each;
a notebook is fresh if the contents of its inputs have not changed: the notebook, the modules and
package data that it depends on, the files in `notebooks/` that its code names, its data, the
numbers that the papers print, and the lock file.

>>> [step.name for step in catalogue()][:2]
['00-data-overview', '10-wixqa-statistics']
>>> plan = make_plan("sample")
>>> plan.profile, plan.missing
('sample', {})
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ragkit import checks, datasets, display, paths
from ragkit.datasets.registry import Store, entry
from ragkit.errors import DataError, MissingData, RagkitError, UsageError, did_you_mean
from ragkit.report import experiments, notebook, results

CATALOGUE = paths.NOTEBOOKS / "catalogue.toml"
LOCK = paths.ROOT / "requirements.lock"
LARGE = 100_000_000  # bytes of a dataset that is not read only to see whether it can be


@dataclass(frozen=True)
class Step:
    """A notebook of the catalogue.

    It cannot run without `datasets`, uses the `optional` ones where they are at hand, and reads the
    results of the notebooks `after` which it runs ("*": all). `covers` are the printed tables that
    it measures, as PAPER:TABLE, `paper` its parameters in the profile "paper"; `shows_sample` says
    that it shows the sample there as well. On the site, `answer` are words of the line of its
    takeaways that answers its question, `figure` is its best figure; those that `headline` stand
    first. It has `threads` cores in the profile "paper", and starts in the order of `priority`.
    """

    name: str
    datasets: Sequence[str] = ()
    optional: Sequence[str] = ()
    after: Sequence[str] = ()
    covers: Sequence[str] = ()
    threads: int = 1
    priority: int = 0
    shows_sample: bool = False
    answer: str = ""
    figure: str = ""
    headline: bool = False
    paper: dict = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return paths.NOTEBOOKS / f"{self.name}.ipynb"


def catalogue(path: Path = CATALOGUE) -> list[Step]:
    """Return the notebooks in order.

    `DataError` if the catalogue is malformed, or names a notebook, dataset or predecessor that is
    not there.
    """
    try:
        rows = tomllib.loads(path.read_text("utf-8")).get("notebook", [])
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: {error}") from None
    steps: list[Step] = []
    for row in rows:
        where = f"{path}: {row.get('name')}"
        _known(row, Step.__dataclass_fields__, f"{where} has the unknown field")
        step = Step(**row)
        _known(set(step.after) - {"*"}, [s.name for s in steps], f"{where} must stand after")
        asked = (*step.datasets, *step.optional)
        _known(asked, datasets.names(), f"{where} needs the unknown dataset")
        if not step.path.is_file():
            raise DataError(f"{where} has no file {step.path.name}")
        steps.append(step)
    return steps


def _known(names: Iterable[str], known: Iterable[str], problem: str) -> None:
    for name in names:
        if name not in known:
            raise DataError(f"{problem} {name!r}", did_you_mean(name, known))


@dataclass
class Plan:
    """What a profile can run with the data at hand."""

    profile: str
    data: str
    steps: list[Step]
    missing: dict[str, tuple[str, str]]
    store: Store | None

    @cached_property
    def runnable(self) -> list[Step]:
        return [step for step in self.steps if step.name not in self.missing]

    @property
    def root(self) -> Path:
        return results.folder(self.profile)

    def __repr__(self) -> str:
        return f"<Plan {self.profile}: {len(self.runnable)} of {len(self.steps)} notebooks can run>"

    def _repr_html_(self) -> str:
        states = {step.name: self.missing.get(step.name, ("can run", "")) for step in self.steps}
        rows = [
            {"notebook": n, "state": why, "what to do": how} for n, (why, how) in states.items()
        ]
        facts = {"data": self.data, "products": self.root}
        after = f"Next: `make reproduce PROFILE={self.profile}` runs what can run and is not fresh."
        return display.card(f"Profile {self.profile}", facts, display.table(rows), after=after)

    def before(self, step: Step) -> list[Step]:
        """Return the runnable notebooks whose results a notebook reads."""
        if "*" in step.after:
            return [other for other in self.runnable if "*" not in other.after]
        return [other for other in self.runnable if other.name in step.after]

    def inputs(self, step: Step) -> list[str]:
        """Return the files that decide whether a notebook is fresh."""
        found = [step.path, *notebook.dependencies(notebook.read(step.path)), LOCK]
        found += [*sorted(paths.REPORTED.glob("*.*")), paths.REGISTRY]
        if self.profile == "sample" or step.shows_sample:
            found += sorted(path for path in paths.SAMPLE.rglob("*") if path.is_file())
        for name in (*step.datasets, *step.optional) if self.store else ():
            for path in datasets.files(name):
                with suppress(DataError):  # a damaged file is as good as none
                    at = self.store.find(path) or self.store.find_slices(entry(path))
                    found += (at.slices or [at.path]) if at else []
        made = [measured(self.root, other.name) for other in self.before(step)]
        if Path(experiments.__file__) in found:
            made += experiments.files(self.profile)
        kept = [path for path in found if path.exists()] + made
        return list(dict.fromkeys(map(str, kept)))

    def command(self, step: Step) -> list[str]:
        """Return the command that runs a notebook."""
        command = [sys.executable, "-m", "ragkit", "notebook", "run", step.name]
        command += ["--profile", self.profile, *(["--data", self.data] if self.data else [])]
        given = dict(step.paper) if self.profile == "paper" else {}
        if "*" in step.after:
            given["notebooks"] = [other.name for other in self.before(step)]
        for key, value in given.items():
            command += ["-p", key, repr(value)]
        return command


def measured(root: Path, name: str) -> Path:
    """Return where a notebook's measured numbers are."""
    return root / "results" / name / "measured.csv"


def make_plan(profile: str = "sample", data: str | None = None) -> Plan:
    """Look at the data and decide which notebooks can run.

    `UsageError` if the profile is unknown, `MissingData` if the data folder does not exist.
    """
    checks.choice(profile, "profile", datasets.PROFILES)
    steps, store = catalogue(), None if profile == "sample" else Store(data)
    missing: dict[str, tuple[str, str]] = {}
    for step in steps:
        problems = [(f"{n} cannot run", missing[n][1]) for n in step.after if n in missing]
        problems += [lack for name in step.datasets for lack in _lacks(name, store, data)]
        if problems:
            missing[step.name] = problems[0]
    return Plan(profile, str(Path(data).resolve()) if data else "", steps, missing, store)


def _lacks(name: str, store: Store | None, data: str | None) -> Iterator[tuple[str, str]]:
    """Yield what keeps a dataset from being loaded, with what to do; without a store, of the sample."""
    if store is None:
        if not datasets.in_sample(name):
            yield f"the sample has no {name}", "make reproduce PROFILE=paper"
        return
    at_hand = []
    try:
        for path in datasets.files(name):
            if found := store.find(path):
                at_hand.append(found)
            elif path in datasets.files(name, optional=False):
                address = entry(path).url
                how = f"ragkit data fetch {name}" if address else "DATA=a folder that has it"
                yield f"{path} is missing", how
        vouched = all(found.state == "verified" for found in at_hand)
        if not vouched and sum(found.path.stat().st_size for found in at_hand) < LARGE:
            datasets.load(name, profile="paper", data=data)
    except (DataError, MissingData) as error:
        yield error.message, error.hint or "another copy of the file"


def snakemake(plan: Plan, *arguments: str, **options) -> subprocess.CompletedProcess:
    """Call Snakemake on a plan."""
    config = ["--config", f"profile={plan.profile}", f"data={plan.data}"]
    plan.root.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(paths.ROOT / "Snakefile")]
    command += ["--directory", str(plan.root), "--nolock", *arguments, *config]
    return subprocess.run(command, **options)


def stale(plan: Plan) -> set[str]:
    """Return the names of the runnable notebooks that are not fresh."""
    if not (plan.root / ".snakemake").is_dir():  # nothing has been run
        return {step.name for step in plan.runnable}
    summary = snakemake(plan, "--summary", "--quiet", "all", capture_output=True, text=True)
    if summary.returncode:
        raise RagkitError(f"the workflow cannot be read: {summary.stderr.strip()[-2000:]}")
    header, *rows = [line.split("\t") for line in summary.stdout.splitlines() if "\t" in line]
    rule, state = header.index("rule"), header.index("plan")
    changed = {row[rule] for row in rows if row[state] != "no update"}
    late: set[str] = set()
    for step in plan.runnable:  # late as well when one before it is
        if {step.name, *(other.name for other in plan.before(step))} & (changed | late):
            late.add(step.name)
    return late


def export(plan: Plan) -> list[Path]:
    """Copy the figures and results of the profile "paper" to `figures/` and `data/results/`.

    `UsageError` for another profile: only real data may stand there.
    """
    if plan.profile != "paper":
        raise UsageError("only the profile 'paper' exports to figures/ and data/results/")
    written = []
    if (ran := experiments.folder(plan.profile)).is_dir():
        own = shutil.ignore_patterns("*.answers.jsonl")  # they may hold texts of the data
        shutil.copytree(ran, experiments.EXPORTED, ignore=own, dirs_exist_ok=True)
        written += sorted(experiments.EXPORTED.rglob("*.*"))
    for kind, target in (("figures", paths.FIGURES), ("results", paths.RESULTS)):
        for step in plan.runnable:
            made = sorted((plan.root / kind / step.name).glob("[!.]*"))
            shutil.rmtree(target / step.name, ignore_errors=True)
            if made:
                (target / step.name).mkdir(parents=True)
            written += [Path(shutil.copy(path, target / step.name)) for path in made]
    if (board := plan.root / "results" / "scoreboard.csv").is_file():
        paths.RESULTS.mkdir(parents=True, exist_ok=True)
        written.append(Path(shutil.copy(board, paths.RESULTS / board.name)))
    return written
