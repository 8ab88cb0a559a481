"""The embedded sample: written by careful authors, replayed from the ledger of their answers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ragkit import paths, store
from ragkit.errors import DataError
from ragkit.files import read_jsonl, sha256, write_jsonl, write_text
from ragkit.synth.company import generate_company
from ragkit.synth.datamorgana import make_questions
from ragkit.synth.helpcentre import generate_helpcentre
from ragkit.synth.stages import AuthorOptions
from ragkit.synth.stamp import once

LEDGER = "ledger.jsonl.xz"
CORRECTIONS = "labels/corrections.jsonl"
KEYS = ("question_id", "doc_id", "id", "Index")  # of a row; other rows are counted from 0
WRITER = {"seed": 0, "author": "openai:careful-authors"}
COMPANY = {"documents": 320, "questions": 150, "metadata_questions": 20, "surplus": 1.15}
HELPCENTRE = {"articles": 80, "expertwritten": 40, "simulated": 40}
DATAMORGANA = 120


def cached_company() -> Path:
    """Return a folder with the company as it was replayed, its plan and notes; replay it if needed.

    It lies in the cache folder. What later readers corrected stands in `paths.SAMPLE` alone.

    >>> (cached_company() / "plan").is_dir()
    True
    """
    code = [store.code_digest(__name__), sha256(paths.SAMPLE / LEDGER)]
    name = f"sample-{store.digest(code)[:12]}"
    return once(name, partial(_company, folder=paths.SAMPLE))


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
        parts = {
            company: "enterpriserag_bench/*",
            centre: "wixqa/**/*",
            Path(made): "liverag/questions",
        }
        kept = {
            path.relative_to(part).as_posix(): path
            for part, pattern in parts.items()
            for path in sorted(part.glob(f"{pattern}.jsonl"))
        }
        edits = corrections(Path(folder) / CORRECTIONS, kept)
        for name, path in kept.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            if edits[name]:
                write_jsonl(out / name, corrected(read_jsonl(path), edits[name]))
            else:
                shutil.copyfile(path, out / name)
    return len(kept)


def corrections(path: Path, files: Iterable[str]) -> dict[str, list[dict]]:
    """Return the readers' corrections of each file; `DataError` if one is of another file."""
    edits: dict[str, list[dict]] = {name: [] for name in files}
    for edit in read_jsonl(path, ["file", "row"]):
        if edit["file"] not in edits:
            raise DataError(f"{path}: the sample has no file {edit['file']!r} to be corrected")
        edits[edit["file"]].append(edit)
    return edits


def corrected(rows: Sequence[dict], edits: Sequence[Mapping[str, Any]]) -> list[dict]:
    """Return the rows of a file with their readers' corrections.

    The `row` of an edit is the id of a row, or its number from 0 where it has none; `old` and `new`
    are texts, one of which takes the other's place wherever it stands in the row; `field` and
    `value` set a whole field. Raises `DataError` if there is no such row, or nothing changes.

    >>> edit = {"file": "documents.jsonl", "row": "a", "old": "teh", "new": "the"}
    >>> corrected([{"doc_id": "a", "text": "teh pump"}], [edit])
    [{'doc_id': 'a', 'text': 'the pump'}]
    """
    found = list(map(dict, rows))
    ids = [str(next((r[key] for key in KEYS if key in r), n)) for n, r in enumerate(rows)]
    for edit in edits:
        place = f"{edit['file']}, row {edit['row']!r}"
        if (asked := str(edit["row"])) not in ids:
            raise DataError(f"{place}: a correction of a row that is not there")
        row = found[ids.index(asked)]
        change = {edit["field"]: edit["value"]} if "field" in edit else {}
        changed = row | change if change else _replaced(row, edit["old"], edit["new"])
        if changed == row:
            raise DataError(f"{place}: a correction changes nothing")
        row.update(changed)
    return found


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
