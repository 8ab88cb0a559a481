"""The embedded sample: one company, the questions about it, and its help centre, from one seed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from ragkit.synth.datamorgana import make_questions
from ragkit.synth.helpcentre import generate_helpcentre
from ragkit.synth.pipeline import generate

SEED = 0
COMPANY = {"documents": 2000, "questions": 200}
LIVERAG = {"questions": 200}
HELPCENTRE = {"articles": 300, "expertwritten": 60, "simulated": 60}
OFFICIAL = ("documents.jsonl", "questions.jsonl", "extra_questions.jsonl")


def write_sample(out: str | Path, progress: Callable[[str, int, int], None] | None = None) -> int:
    """Write the generated part of `data/sample` to `out`; return the number of files.

    The questions of DataMorgana are about documents of the same company. The same version gives
    the same bytes on every machine.

    Parameters
    ----------
    out : path-like
        Files of the same names are replaced when all are made; others are left alone.
    progress : callable, optional
        Called with stage, steps done and steps in all.

    Returns
    -------
    int
    """
    out = Path(out)
    with tempfile.TemporaryDirectory(prefix="ragkit-sample-") as made:
        folder = Path(made)
        generate(folder / "company", seed=SEED, **COMPANY, progress=progress)
        asked = make_questions(folder / "company", seed=SEED, **LIVERAG, progress=progress)
        asked.write(folder / "liverag" / "questions.jsonl")
        generate_helpcentre(folder / "centre", seed=SEED, **HELPCENTRE, progress=progress)
        kept = {
            f"enterpriserag_bench/{name}": folder / "company" / "enterpriserag_bench" / name
            for name in OFFICIAL
        }
        kept["liverag/questions.jsonl"] = folder / "liverag" / "questions.jsonl"
        centre = folder / "centre"
        for path in sorted(centre.glob("wixqa/**/*.jsonl")):
            kept[path.relative_to(centre).as_posix()] = path
        for name, path in kept.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, out / name)
    return len(kept)
