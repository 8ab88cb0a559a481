"""The embedded sample: written by careful authors, replayed from the ledger of their answers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit import paths, store
from ragkit.errors import DataError
from ragkit.files import read_jsonl, sha256, write_jsonl, write_text
from ragkit.synth.author import AuthorOptions
from ragkit.synth.company import generate_company
from ragkit.synth.datamorgana import make_questions
from ragkit.synth.helpcentre import generate_helpcentre

LEDGER = "ledger.jsonl.xz"
CORRECTIONS = "labels/corrections.jsonl"
KEYS = ("question_id", "doc_id", "id", "Index")  # of a row; other rows are counted from 0
WRITER = {"seed": 0, "author": "openai:careful-authors"}
COMPANY = {"documents": 320, "questions": 150, "metadata_questions": 20, "surplus": 1.15}
HELPCENTRE = {"articles": 80, "expertwritten": 40, "simulated": 40}
DATAMORGANA = 120
OFFICIAL = ("documents.jsonl", "questions.jsonl", "extra_questions.jsonl")


def cached_company() -> Path:
    """Return a folder with the company as it was replayed, its plan and notes; replay it if needed.

    It lies in the cache folder. What later readers corrected stands in `paths.SAMPLE` alone.
    """
    code = [store.code_digest(__name__), sha256(paths.SAMPLE / LEDGER)]
    folder = paths.cache_dir() / "generated" / f"sample-{store.digest(code)[:12]}"
    if not (folder / "statistics.json").is_file():
        _company(folder, paths.SAMPLE, None)
    return folder


def write_sample(
    out: str | Path,
    folder: str | Path = paths.SAMPLE,
    progress: Callable[[str, int, int], None] | None = None,
) -> int:
    """Replay the embedded sample from its ledger to `out`; return the number of files.

    The pipelines of the three papers ran for a company's page with careful authors in place of a
    model. Their answers are in the ledger: nothing is asked, and the same files come out. What
    later readers found wrong in labels and texts is corrected last (`labels/corrections.jsonl`).

    Parameters
    ----------
    out : path-like
        Files of the same names are replaced when all are made; others are left alone.
    folder : path-like
        With `company.md`, `ledger.jsonl.xz`, `plan` and `labels`.
    progress : callable, optional
        Called with stage, steps done and steps in all.

    Returns
    -------
    int

    Raises
    ------
    ModelError
        If the ledger lacks an answer, as after an edit of a prompt.
    DataError
        If a correction does not fit what was made.
    """
    out, page, asked = Path(out), Path(folder) / "company.md", _asked(folder, progress)
    with tempfile.TemporaryDirectory(prefix="ragkit-sample-") as made:
        company, centre, both = (Path(made) / name for name in ("company", "centre", "both"))
        _company(company, folder, progress)
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
        edits: dict[str, list] = {name: [] for name in kept}
        for edit in read_jsonl(Path(folder) / CORRECTIONS):
            edits[edit["file"]].append(edit)
        for name, path in kept.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            if edits[name]:
                write_jsonl(out / name, corrected(read_jsonl(path), edits[name]))
            else:
                shutil.copyfile(path, out / name)
    return len(kept)


def corrected(rows: Sequence[dict], edits: Sequence[Mapping[str, Any]]) -> list[dict]:
    """Return the rows of a file with their readers' corrections.

    Parameters
    ----------
    rows : sequence of dict
    edits : sequence of dict
        `row` is the id of a row, or its number from 0 where it has none; `old` and `new` are texts,
        one of which takes the other's place wherever it stands in the row; `field` and `value` set
        a whole field.

    Returns
    -------
    list of dict

    Raises
    ------
    DataError
        If there is no such row, or the correction changes nothing.
    """
    found = {_id(row, place): dict(row) for place, row in enumerate(rows)}
    for edit in edits:
        row = found.get(str(edit["row"]))
        if row is None:
            raise DataError(f"{edit['file']} has no row {edit['row']!r} that could be corrected")
        changed = (
            row | {edit["field"]: edit["value"]}
            if "field" in edit
            else _replaced(row, edit["old"], edit["new"])
        )
        if changed == row:
            raise DataError(f"{edit['file']}, row {edit['row']!r}: a correction changes nothing")
        row.update(changed)
    return list(found.values())


def _id(row: Mapping[str, Any], place: int) -> str:
    return str(next((row[key] for key in KEYS if key in row), place))


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, list):
        return [_replaced(one, old, new) for one in value]
    if isinstance(value, dict):
        return {key: _replaced(one, old, new) for key, one in value.items()}
    return value


def _company(out: Path, folder: str | Path, progress: Callable | None) -> None:
    page, plan = Path(folder) / "company.md", Path(folder) / "plan"
    generate_company(page, out, plan=plan, **COMPANY, **_asked(folder, progress))


def _asked(folder: str | Path, progress: Callable | None) -> dict:
    """Return how the authors are asked: by the ledger alone."""
    options = AuthorOptions(ledger=Path(folder) / LEDGER, replay=True)
    return WRITER | {"author_options": options, "progress": progress}
