"""The site's sources: what a page says, what is left out, and that guides can be typed."""

from __future__ import annotations

import base64
import re
import shlex
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from ragkit.cli import declare, root
from ragkit.datasets import reported
from ragkit.llm import Ledger
from ragkit.report import experiments, figures, pipeline, scoreboard, site, tables
from ragkit.report.site import code
from ragkit.report.site.executed import Executed

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = new_output("stream", text="<script>alert(1)</script>")
UNKNOWN = {"cost_usd": None, "prompt_tokens": None}
GUIDES = sorted((site.PAGES / "guides").glob("*.md"))


def shown(**data):
    return new_output("execute_result", data=data)


def called(**named):
    """What a run recorded of one model."""
    labels = {"model": "openai:m", "purpose": "reader", "prompt": "p@1", "ledger": "build/l.sqlite"}
    counts = {"requests": 1200, "failed": 0, "prompt_tokens": 34567}
    price = {"completion_tokens": 89, "cost_usd": 1.25, "prices": "2026-01-02"}
    return {**labels, **counts, **price, **named}


def write_executed(root: Path, name: str, **recorded) -> None:
    """An executed notebook with one figure, one compared table, noise and an answer."""
    figures.use_style()
    fig, ax = plt.subplots()
    ax.set(xlabel="recall (higher is better)", ylabel="system")
    path = figures.save(fig, root / "figures" / name / "recall")
    image = base64.b64encode(path.read_bytes()).decode()
    table = tables.show(reported.load("liverag", "4")[["row", "value"]], "LiveRAG, Table 4")
    noise = {"text/plain": "PosixPath('/somewhere/measured.csv')"}
    static = {"application/vnd.jupyter.widget-view+json": {}, "text/html": "<p>static</p>"}
    widget = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "rank: 0%|  | 0/4"}
    told = "- Data: few.\n- Highest R@5: 0.9."
    cells = [
        new_markdown_cell("# Recall\n\n**Who finds $k$\ndocuments?** More.", id="title"),
        new_code_cell("profile = 'sample'", id="params", metadata={"tags": ["parameters"]}),
        new_code_cell("run()", id="run", outputs=[shown(**widget), shown(**noise), shown(**static), HOSTILE]),
        new_code_cell(
            "out.versus('liverag', '4')", id="compare", outputs=[shown(**{"text/html": table.to_html()})]
        ),
        new_markdown_cell("## How many are found\n\nOf five.", id="about-recall"),
        new_code_cell("score()", id="score-recall", outputs=[shown(**static)]),
        new_code_cell("draw()", id="fig-recall", outputs=[shown(**{"image/png": image})]),
        new_code_cell("warn()", id="warn", outputs=[new_output("stream", name="stderr", text="W!")]),
        new_code_cell("say()", id="takeaways", outputs=[shown(**{"text/markdown": told})]),
    ]  # fmt: skip
    book = new_notebook(cells=cells)
    book.metadata["papermill"] = {"duration": 90.0, "parameters": {"k": 5}}
    book.metadata["ragkit"] = {"commit": "abc", **recorded}
    (root / "notebooks").mkdir(parents=True, exist_ok=True)
    nbformat.write(book, root / "notebooks" / f"{name}.ipynb")


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """The profile "sample", of which one notebook and the scoreboard have run."""
    monkeypatch.setenv("RAGKIT_BUILD", str(tmp_path))
    plan = pipeline.make_plan("sample")
    write_executed(plan.root, "11-wixqa-retrieval")
    printed = reported.load("liverag", "4")
    found = tables.fill(printed, printed.iloc[:1][["row", "column", "metric"]].assign(measured=3.0))
    scoreboard.write(tables.compare(reported.load(), found), "sample")
    results = plan.root / "results" / "11-wixqa-retrieval"
    results.mkdir(parents=True)
    found.to_csv(results / "measured.csv", index=False)
    return plan


@pytest.fixture
def executed(plan):
    (step,) = [step for step in plan.steps if step.name == "11-wixqa-retrieval"]
    return Executed(step, plan.root)


def test_question_answer_figure_and_minutes(executed):
    assert executed.title == "Recall"
    assert executed.question == "Who finds $k$ documents?"
    assert executed.answer == "Highest R@5: 0.9."
    assert executed.minutes == 1.5
    assert [path.stem for path in executed.figures] == ["recall"]
    assert executed.statuses == ", 1 printed numbers measured"
    assert executed.cell_of("LiveRAG, Table 4") == "compare"
    assert executed.cell_of("LiveRAG, Table") == ""


def test_a_page_begins_with_the_findings_and_leaves_noise_out(executed):
    page = nbformat.reads(executed.page("- commit"), 4)
    texts = [cell.source for cell in page.cells]
    assert texts[1] == "## What was found\n\n- Data: few.\n- Highest R@5: 0.9."
    assert texts[-1].endswith("- commit")
    parts = [text.splitlines()[0] for text in texts if text.startswith("## ")][1:-1]
    assert parts == ["## Run", "## Compare", "## How many are found"]
    whole = nbformat.writes(page)
    for noise in ("PosixPath", "0/4", "W!", "profile = 'sample'", "widget-view"):
        assert noise not in whole
    assert "<p>static</p>" in whole
    assert '<span id="cell-compare">' in whole.replace("\\", "")
    (drawn,) = [text for text in texts if "{image}" in text]
    assert "../figures/11-wixqa-retrieval/recall.png" in drawn
    assert "Across: recall (higher is better). Up: system" in drawn
    assert not any("image/png" in str(cell.get("outputs")) for cell in page.cells)


def test_sources_say_what_was_found_and_what_was_not_run(plan, tmp_path):
    folder = tmp_path / "source"
    site.write_sources(plan, folder, declare.helps())
    home = (folder / "index.md").read_text("utf-8")
    assert "Highest R@5: 0.9. (`11-wixqa-retrieval`)" in home
    assert "embedded sample" in home
    assert "| `12-wixqa-answers` | not run yet | `make reproduce PROFILE=sample` |" in home
    board = (folder / "scoreboard.html").read_text("utf-8")
    assert "notebooks/11-wixqa-retrieval.html#cell-compare" in board
    assert "<h2>ragkit reproduce" not in home
    commands = (folder / "reference" / "commands.md").read_text("utf-8")
    assert "## ragkit irt fit" in commands
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    (folder / "left.md").write_text("of an earlier run")
    site.write_sources(plan, folder, declare.helps())
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        ({}, "this run did not record what it asked"),
        ({"calls": []}, "no language model was called"),
        # The replay of the sample is told with the sample.
        ({"calls": [called(ledger="data/sample/ledger.jsonl.xz")]}, "no language model was called"),
        (
            {"calls": [called()]},
            "`openai:m`, reader, prompt `p@1`: 1,200 requests in the ledger `build/l.sqlite`, "
            "0 without a value; 34,567 tokens in, 89 out; price $1.25, by",
        ),
        ({"calls": [called(**UNKNOWN)]}, "unknown tokens in, 89 out; price"),
    ],
)
def test_a_page_says_which_models_were_called(plan, recorded, words):
    write_executed(plan.root, "11-wixqa-retrieval", **recorded)
    (step,) = [step for step in plan.steps if step.name == "11-wixqa-retrieval"]
    said = " ".join(site._provenance(plan, Executed(step, plan.root)).split())
    assert words in said
    assert "- Code: commit `abc`. - " in said
    with Ledger(site.LEDGER, readonly=True) as book:
        asked = sum(row.repair_of is None for row in book)
    assert f"made from {asked:,} requests that `openai:careful-authors` answered" in said


def test_a_number_of_an_experiment_leads_to_its_record(plan, tmp_path):
    folder = tmp_path / "source"
    site.write_sources(plan, folder, declare.helps())
    assert not (folder / "experiments.md").exists()
    assert "experiments" not in (folder / "index.md").read_text("utf-8").split()
    value = {"metric": "token_f1", "type": "overall", "value": 0.25, "low": None, "high": None}
    record = {
        "experiment": "wixqa-table-3", "paper": "wixqa", "system": "bm25+gpt_4o",
        "fills": {"retriever": "bm25", "reader": "gpt_4o"}, "data": "<b>sample", "commit": "abc",
        "judge": {"name": "offline"}, "reader": {"name": "openai:gpt-4o", "prompt": "a@1"},
        "departures": {"all": ["sample"], "reader": [], "judge": {}}, "notes": ["judge offline"],
        "values": [{**value, "n": 4, "of": 5}], "spread": [], "calls": [called()],
    }  # fmt: skip
    made = {"answers": ["answer", "doc_ids", "system", "question_id"], "scores": ["item_id"]}
    experiments.save("sample", record, **{name: pd.DataFrame(columns=made[name]) for name in made})
    site.write_sources(plan, folder, declare.helps())
    page = (folder / "experiments.md").read_text("utf-8")
    for words in ('<span id="ran-0">', "commit `abc`", "&lt;b&gt;sample", "1,200 requests", "0.250", "4 of 5"):  # fmt: skip
        assert words in page
    assert "experiments" in (folder / "index.md").read_text("utf-8").split()
    board = (folder / "scoreboard.html").read_text("utf-8")
    assert board.count("experiments.html#ran-0") == 1
    assert "notebooks/11-wixqa-retrieval.html#cell-compare" in board


def test_every_notebook_answers_with_a_line_of_its_own_takeaways():
    for step in pipeline.catalogue():
        book = nbformat.read(step.path, 4)
        cells = {cell["id"]: cell.source for cell in book.cells}
        assert step.answer, f"{step.name}: name its answer in catalogue.toml"
        assert step.answer in cells["takeaways"] or step.answer in "".join(cells.values())
        drawn = "".join(source for name, source in cells.items() if name.startswith("fig"))
        assert f'"{step.figure}"' in drawn or f"{step.figure.split('-')[0]}" in drawn, step.name


def test_the_reference_lists_the_public_names():
    public = code.modules()
    assert list(public)[0] == "ground"
    assert {"IRTResult", "fit"} <= set(public["irt"]["ragkit.irt"])  # exported
    assert {"score_answers", "token_f1"} <= set(public["measures"]["ragkit.measures.metrics"])
    assert "ragkit.irt.engine" not in public["irt"]
    assert not any("cli" in module for modules in public.values() for module in modules)
    page = code.reference()["reference/ragkit.models.md"]
    first = ".. automodule:: ragkit.models\n   :no-members:\n\n.. autoclass:: ragkit.models.Card"
    assert first in page
    assert ".. autofunction:: ragkit.models.encoder\n" in page


def test_the_drawn_rooms_are_those_of_the_code():
    rooms = [room for floor in code.rooms()["floors"] for room in floor]
    assert {"cli", "report", "store", "paths"} <= {room["name"] for room in rooms}
    (irt,) = [room for room in rooms if room["name"] == "irt"]
    assert irt["imports"] == "checks, display, errors"
    assert all(room["lines"] > 0 for room in rooms)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_every_command_of_a_guide_can_be_typed(guide):
    """Commands and options exist, make targets too; nothing is run."""
    blocks = re.findall(r"```bash[^\n]*\n(.*?)```", guide.read_text("utf-8"), flags=re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line]
    assert lines, "a guide has commands"
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[:1] == ["ragkit"]:
            context, command = None, root
            words = words[1:]
            while hasattr(command, "get_command"):
                command = command.get_command(context, words.pop(0))
                assert command is not None, line
            known = [text for p in command.params for text in (*p.opts, *p.secondary_opts)]
            for word in words:
                if word.startswith("-"):
                    assert word in known, line
        elif words[:1] == ["make"]:
            dry = ["make", "--dry-run", *words[1:]]
            assert subprocess.run(dry, cwd=ROOT, capture_output=True).returncode == 0, line
        else:
            assert words[0] in ("export", "cd", "pip", "python", "snakemake"), line
