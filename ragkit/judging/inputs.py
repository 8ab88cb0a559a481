"""Read questions, answers and documents from files, and check them line by line."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.errors import DataError, MissingData, RagkitError
from ragkit.files import sha256

MAX_LINE = 16 * 2**20  # bytes
# EnterpriseRAG-Bench's names of the columns of questions, and of answers.
OFFICIAL_ANSWERS = {"document_ids": "doc_ids"}
OFFICIAL = {
    "question": "text",
    "question_type": "type",
    "gold_answer": "answer",
    "answer_facts": "facts",
    "expected_doc_ids": "gold_doc_ids",
}

_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_NUMBERS = r"\d{1,3}(?:\s?[-–,;]\s?\d{1,3})*"
_NAME = r"(?:source|sources|doc|docs|document|documents|ref|refs|citation|context|passage)"
_MARK = re.compile(
    rf"""
    \s?(?:
        \[\^?{_NUMBERS}\](?:\([^)\s]{{0,2000}}\))?             # [1], [1, 3], [2-4], [^1], [1](address)
      | 【[^】\n]{{0,200}}】                               # 【4†source】
      | \[\s?{_NAME}\s*[:#]?\s?{_NUMBERS}\s?\]           # [Document 2]
      | \(\s?{_NAME}\s*[:#]?\s?{_NUMBERS}\s?\)           # (source: 3)
      | [\[(]\s?(?:{_NAME}\s*:?\s?)?dsid_\w+(?:\s?[,;]\s?dsid_\w+)*\s?[\])]
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LINK = re.compile(r"(?<!!)\[([^\]\[\n]{1,300})\]\((?:https?://|/|#|dsid_)[^)\s]{0,2000}\)")
_LIST = re.compile(
    r"\n[ \t]*(?:\#{1,6}[ \t]*)?[*_]{0,2}(?:sources|references|citations|bibliography)[*_]{0,2}"
    r"[ \t]*:?[*_]{0,2}[ \t]*\n"
    r"(?:[ \t]*(?:(?:[-*•]|\d{1,3}[.)]|\[\^?\d{1,3}\]:?)[^\n]*)?(?:\n|\Z))+\Z",
    re.IGNORECASE,
)


def strip_citations(answer: str) -> str:
    """Remove the references from an answer, so that a judge sees its content alone.

    Removed are numbers in brackets ([1], [2, 5], [3-4], [^1], 【4†source】), named references
    ([Document 2], (source: 3)), ids of documents in brackets, the addresses of links (their text
    stays), and a list of sources at the end. Code (between backquotes) and all other brackets
    are kept.

    References
    ----------
    EnterpriseRAG-Bench, section 5.1, names the step; its released code uses a model for it.
    """
    text = _LIST.sub("", f"\n{answer}")[1:]
    parts = _CODE.split(text)
    for place in range(0, len(parts), 2):
        parts[place] = _LINK.sub(r"\1", _MARK.sub("", parts[place]))
    return "".join(parts).strip()


@dataclass
class Lines:
    """The rows of a file and its bad lines, each with its number and the reason."""

    path: Path
    rows: list[dict] = field(default_factory=list)
    bad: list[dict] = field(default_factory=list)
    total: int = 0

    def checked(self, skip_bad: bool) -> Lines:
        """Return self; raise `DataError` if lines are bad and not skipped, or none is left."""
        if self.bad and not skip_bad:
            first, *others = self.bad
            numbers = ", ".join(str(one["line"]) for one in others[:8])
            more = f" ({len(others)} more bad lines: {numbers}{', ...' * (len(others) > 8)})"
            raise DataError(
                f"{self.path}: line {first['line']}: {first['reason']}{more * bool(others)}",
                "--skip-bad (skip_bad=True) evaluates the rest",
            )
        if not self.rows:
            why = f"; line {self.bad[0]['line']}: {self.bad[0]['reason']}" if self.bad else ""
            raise DataError(f"{self.path}: no usable line of {self.total}{why}")
        return self

    def about(self) -> dict:
        """Return name, digest and number of rows, for the report."""
        return {"file": self.path.name, "sha256": sha256(self.path), "rows": len(self.rows)}


def read_questions(path: str | Path, *, skip_bad: bool = False) -> tuple[pd.DataFrame, Lines]:
    """Read questions with their gold answers and facts.

    Parameters
    ----------
    path : path-like
        JSON lines (optionally gzipped) with EnterpriseRAG-Bench's columns or ragkit's.
    skip_bad : bool
        Leave out bad lines and list them, instead of raising.

    Returns
    -------
    questions : DataFrame
    lines : Lines

    Raises
    ------
    DataError
        With the line, if a question has no id or a repeated one, no text, no gold answer, no
        facts, or a value of a wrong type.
    """
    seen: dict[str, int] = {}

    def check(row: dict, number: int) -> dict:
        row = _renamed(row, OFFICIAL)
        name = _new(row, seen)
        for column in ("text", "answer"):
            _string(row, column, "no gold answer" if column == "answer" else "")
        facts = _strings(row, "facts")
        if not facts:
            raise DataError(f"question {name!r} has no facts to judge completeness by")
        seen[name] = number
        return {
            **row,
            "type": str(row.get("type") or "unknown"),
            "facts": facts,
            "gold_doc_ids": _strings(row, "gold_doc_ids"),
        }

    lines = _read(Path(path), check).checked(skip_bad)
    return schema.check(pd.DataFrame(lines.rows), "questions", str(path)), lines


def read_answers(
    path: str | Path, questions: pd.DataFrame, *, skip_bad: bool = False
) -> tuple[pd.DataFrame, Lines]:
    """Read the answers of one or several systems.

    Parameters
    ----------
    path : path-like
        JSON lines (optionally gzipped) with question_id; answer, doc_ids (EnterpriseRAG-Bench's
        name is document_ids), or both; and system where the file holds several.
    questions : DataFrame
    skip_bad : bool
        Leave out bad lines and list them, instead of raising.

    Returns
    -------
    answers : DataFrame
        A frame `answers` with `documents_given`: whether the line has doc_ids at all. Lines that
        name no system belong to one that is called like the file.
    lines : Lines

    Raises
    ------
    DataError
        With the line, for an unknown or repeated question_id, neither answer nor doc_ids, a value
        of a wrong type, or a line of more than 16 MiB.
    """
    path = Path(path)
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    known = set(questions["question_id"])
    seen: dict[str, dict[str, int]] = {}

    def check(row: dict, number: int) -> dict:
        row = _renamed(row, OFFICIAL_ANSWERS)
        system = stem if row.get("system") is None else _string(row, "system")
        own = seen.setdefault(system, {})
        question = _new(row, own)
        if question not in known:
            raise DataError(f"question_id {question!r} is none of the {len(known):,} questions")
        answer, given = row.get("answer"), row.get("doc_ids") is not None
        if not isinstance(answer, str | None):
            raise DataError(f"answer should be a string, found {answer!r:.60}")
        if answer is None and not given:
            raise DataError(f"question {question!r} has neither answer nor doc_ids")
        documents = _strings(row, "doc_ids")
        own[question] = number
        return {
            "system": system,
            "question_id": question,
            "answer": answer,
            "doc_ids": documents,
            "documents_given": given,
        }

    lines = _read(path, check).checked(skip_bad)
    return schema.check(pd.DataFrame(lines.rows), "answers", str(path)), lines


def read_documents(path: str | Path, needed: set[str]) -> dict[str, str]:
    """Return the texts of the `needed` documents, by id, title first.

    Parameters
    ----------
    path : path-like
        The released archive (.zip), or JSON lines with doc_id and text (or content), and
        optionally title.
    needed : set of str

    Raises
    ------
    DataError
        If a line has a wrong type, or a needed document is missing.
    """
    path = Path(path)
    if path.suffix == ".zip":
        rows = _archived(path, needed)
    else:
        rows = (
            _read(path, lambda row, _: row if row.get("doc_id") in needed else {})
            .checked(False)
            .rows
        )
    texts = {}
    for row in rows:
        if row and row["doc_id"] in needed:
            body = row["text"] if "text" in row else row.get("content")
            if not isinstance(body, str):
                raise DataError(f"{path}: document {row['doc_id']!r} has no text")
            texts[row["doc_id"]] = "\n\n".join(filter(None, (row.get("title"), body)))
    absent = sorted(needed - set(texts))
    if absent:
        raise DataError(
            f"{path}: {len(absent):,} of {len(needed):,} documents are not there, such as "
            f"{absent[0]!r}"
        )
    return texts


def _archived(path: Path, needed: set[str]) -> list[dict]:
    """Return the needed documents of the released archive, without reading the others."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [
                schema.released_document(name, archive.read(name).decode("utf-8-sig"))
                for name in archive.namelist()
                if name.endswith(".txt") and Path(name).name.partition("__")[0] in needed
            ]
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: a damaged or incomplete zip file ({error})") from None


def _read(path: Path, check: Callable[[dict, int], dict]) -> Lines:
    lines = Lines(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as stream:
            for number, line in enumerate(_bounded(stream), start=1):
                try:
                    if line is None:
                        raise DataError(f"longer than {MAX_LINE // 2**20} MiB")
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                    if not text.strip():
                        continue
                    row = json.loads(text)
                    if r"\ud" in text.lower():  # half of a pair is no character
                        json.dumps(row, ensure_ascii=False).encode()
                    if not isinstance(row, dict):
                        raise DataError(f"expected an object, found {text.strip():.40}")
                    lines.rows.append(check(row, number))
                except RagkitError as error:
                    lines.bad.append({"line": number, "reason": error.message})
                except (ValueError, RecursionError) as error:  # also what is not UTF-8
                    lines.bad.append({"line": number, "reason": f"not JSON in UTF-8: {error}"})
                lines.total += 1
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
    return lines


def _bounded(stream) -> Iterator[bytes | None]:
    """Yield the lines of a binary stream; None for one that is too long, which is not kept."""
    while line := stream.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE)
        yield None


def _renamed(row: dict, official: Mapping[str, str]) -> dict:
    """Return a row under ragkit's names of the columns."""
    for theirs, ours in official.items():
        if theirs in row and row.get(ours, row[theirs]) != row[theirs]:
            raise DataError(f"{theirs} and {ours} are the same column and differ")
    return {official.get(name, name): value for name, value in row.items()}


def _new(row: dict, seen: Mapping[str, int]) -> str:
    """Return a row's question_id, which no line before had."""
    name = _string(row, "question_id")
    if name in seen:
        raise DataError(f"question_id {name!r} was in line {seen[name]} before")
    return name


def _string(row: dict, column: str, complaint: str = "") -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        if value is None and complaint:
            raise DataError(complaint)
        raise DataError(f"{column} should be a text, found {value!r:.60}")
    return value


def _strings(row: dict, column: str) -> tuple[str, ...]:
    values = row.get(column)
    if values is None:
        return ()
    if not isinstance(values, list | tuple) or not all(isinstance(v, str) for v in values):
        raise DataError(f"{column} should be a list of strings, found {values!r:.60}")
    return tuple(values)
