"""A judge that follows a script, and a small benchmark for it."""

from __future__ import annotations

import json

import pandas as pd

from ragkit.judging import Judge, Task, Verdict
from ragkit.judging.judges import KINDS
from tests.llm.server import Reply, chat


class Scripted(Judge):
    """Gives what `script(task, number)` returns; an exception there is a verdict that failed."""

    kinds = frozenset(KINDS)

    def __init__(self, script, name="scripted"):
        self.script, self.name = script, name
        self.asked: list[tuple[Task, int]] = []

    def judge(self, tasks, number=0):
        return [self._verdict(task, number) for task in tasks]

    def _verdict(self, task, number):
        self.asked.append((task, number))
        try:
            return Verdict(self.script(task, number), f"because {number}", self.name)
        except LookupError as error:
            return Verdict(None, f"failed: {error.args[0]}", self.name)


def literal(task, number):
    """Correct if the gold answer, supported if the fact is in the answer."""
    assert task.kind in ("correctness", "fact"), "not scripted"
    return task.fields["gold" if task.kind == "correctness" else "fact"] in task.fields["answer"]


def failing(fails):
    """A literal judge, whose verdicts on some tasks fail."""

    def script(task, number):
        if fails(task):
            raise LookupError("down")
        return literal(task, number)

    return Scripted(script)


DOCUMENTS = {name: f"text of {name}" for name in ("d1", "d2", "d3", "d8", "d9")}


def questions():
    rows = [
        ("q1", "Which colour?", "basic", "red", ("red", "dark"), ("d1",)),
        ("q2", "How many?", "basic", "two", ("two",), ("d2", "d3")),
        ("q3", "Who?", "high", "Ann", ("Ann", "Bob", "Cid"), ()),
    ]
    columns = ["question_id", "text", "type", "answer", "facts", "gold_doc_ids"]
    return pd.DataFrame(rows, columns=columns)


def answers(system="sys", **texts):
    """Answers to q1, q2, q3 unless told otherwise; (text, documents)."""
    given = {
        "q1": ("red [1]", ("d1", "d9")),
        "q2": ("three", ("d2", "d8", "d9")),
        "q3": ("Ann, Bob", ()),
    } | texts
    rows = [
        (system, name, text, docs or ())
        for name, pair in given.items()
        if pair is not None
        for text, docs in [pair]
    ]
    columns = ["system", "question_id", "answer", "doc_ids"]
    return pd.DataFrame(rows, columns=columns)


def write_jsonl(path, rows):
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def question_rows():
    """The questions in the official columns."""
    rows = questions().rename(columns={"type": "question_type", "text": "question"})
    gold = {"gold_doc_ids": "expected_doc_ids", "answer": "gold_answer", "facts": "answer_facts"}
    return json.loads(rows.rename(columns=gold).to_json(orient="records"))


def answer_rows(frame=None):
    rows = (answers() if frame is None else frame).drop(columns="system")
    return json.loads(rows.rename(columns={"doc_ids": "document_ids"}).to_json(orient="records"))


def between(text, tag):
    return text.split(f"<{tag}>\n", 1)[1].split(f"\n</{tag}>", 1)[0]


def replies(script):
    """Turn a script of tasks into the reply function of the loopback endpoint."""

    def answer(body, nth, digest):
        said = body["messages"][-1]["content"]
        properties = body["response_format"]["json_schema"]["schema"]["properties"]
        found = script(said, properties, nth)
        if isinstance(found, Reply):
            return found
        told = found if isinstance(found, dict) else {"reason": "as scripted", "verdict": found}
        return Reply(chat(json.dumps(told)))

    return answer


def literal_reply(said, properties, nth):
    answer = between(said, "candidate")
    wanted = between(said, "fact" if "<fact>" in said else "gold")
    return wanted in answer
