"""A newcomer's paths to a site, as the README types them, with nothing kept from earlier runs.

The environment is this one; its models are here. A clone of the last commit runs the sample; then
1,000 documents and 100 questions, written by the offline author, become a benchmark of one's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from ragkit import paths
from ragkit.files import write_jsonl
from ragkit.synth import generate, stream
from tests.bench import most, timed

DOCUMENTS, QUESTIONS, MINUTE = 1000, 100, 60


def run():
    with TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(paths.ROOT), str(clone)], check=True)
        (clone / ".venv").mkdir()
        for name in ("bin", "lib", "pyvenv.cfg"):
            (clone / ".venv" / name).symlink_to(Path(sys.prefix) / name)
        (clone / "data" / "cache").mkdir()
        (clone / "data" / "cache" / "models").symlink_to(paths.DATA / "cache" / "models")
        (clone / ".venv" / ".ready").touch()
        yield _minutes("make reproduce, make report: to the sample's site", 9, clone, [
            "make reproduce", "make report", "test -f build/sample/site/index.html",
        ])  # fmt: skip
        _write(clone / "FOLDER")
        yield _minutes(f"own {DOCUMENTS:,} documents, {QUESTIONS} questions: to the site", 10, clone, [
            "ragkit new my-benchmark --from FOLDER", "ragkit benchmark my-benchmark",
            "test -f build/my-benchmark/site/index.html",
        ])  # fmt: skip


def _minutes(what: str, target: float, clone: Path, commands: list[str]):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAGKIT")}
    path = f"{clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    given = {"env": kept | {"PATH": path, "PYTHONPATH": str(clone)}, "cwd": clone, "check": True}
    script = ["bash", "-e", "-c", "\n".join(commands)]
    seconds, _ = timed(lambda: subprocess.run(script, stdout=subprocess.DEVNULL, **given))
    return most(what, seconds / MINUTE, target, "min")


def _write(folder: Path) -> None:
    """Write the offline author's documents and questions as one's own files."""
    made = folder.with_name("company")
    generate(made, documents=DOCUMENTS, seed=0, questions=QUESTIONS, metadata_questions=0)
    rows = ({"doc_id": row["doc_id"], "title": row["title"], "text": row["content"]}
            for row in stream(made))  # fmt: skip
    write_jsonl(folder / "documents.jsonl", rows)
    lines = (made / "enterpriserag_bench" / "questions.jsonl").read_text("utf-8").splitlines()
    write_jsonl(folder / "questions.jsonl", map(json.loads, lines))
