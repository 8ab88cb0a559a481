"""One site, offline: the report of a profile and the documentation, built by Sphinx.

`pages/` holds the settings, templates and guides; this module writes what only a run can know, and
`ragkit.report.site.code` what only the code can. Notebooks are shown as they were executed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader

from ragkit import datasets, display, paths
from ragkit.errors import DataError, MissingData, RagkitError
from ragkit.files import write_text
from ragkit.llm import Ledger, dollars
from ragkit.report import experiments, figures, results, scoreboard, tables
from ragkit.report.pipeline import Plan
from ragkit.report.site import code
from ragkit.report.site.code import PAGES
from ragkit.report.site.executed import Executed

LEDGER = paths.SAMPLE / "ledger.jsonl.xz"
TEMPLATES = ("index", "scoreboard", "notebooks", "gallery", "architecture", "reference", "guides")
SHOWN = ["paper", "table", "row", "column", "metric", "printed", "measured", "status"]


def build(plan: Plan, commands: dict[str, str]) -> Path:
    """Build the site of a profile from what was executed; return its first page.

    `build/PROFILE/site/index.html` needs neither network nor server: a browser opens the file. A
    page whose source has not changed is kept. `commands` are the help texts of the command line, by
    name. `RagkitError` if Sphinx fails.
    """
    source, target = plan.root / "site-source", plan.root / "site"
    write_sources(plan, source, commands)
    command = [sys.executable, "-m", "sphinx", "-q", "-j", "auto", "-b", "html", "-c", str(PAGES)]
    command += ["-d", str(plan.root / "site-trees"), str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    log = write_text(plan.root / "logs" / "site.log", done.stdout + done.stderr)
    if done.returncode:
        raise RagkitError(f"no site: {done.stderr.strip()[-500:]}", f"the log is {log}")
    # What only those who change the theme read.
    for path in (*target.rglob("*.map"), target / "_static" / "webpack-macros.html"):
        path.unlink(missing_ok=True)
    return target / "index.html"


def write_sources(plan: Plan, folder: Path, commands: dict[str, str]) -> None:
    """Write what Sphinx reads; a file that would be the same stays untouched, one too many goes."""
    made = plan.root / "notebooks"
    at_hand = [step for step in plan.runnable if (made / step.path.name).is_file()]
    run = [Executed(step, plan.root) for step in at_hand]
    guides = {f"guides/{path.stem}.md": path for path in sorted((PAGES / "guides").glob("*.md"))}
    texts = {name: path.read_text("utf-8") for name, path in guides.items()} | code.reference()
    content = {"profile": plan.profile, "run": run, "guides": list(guides), **code.rooms()}
    content["ran"] = _ran(plan)
    content |= _home(plan, run) | {"modules": code.modules(), "workflow": code.workflow(plan)}
    for name in TEMPLATES:
        texts[f"{name}.md"] = render(name, **content)
    texts["reference/commands.md"] = render("commands", commands=commands)
    texts["workflow.svg"] = render("workflow.svg", **code.drawn_workflow(plan))
    if content["ran"]:
        texts["experiments.md"] = render("experiments", store=plan.store, **content)
    if content["board"] is not None:
        texts["scoreboard.html"] = _table(content["board"], run, plan.profile)
    for one in run:
        texts[f"notebooks/{one.step.name}.ipynb"] = one.page(_provenance(plan, one))
    for name, text in texts.items():
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != text:
            write_text(folder / name, text)
    wanted = set(texts)
    for path in (path for one in run for path in one.figures):
        wanted.add(name := f"figures/{path.parent.name}/{path.name}")
        if not (folder / name).is_file() or (folder / name).read_bytes() != path.read_bytes():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / name)
    for path in list(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).as_posix() not in wanted:
            path.unlink()


def render(name: str, **content) -> str:
    """Return the page `pages/NAME`, or `pages/NAME.md`, with its content."""
    pages = Environment(loader=FileSystemLoader(PAGES), trim_blocks=True, lstrip_blocks=True)
    pages.filters |= {"alt": figures.told, "dollars": dollars}
    pages.filters["count"] = lambda number: "unknown" if number is None else f"{number:,}"
    return pages.select_template([f"{name}.md", name]).render(content)


def _home(plan: Plan, run: list[Executed]) -> dict:
    """Return what the first page says of a run, and its scoreboard if it has one."""
    by_name = {one.step.name: one for one in run}
    missing = [
        {"name": name, "reason": reason, "how": how} for name, (reason, how) in plan.missing.items()
    ]
    late = [step.name for step in plan.runnable if step.name not in by_name]
    again = f"make reproduce PROFILE={plan.profile}"
    missing += [{"name": name, "reason": "not run yet", "how": again} for name in late]
    path = scoreboard.path(plan.profile)
    board = scoreboard.read(path) if path.is_file() else None
    found = [line for one in run if one.step.name == "90-scoreboard" for line in one.findings]
    found += [f"{one.answer} (`{one.step.name}`)" for one in run if one.step.headline]
    home = {"missing": missing, "board": board, "found": found, "numbers": {}, "commands": []}
    hero = by_name.get("90-scoreboard")
    home["hero"] = hero.figures[0] if hero and hero.figures else None
    if board is not None:
        count = tables.counts(board).loc["all"]
        names = {"numbers": "printed numbers", "match": "match", "differs": "differ"}
        names |= {"substitute": "measured with a substitute"}
        home["numbers"] = {words: int(count[name]) for name, words in names.items()}
        waiting = board[board["status"].isin(["needs data", "needs a model"])]
        counted = waiting.groupby("command", sort=False).size().sort_values(ascending=False)
        home["commands"] = [{"numbers": n, "command": command} for command, n in counted.items()]
    return home


def _table(board: pd.DataFrame, run: list[Executed], profile: str) -> str:
    """Return the scoreboard as a table that a browser sorts and filters without network."""
    from itables import options, to_html_datatable
    from itables.javascript import generate_init_offline_itables_html

    cells = {}
    for one in run:
        with suppress(MissingData):  # a notebook may measure nothing that is printed
            measured = results.read(one.root.name, one.step.name, "measured")
            cells |= {tuple(map(str, key)): one for key in measured[tables.KEY].to_numpy()}
    ran = experiments.measured(profile).astype(dict.fromkeys(tables.KEY, str))
    ran = ran.set_index(tables.KEY)["ran"].to_dict()
    shown = board.copy()
    links = []
    for row in shown[tables.KEY].astype(str).itertuples(index=False):
        place = told = ""
        if tuple(row) in ran:  # in the place of what a notebook measured
            place, told = f"experiments.html#ran-{ran[tuple(row)]}", "an experiment"
        elif one := cells.get(tuple(row)):
            anchor = one.cell_of(tables.title(row.paper, row.table))
            place, told = f"notebooks/{one.name}.html#cell-{anchor}", one.name
        links.append(f'<a href="{place}">{told}</a>' if told else "")
    shown["measured"] = [
        "" if pd.isna(value) else f"{value:.{max(tables.decimals(printed, 3), 0)}f}"
        for value, printed in zip(board["measured"], board["printed"], strict=True)
    ]
    shown["paper"] = shown["paper"].replace(figures.NAMES)
    shown["table"] = [tables.title("", name)[2:] for name in shown["table"]]
    notes = shown["command"].fillna("").str.cat(shown["note"].fillna(""), sep=" ").str.strip()
    shown = shown[SHOWN].fillna("").assign(note=notes)
    for name in ("row", "column", "metric"):
        shown[name] = shown[name].astype(str).str.replace("_", " ")
    shown = shown.map(lambda cell: display.escaped(cell))
    shown.insert(len(SHOWN), "measured in", links)
    numbers = [SHOWN.index("printed"), SHOWN.index("measured")]
    right = [{"targets": numbers, "className": "dt-right"}]
    script = generate_init_offline_itables_html(options.dt_bundle)
    return script + to_html_datatable(
        shown, connected=False, allow_html=True, showIndex=False, maxBytes=0, table_id="board",
        pageLength=25, lengthMenu=[25, 100, len(shown)], classes="display compact",
        column_filters="header", columnDefs=right, style="width:100%", display_logo_when_loading=False,
    )  # fmt: skip


def _provenance(plan: Plan, one: Executed) -> str:
    """Return a list in Markdown: data with digests, parameters, commit, models called, minutes."""
    given = one.book.metadata["papermill"].get("parameters", {})
    content = {"sample": plan.profile == "sample", "store": plan.store}
    content["files"] = _files(plan, *one.step.datasets, *one.step.optional)
    made = one.book.metadata.get("ragkit", {})
    calls = made.get("calls")
    # The calls that wrote the sample are told with the sample, whoever replays them.
    own = os.path.relpath(LEDGER, paths.ROOT)
    calls = calls and [row for row in calls if row["ledger"] != own]
    written = _written() if plan.profile == "sample" or one.step.shows_sample else []
    content |= {"calls": calls, "written": written, "commit": made.get("commit")}
    return render("provenance", one=one, given=given, **content)


def _files(plan: Plan, *names: str) -> list[dict]:
    """Return the files of datasets that are at hand, or what is wrong with them."""
    files = []
    for name in names if plan.store else ():
        for path in datasets.files(name):
            try:
                if found := plan.store.find(path):
                    files.append({"name": name, "found": found})
            except DataError as error:
                files.append({"name": name, "path": path, "error": error.message})
    return files


def _ran(plan: Plan) -> list[dict]:
    """Return the records of experiments, each with the files of its paper."""
    found = experiments.records(plan.profile)
    files = {one["paper"]: _files(plan, one["paper"]) for one in found}
    return [{"calls": None, **one, "files": files[one["paper"]]} for one in found]


@cache
def _written() -> list[dict]:
    """Return how the embedded sample was written: requests and tokens by model."""
    with Ledger(LEDGER, readonly=True) as book:
        table = pd.DataFrame(book.summary())
    return table.groupby("model", as_index=False)["requests"].sum().to_dict("records")
