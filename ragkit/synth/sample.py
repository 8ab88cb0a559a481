"""The embedded sample: written by careful authors, replayed from the ledger of their answers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from ragkit import paths
from ragkit.files import write_text
from ragkit.synth.author import AuthorOptions
from ragkit.synth.company import generate_company
from ragkit.synth.datamorgana import make_questions
from ragkit.synth.helpcentre import generate_helpcentre

LEDGER = "ledger.jsonl.xz"
WRITER = {"seed": 0, "author": "openai:careful-authors"}
COMPANY = {"documents": 320, "questions": 150, "metadata_questions": 20, "surplus": 1.15}
HELPCENTRE = {"articles": 80, "expertwritten": 40, "simulated": 40}
DATAMORGANA = 120
OFFICIAL = ("documents.jsonl", "questions.jsonl", "extra_questions.jsonl")


def write_sample(
    out: str | Path,
    folder: str | Path = paths.SAMPLE,
    progress: Callable[[str, int, int], None] | None = None,
) -> int:
    """Replay the embedded sample from its ledger to `out`; return the number of files.

    The pipelines of the three papers ran for a company's page with careful authors in place of a
    model. Their answers are in the ledger: nothing is asked, and the same files come out.

    Parameters
    ----------
    out : path-like
        Files of the same names are replaced when all are made; others are left alone.
    folder : path-like
        With `company.md`, `ledger.jsonl.xz` and `plan`.
    progress : callable, optional
        Called with stage, steps done and steps in all.

    Returns
    -------
    int

    Raises
    ------
    ModelError
        If the ledger lacks an answer, as after an edit of a prompt.
    """
    out, page = Path(out), Path(folder) / "company.md"
    asked = WRITER | {
        "author_options": AuthorOptions(ledger=Path(folder) / LEDGER, replay=True),
        "progress": progress,
    }
    with tempfile.TemporaryDirectory(prefix="ragkit-sample-") as made:
        company, centre, both = (Path(made) / name for name in ("company", "centre", "both"))
        generate_company(page, company, plan=Path(folder) / "plan", **COMPANY, **asked)
        generate_helpcentre(centre, page=page, **HELPCENTRE, **asked)
        texts = [(part / "documents.jsonl").read_text("utf-8") for part in (company, centre)]
        write_text(both / "documents.jsonl", "".join(texts))
        morgana = make_questions(both, questions=DATAMORGANA, **asked)
        morgana.write(Path(made) / "liverag" / "questions.jsonl")
        kept = {
            f"enterpriserag_bench/{name}": company / "enterpriserag_bench" / name
            for name in OFFICIAL
        }
        for path in sorted(centre.glob("wixqa/**/*.jsonl")):
            kept[path.relative_to(centre).as_posix()] = path
        kept["liverag/questions.jsonl"] = Path(made) / "liverag" / "questions.jsonl"
        for name, path in kept.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, out / name)
    return len(kept)
