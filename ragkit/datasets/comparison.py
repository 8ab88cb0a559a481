"""The five question sets that LiveRAG's Table 4 sets beside its own."""

from __future__ import annotations

import json

import pandas as pd

from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.errors import DataError
from ragkit.files import read_json, read_jsonl, read_table, require
from ragkit.schema import strings

_FOLDER = "comparison_questions/"
FILES = {
    "triviaqa": (_FOLDER + "triviaqa_test_subsample_searchr1.jsonl",),
    "popqa": (_FOLDER + "popqa_model_collaboration_2000.json",),
    "webquestions": tuple(
        f"{_FOLDER}webquestions_brmson_{part}.json"
        for part in ("trainmodel", "val", "devtest", "test")
    ),
    "simpleqa": (_FOLDER + "simple_qa_test_set.csv",),
    "natural_questions": (_FOLDER + "nq_open_dev.jsonl",),
}
SAMPLE = FILES


def read(name: str, source: Source) -> Dataset:
    """Read a question set: `questions`, distinct by text, with their accepted answers as facts.

    The mirrors hold the whole of SimpleQA, WebQuestions and the development part of NQ-open, and
    subsamples of TriviaQA and PopQA; the provenance says which.
    """
    if source.sample:
        path = source.sample_path(f"comparison/{name}.jsonl")
        pairs = _pairs(read_jsonl(path, _COLUMNS), *_COLUMNS, path)
    else:
        pairs = [pair for path in FILES[name] for pair in _READERS[name](source.need(path))]
    seen: dict[str, tuple] = {}
    for text, answers in pairs:
        seen.setdefault(text, answers)
    frame = pd.DataFrame(
        {
            "question_id": [f"{number:04d}" for number in range(len(seen))],
            "text": list(seen),
            "type": name,
            "answer": [answers[0] if answers else None for answers in seen.values()],
            "facts": list(seen.values()),
            "gold_doc_ids": [()] * len(seen),
        }
    )
    return make(name, source, {"questions": frame})


_COLUMNS = ("question", "answers")


def _simpleqa(found):
    rows = check_rows(read_table(found.path, ("problem", "answer")), found)
    rows = [{"problem": row["problem"].strip(), "answer": [row["answer"]]} for row in rows]
    return _pairs(rows, "problem", "answer", found.path)


def _nq(found):
    rows = check_rows(read_jsonl(found.path, ("question", "answer")), found)
    return _pairs(rows, "question", "answer", found.path)


def _triviaqa(found):
    rows = check_rows(read_jsonl(found.path, ("question", "golden_answers")), found)
    pairs = _pairs(rows, "question", "golden_answers", found.path)
    return [(_unquote(text), answers) for text, answers in pairs]


def _popqa(found):
    parts = read_json(found.path)
    if not isinstance(parts, dict):
        raise DataError(f"{found.path}: expected an object with dev and test")
    require(parts, ("dev", "test"), str(found.path))
    rows = check_rows([*_list(parts["dev"], found.path), *_list(parts["test"], found.path)], found)
    for number, row in enumerate(rows, start=1):
        where = f"{found.path}: row {number}"
        require(row, ("input", "output"), where)
        try:
            row["output"] = json.loads(row["output"])
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: output should hold a JSON list ({error})") from None
    return _pairs(rows, "input", "output", found.path)


def _webquestions(found):
    rows = check_rows(_list(read_json(found.path), found.path), found)
    return _pairs(rows, "qText", "answers", found.path)


_READERS = {
    "triviaqa": _triviaqa,
    "popqa": _popqa,
    "webquestions": _webquestions,
    "simpleqa": _simpleqa,
    "natural_questions": _nq,
}


def _list(value, path) -> list[dict]:
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise DataError(f"{path}: expected a list of objects")
    return value


def _pairs(rows: list[dict], question: str, answers: str, path) -> list[tuple[str, tuple]]:
    """Return the questions with their accepted answers, checked row by row."""
    pairs = []
    for number, row in enumerate(rows, start=1):
        where = f"{path}: row {number}"
        require(row, (question, answers), where)
        text = row[question]
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{where}: {question} should hold a text, found {text!r}")
        pairs.append((text, strings(row[answers], f"{where}: {answers}")))
    return pairs


def _unquote(text: str) -> str:
    # Some questions of the mirror are still quoted as in a CSV file.
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return text
