"""Every guide's commands run as they are written; what does not says in the guide what it needs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ragkit import datasets
from ragkit.files import write_jsonl
from tests.conftest import ROOT
from tests.datasets import release
from tests.guides import GUIDES, blocks
from tests.llm.server import calls, serve, tool_call
from tests.report.vendor import Vendor

SECONDS = 1500  # of a guide
BLOCKS = [block for guide in GUIDES for block in blocks(guide)]
TYPED = re.compile(r"^(make|ragkit|\.venv/bin/ragkit|snakemake|pip|python|import|from) ", re.M)
# What stands in a guide for something of the reader's: a folder with real files, a model's address.
DATA, ADDRESS = "/some/folder", "http://127.0.0.1:8080/v1"


def answer(body, *given):
    """Answer as the vendor of the tests; a tool is called as its schema wants it."""
    if body.get("tools") and body.get("tool_choice") == "required":
        return calls(tool_call(body["tools"][0]["function"]["name"], {"capital": "Rome"}))
    return vendor(body, *given)


vendor = Vendor()


def test_the_guides_are_read():
    assert len(BLOCKS) > 20
    assert sum(not (block.needs or block.ci) for block in BLOCKS) > len(BLOCKS) / 2


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_a_block_runs_or_says_why_not(block):
    if block.language not in ("bash", "python") and not block.file:
        assert not TYPED.search(block.text), "a listing holds commands"
    assert not (block.needs and block.ci)
    if block.ci:
        run = (ROOT / ".ci" / "run").read_text("utf-8").replace('"$mirror"', DATA)
        steps = [line.strip() for line in run.splitlines()]
        for line in block.text.splitlines():
            command = line.partition("#")[0].strip()
            assert any(f"{step} ".startswith(f"{command} ") for step in steps), command


@pytest.fixture
def workspace(tmp_path):
    """A copy of the workspace with this environment, and a folder of somebody's files."""
    copy = tmp_path / "workspace"
    skip = shutil.ignore_patterns("__pycache__", "cache")
    for name in ("ragkit", "notebooks", "data", "tests", "figures"):
        shutil.copytree(ROOT / name, copy / name, ignore=skip)
    for path in (path for path in ROOT.iterdir() if path.is_file()):
        shutil.copy(path, copy)
    (copy / ".venv").mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (copy / ".venv" / name).symlink_to(Path(sys.prefix) / name)
    (copy / ".venv" / ".ready").touch()
    (copy / "data" / "cache").mkdir()
    (copy / "data" / "cache" / "models").symlink_to(ROOT / "data" / "cache" / "models")
    mine = datasets.load("enterpriserag_bench").part(documents=100, questions=20)
    mine.frames["questions"] = mine.questions[mine.questions["facts"].map(len) > 0]
    for name in ("documents", "questions"):
        rows = json.loads(mine.frames[name].to_json(orient="records"))
        write_jsonl(copy / "FOLDER" / f"{name}.jsonl", rows)
    write_jsonl(copy / "questions.jsonl", rows)
    found = {"answer": "Ask support.", "doc_ids": [mine.documents["doc_id"].iloc[0]]}
    answers = ({"question_id": row["question_id"]} | found for row in rows)
    write_jsonl(copy / "answers.jsonl", answers)
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_runs_as_it_is_written(guide, workspace):
    others = ("RAGKIT", "COV", "MAKE", "OPENAI")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    path = f"{workspace / '.venv' / 'bin'}:{os.environ['PATH']}"
    kept |= {"PATH": path, "PYTHONPATH": str(workspace), "HF_HUB_OFFLINE": "1"}
    script, python = ["set -eux"], ""
    for block in blocks(guide):
        if block.file:
            (workspace / block.file).write_text(block.text, "utf-8")
            (workspace / block.file).chmod(0o755)
        elif block.needs or block.ci or block.language not in ("bash", "python"):
            continue
        elif block.language == "bash":
            script.append(block.text)
        else:
            python += block.text
            script.append(f"python - <<'END_OF_PYTHON'\n{python}END_OF_PYTHON")
    with serve(answer) as server:
        text = "\n".join(script).replace(ADDRESS, server.url)
        if DATA in text:
            text = text.replace(DATA, str(release.make(workspace / "official")))
        kept |= {f"{name}_BASE_URL": server.url for name in ("OPENAI", "ANTHROPIC", "GEMINI")}
        done = subprocess.run(
            ["bash", "-c", text], cwd=workspace, env=kept, timeout=SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
