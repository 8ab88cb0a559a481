"""The embedded sample: one company, the questions about it, and a help centre, from one seed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from ragkit.synth.helpcentre import generate_helpcentre
from ragkit.synth.pipeline import generate

SEED = 0
COMPANY = {"documents": 2000, "questions": 200}
HELPCENTRE = {"articles": 300, "expertwritten": 60, "simulated": 60}
OFFICIAL = ("documents.jsonl", "questions.jsonl", "extra_questions.jsonl")


def write_sample(out: str | Path, progress: Callable[[str, int, int], None] | None = None) -> int:
    """Write the generated part of `data/sample` to `out`; return the number of files.

    The same version gives the same bytes on every machine. `liverag/questions.jsonl` is not written
    again: an earlier version made it from the same company, in other words than today's.

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
        generate_helpcentre(folder / "centre", seed=SEED, **HELPCENTRE, progress=progress)
        kept = {
            f"enterpriserag_bench/{name}": folder / "company" / "enterpriserag_bench" / name
            for name in OFFICIAL
        }
        centre = folder / "centre"
        for path in sorted(centre.glob("wixqa/**/*.jsonl")):
            kept[path.relative_to(centre).as_posix()] = path
        for name, path in kept.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, out / name)
    return len(kept)
