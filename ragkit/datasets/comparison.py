"""The five question sets that LiveRAG's Table 4 sets beside its own."""

from __future__ import annotations

import json

import pandas as pd

from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.errors import DataError
from ragkit.files import read_json, read_jsonl, read_table

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
        pairs = [(row["question"], row["answers"]) for row in read_jsonl(path, _COLUMNS)]
    else:
        pairs = [pair for path in FILES[name] for pair in _READERS[name](source.need(path))]
    seen: dict[str, list] = {}
    for text, answers in pairs:
        seen.setdefault(text, answers)
    frame = pd.DataFrame(
        {
            "question_id": [f"{number:04d}" for number in range(len(seen))],
            "text": list(seen),
            "type": name,
            "answer": [answers[0] if answers else None for answers in seen.values()],
            "facts": [tuple(answers) for answers in seen.values()],
            "gold_doc_ids": [()] * len(seen),
        }
    )
    return make(name, source, {"questions": frame})


_COLUMNS = ("question", "answers")


def _simpleqa(found):
    rows = check_rows(read_table(found.path, ("problem", "answer")), found)
    return [(row["problem"].strip(), [row["answer"]]) for row in rows]


def _nq(found):
    rows = check_rows(read_jsonl(found.path, ("question", "answer")), found)
    return [(row["question"], row["answer"]) for row in rows]


def _triviaqa(found):
    rows = check_rows(read_jsonl(found.path, ("question", "golden_answers")), found)
    return [(_unquote(row["question"]), row["golden_answers"]) for row in rows]


def _popqa(found):
    parts = read_json(found.path)
    rows = [row for part in ("dev", "test") for row in parts.get(part, [])]
    check_rows(rows, found)
    try:
        return [(row["input"], json.loads(row["output"])) for row in rows]
    except (KeyError, json.JSONDecodeError) as error:
        raise DataError(f"{found.path}: expected rows with input and output ({error})") from None


def _webquestions(found):
    rows = check_rows(read_json(found.path), found)
    for number, row in enumerate(rows, start=1):
        if "qText" not in row or "answers" not in row:
            raise DataError(f"{found.path}: row {number}: expected qText and answers")
    return [(row["qText"], row["answers"]) for row in rows]


_READERS = {
    "triviaqa": _triviaqa,
    "popqa": _popqa,
    "webquestions": _webquestions,
    "simpleqa": _simpleqa,
    "natural_questions": _nq,
}


def _unquote(text: str) -> str:
    # Some questions of the mirror are still quoted as in a CSV file.
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return text
