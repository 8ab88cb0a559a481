"""EnterpriseRAG-Bench's harness: a system's answers in, judged metrics out.

Questions go to the judge in blocks. What a block gave is kept in a journal beside the report
until the report is written, so that a run that was cut short goes on where it stopped; a model's
verdicts are in its ledger besides.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from ragkit import __version__, schema
from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.files import write_text
from ragkit.judging import goldset
from ragkit.judging.agreement import agreement
from ragkit.judging.inputs import (
    Lines,
    read_answers,
    read_documents,
    read_questions,
    strip_citations,
)
from ragkit.judging.judges import Judge, Task, Verdict, check_repeat, code
from ragkit.judging.report import (
    VERSION,
    Evaluation,
    aggregate,
    completeness,
    document_recall,
    invalid_extra_documents,
    leaderboard_score,
    read,
)
from ragkit.llm.exchange import canonical, digest

BLOCK = 64  # questions judged together: many enough to keep an endpoint busy


def evaluate(
    questions: pd.DataFrame | str | Path,
    answers: pd.DataFrame | str | Path,
    judge: Judge,
    *,
    out: str | Path | None = None,
    system: str | None = None,
    documents: Mapping[str, str] | str | Path | None = None,
    panel: Sequence[Judge] | None = None,
    correct_gold: bool = False,
    rules: str = "paper",
    cutoff: int | None = None,
    repeat: int = 1,
    seed: int = 0,
    only: Sequence[str] = (),
    again: bool = False,
    retry_missing: bool = False,
    overwrite: bool = False,
    skip_bad: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Judge a system's answers and documents.

    Parameters
    ----------
    questions : DataFrame or path
        A frame `questions` with gold answers and facts, or a file for `read_questions`.
    answers : DataFrame or path
        A frame `answers` of one system, or a file for `read_answers`. In a frame, a column
        `documents_given` says which rows have documents at all (default: all).
    judge : Judge
    out : path, optional
        Write the report there; needed for `only` to add to one, and for going on after a stop.
    system : str, optional
        The system's name. Default: the frame's, or that of the file.
    documents : mapping of id to text, or path, optional
        The texts of gold and retrieved documents. With them a panel classifies what was
        retrieved; without them every document that is not gold is an invalid extra one.
    panel : sequence of Judge, optional
        Default: `judge` three times.
    correct_gold : bool
        Correct the gold sets by the panel's classes before scoring. Corrected questions are
        flagged and, with `out`, written beside it as NAME.corrected.jsonl. The leaderboard does
        not correct (section 5.3, note).
    rules : {"paper", "code"}
        See `ragkit.judging.goldset.classify`.
    cutoff : int, optional
        Look at no more than so many documents of each answer. Default: all that were submitted.
    repeat : int >= 1
        Verdicts for every answer and fact. More than half decide, so an odd number is best: of an
        even one, half yes counts as no.
    seed : int
        For the intervals.
    only : sequence of str
        Evaluate these questions alone, and add them to the report if there is one.
    again : bool
        With `only`: get new verdicts for questions that the report has already.
    retry_missing : bool
        Evaluate what the report lacks: questions, and those without a verdict.
    overwrite : bool
        Start anew where the report exists.
    skip_bad : bool
        Leave out bad lines of the files, counted and listed in the report.
    progress : callable, optional
        Called with the number of questions done and to do.

    Returns
    -------
    Evaluation

    Raises
    ------
    UsageError
        If an option is out of range, the panel is empty, or the report exists.
    DataError
        If a file has bad lines, a frame is not valid, or the report is of another run.
    """
    inputs = load(questions, answers, systems=[system], skip_bad=skip_bad)
    protect(out, questions, answers, documents)
    setup = Setup(inputs, judge, documents, panel, correct_gold, rules, cutoff, repeat, seed)
    system = inputs.systems[0]
    head = setup.head(Evaluation.schema, system=system)

    def block(items: list[tuple[str, int]]) -> list[dict]:
        rounds = dict(items)
        names = list(rounds)
        reviews = setup.review(names, rounds, [system])
        return setup.records(names, rounds, system, reviews)

    records = run(
        head,
        inputs.answered,
        block,
        out=out,
        only=only,
        again=again,
        retry_missing=retry_missing,
        overwrite=overwrite,
        progress=progress,
    )
    report = Evaluation(
        {
            **head,
            "counts": setup.counts(records, system),
            "aggregate": aggregate(records, seed=seed),
            "agreement": agreements(records),
            "questions": records,
        }
    )
    if out is not None:
        finish(report, out, records, inputs.questions)
    return report


def estimate(
    questions: pd.DataFrame | str | Path,
    answers: pd.DataFrame | str | Path,
    judge: Judge,
    *,
    versus: pd.DataFrame | str | Path | None = None,
    systems: Sequence[str | None] = (None, None),
    documents: Mapping[str, str] | str | Path | None = None,
    panel: Sequence[Judge] | None = None,
    correct_gold: bool = False,
    cutoff: int | None = None,
    repeat: int = 1,
    only: Sequence[str] = (),
    skip_bad: bool = False,
) -> list[dict[str, Any]]:
    """Return what `evaluate` or `compare` would ask, and what that would cost; nothing is asked.

    Parameters
    ----------
    questions, answers, judge, documents, panel, correct_gold, cutoff, repeat, only, skip_bad
        As in `evaluate`.
    versus : DataFrame or path, optional
        A second system's answers, as for `compare`.
    systems : pair of str, optional
        The systems' names.

    Returns
    -------
    list of dict
        One per part: what, judge, verdicts, estimate (`ragkit.llm.Estimate`, or None for a judge
        that costs nothing). The panel's part is the most it can be, for it stops early; new gold
        answers are not in it, since nobody knows their number.
    """
    files = [answers] if versus is None else [answers, versus]
    inputs = load(questions, *files, systems=systems[: len(files)], skip_bad=skip_bad)
    setup = Setup(inputs, judge, documents, panel, correct_gold, "paper", cutoff, repeat, 0)
    names = chosen(inputs.answered, only)
    parts = []
    for system in inputs.systems:
        tasks = [
            task
            for name in names
            if name in inputs.answers[system]
            for task in answer_tasks(inputs.questions[name], setup.text(system, name))
        ]
        parts.append(
            {
                "what": f"answers of {system}",
                "judge": judge.name,
                "verdicts": len(tasks) * repeat,
                "estimate": judge.estimate(tasks, repeat=repeat),
            }
        )
    asked = []
    if setup.documents is not None:
        asked.append(("documents (at most)", setup.panel_tasks(names)))
    if versus is not None:
        pairs = {
            name: [setup.text(s, name) or "" for s in inputs.systems]
            for name in inputs.shared
            if name in names
        }
        asked.append(
            (
                "preferences",
                [preference_task(inputs.questions[name], *pair) for name, pair in pairs.items()],
            )
        )
    for what, tasks in asked:
        for number, member in enumerate(setup.panel):
            parts.append(
                {
                    "what": f"{what}, member {number + 1} of the panel",
                    "judge": member.name,
                    "verdicts": len(tasks),
                    "estimate": member.estimate(tasks, first=setup.seat(number)[0]),
                }
            )
    return parts


# -- what goes in -----------------------------------------------------------------------------


@dataclass
class Inputs:
    """Questions and answers by id, and where they come from."""

    questions: dict[str, dict]
    answers: dict[str, dict[str, dict]]
    about: dict[str, Any]
    skipped: list[dict]

    @property
    def order(self) -> list[str]:
        return list(self.questions)

    @property
    def systems(self) -> list[str]:
        return list(self.answers)

    @property
    def answered(self) -> list[str]:
        """The questions that a system has a row for."""
        return [name for name in self.order if any(name in own for own in self.answers.values())]

    @property
    def shared(self) -> list[str]:
        """The questions that every system has an answer to, if an empty one."""
        return [
            name
            for name in self.order
            if all((own.get(name) or {}).get("answer") is not None for own in self.answers.values())
        ]


def load(questions, *answers, systems: Sequence[str | None], skip_bad: bool) -> Inputs:
    """Read and check the inputs, files or frames: questions, and one system's answers each."""
    about, skipped = {}, []

    def note(name: str, lines: Lines | None, rows: list[dict]) -> None:
        if lines is None:
            about[name] = {"sha256": digest(canonical(rows)), "rows": len(rows)}
        else:
            about[name] = lines.about()
            skipped.extend({"file": lines.path.name, **one} for one in lines.bad)

    lines = None
    if isinstance(questions, str | Path):
        questions, lines = read_questions(questions, skip_bad=skip_bad)
    else:
        schema.check(questions, "questions")
        for column in ("answer", "facts"):
            empty = questions[column].map(lambda value: not value).astype(bool)
            if empty.any():
                raise DataError(
                    f"question {questions['question_id'][empty].iloc[0]!r} has no {column}"
                )
    columns = list(schema.COLUMNS["questions"])
    rows = questions[columns].to_dict("records")
    note("questions", lines, rows)
    by_id = {row["question_id"]: row for row in rows}
    found: dict[str, dict[str, dict]] = {}
    for number, (frame, system) in enumerate(zip(answers, systems, strict=True), 1):
        lines = None
        if isinstance(frame, str | Path):
            frame, lines = read_answers(frame, questions, skip_bad=skip_bad, system=system)
        else:
            schema.check(frame, "answers")
            if frame["system"].nunique() != 1:
                raise DataError(
                    f"expected the answers of one system, found {frame['system'].nunique()}"
                )
            unknown = ~frame["question_id"].isin(questions["question_id"])
            if unknown.any():
                raise DataError(
                    f"answers: {frame['question_id'][unknown].iloc[0]!r} is none of the questions"
                )
        frame = frame.assign(answer=frame["answer"].where(frame["answer"].notna(), None))
        if "documents_given" not in frame:
            frame = frame.assign(documents_given=True)
        given = frame[[*schema.COLUMNS["answers"], "documents_given"]].to_dict("records")
        note("answers" if len(answers) == 1 else f"answers_{number}", lines, given)
        name = system or given[0]["system"]
        if name in found:
            raise UsageError(f"both systems are called {name!r}", "give the systems' names")
        found[name] = {row["question_id"]: row for row in given}
    return Inputs(by_id, found, about, skipped)


def protect(out: str | Path | None, *inputs) -> None:
    """Raise `UsageError` if the report, or what is written beside it, would replace an input."""
    if out is None:
        return
    out = Path(out)
    written = {path.resolve() for path in (out, corrected_path(out), journal_path(out))}
    for path in inputs:
        if isinstance(path, str | Path) and Path(path).resolve() in written:
            raise UsageError(f"{path} is an input and would be overwritten", "choose another --out")


def chosen(names: Sequence[str], only: Sequence[str]) -> list[str]:
    """Return the `names` that are in `only`, or all; an unknown one raises `UsageError`."""
    for name in only:
        if name not in names:
            raise UsageError(
                f"there is no answer to a question {name!r}", did_you_mean(name, names)
            )
    return [name for name in names if not only or name in only]


# -- how it is judged -------------------------------------------------------------------------


class Setup:
    """The inputs with all options checked, and what is made of a question by them."""

    def __init__(self, inputs, judge, documents, panel, correct_gold, rules, cutoff, repeat, seed):
        judge.need("correctness", "fact")
        goldset.check_rules(rules)
        check_repeat(repeat)
        if cutoff is not None and (type(cutoff) is not int or cutoff < 1):
            raise UsageError(f"cutoff should be a whole number of at least 1, found {cutoff!r}")
        self.inputs, self.judge, self.repeat, self.seed = inputs, judge, repeat, seed
        self.rules, self.cutoff, self.correct_gold = rules, cutoff, correct_gold
        self.panel = [judge] * 3 if panel is None else list(panel)
        if documents is None and correct_gold:
            raise UsageError(
                "the gold sets can only be corrected with the texts of the documents",
                "give documents",
            )
        if panel is not None:
            goldset.check_panel(self.panel)
            if documents is None and len(inputs.systems) == 1:
                raise UsageError("a panel judges documents, and none are given", "give documents")
        self.documents = None
        if documents is not None:
            goldset.check_panel(self.panel, "validity", *(["regenerate"] if correct_gold else []))
            needed = {doc for name in inputs.order for doc in self.pool(name)}
            if isinstance(documents, str | Path):
                documents = read_documents(documents, needed)
            absent = sorted(needed - set(documents))
            if absent:
                raise DataError(f"the text of document {absent[0]!r} is not there")
            self.documents = {doc: documents[doc] for doc in sorted(needed)}

    def head(self, kind: str, **names) -> dict[str, Any]:
        """Return what the report begins with: all that decides the verdicts."""
        panel_kinds = ["preference"] * (kind == "ragkit.comparison")
        if self.documents is not None:
            panel_kinds += ["validity"] + ["regenerate"] * self.correct_gold
        head = {
            "schema": kind,
            "version": VERSION,
            **names,
            "judge": self.judge.describe(["correctness", "fact"]),
            "panel": [judge.describe(panel_kinds) for judge in self.panel] if panel_kinds else None,
            "settings": {
                "rules": self.rules,
                "correct_gold": self.correct_gold,
                "extra_documents": "all count as invalid"
                if self.documents is None
                else "classified",
                "cutoff": self.cutoff,
                "repeat": self.repeat,
                "seed": self.seed,
                "citations": "stripped",
            },
            "inputs": dict(self.inputs.about),
            "skipped": self.inputs.skipped,
            "versions": {
                "ragkit": __version__,
                "python": platform.python_version(),
                "krippendorff": version("krippendorff"),
            },
        }
        if self.documents is not None:
            head["inputs"]["documents"] = {
                "sha256": digest(canonical(self.documents)),
                "rows": len(self.documents),
            }
        return json.loads(json.dumps(head))  # as it will be read again

    def retrieved(self, system: str, name: str) -> list[str] | None:
        row = self.inputs.answers[system].get(name)
        if row is None or not row["documents_given"]:
            return None
        return list(dict.fromkeys(row["doc_ids"]))[: self.cutoff]

    def text(self, system: str, name: str) -> str | None:
        answer = self.inputs.answers[system][name]["answer"]
        return None if answer is None else strip_citations(answer)

    def pool(self, name: str) -> list[str]:
        """Return the documents to classify for a question: gold ones, then what was retrieved."""
        gold = self.inputs.questions[name]["gold_doc_ids"]
        lists = [self.retrieved(system, name) or [] for system in self.inputs.systems]
        extra = [doc for docs in lists for doc in docs if doc not in gold]
        return list(dict.fromkeys([*gold, *extra])) if gold and extra else []

    def seat(self, member: int) -> tuple[int, int]:
        """Return a member's seat and the number of seats that the same judge has on the panel."""
        return goldset.seat(self.panel, member)

    def panel_tasks(self, names: Sequence[str]) -> list[Task]:
        return [
            Task(
                "validity",
                {"question": self.inputs.questions[name]["text"], "document": self.documents[doc]},
            )
            for name in names
            for doc in self.pool(name)
        ]

    def review(self, names, rounds, systems) -> dict[str, goldset.Review]:
        if self.documents is None:
            return {}
        return goldset.review(
            [self.inputs.questions[name] for name in names],
            {name: self.pool(name) for name in names},
            self.documents,
            self.panel,
            rules=self.rules,
            correct=self.correct_gold,
            rounds=rounds,
        )

    def records(self, names, rounds, system, reviews) -> list[dict]:
        """Judge one system's answers to some questions, together."""
        revised = {name: self._revised(name, reviews.get(name)) for name in names}
        texts = {name: self.text(system, name) for name in names}
        verdicts: dict[str, list[Verdict]] = {}
        for number in sorted({rounds.get(name, 0) for name in names}):
            group = [name for name in names if rounds.get(name, 0) == number]
            tasks = {name: answer_tasks(revised[name], texts[name]) for name in group}
            flat = [task for name in group for task in tasks[name]]
            found = iter(
                self.judge.judge(flat, repeat=self.repeat, first=number * self.repeat)
                if flat
                else []
            )
            for name in group:
                verdicts[name] = [next(found) for _ in tasks[name]]
        return [
            self._record(
                revised[name],
                texts[name],
                self.retrieved(system, name),
                verdicts[name],
                reviews.get(name),
                rounds.get(name, 0),
            )
            for name in names
        ]

    def _revised(self, name: str, review: goldset.Review | None) -> dict:
        question = self.inputs.questions[name]
        if review is None or not review.changed:
            return question
        return {
            **question,
            "answer": review.answer,
            "facts": review.facts,
            "gold_doc_ids": review.required,
        }

    def _record(self, question, text, retrieved, verdicts, review, number) -> dict:
        if text is not None and not verdicts:
            empty = [False] * self.repeat
            spread = 0.0 if self.repeat > 1 else None
            rule = Verdict(False, "the answer is empty", "rule", tuple(empty), (), spread)
            verdicts = [rule] * (1 + len(question["facts"]))
        correctness = verdicts[0].to_dict() if verdicts else None
        facts = [
            {"fact": fact, **verdict.to_dict()}
            for fact, verdict in zip(question["facts"], verdicts[1:], strict=False)
        ]
        scores: dict[str, float | None] = dict.fromkeys(
            ("correctness", "completeness", "score", "document_recall", "invalid_extra_documents")
        )
        applies, repeats = [], {}
        if verdicts:
            applies += ["correctness", "completeness", "score"]
            scores |= _judged(correctness["value"], [fact["value"] for fact in facts])
            each = [
                _judged(correctness["values"][i], [fact["values"][i] for fact in facts])
                for i in range(self.repeat)
            ]
            if self.repeat > 1:
                repeats = {metric: [one[metric] for one in each] for metric in each[0]}
        gold = question["gold_doc_ids"]
        if retrieved is not None and gold:
            applies += ["document_recall", "invalid_extra_documents"]
            scores["document_recall"] = document_recall(retrieved, gold)
            # A question that no panel saw has no extra document.
            classes = review.classes if review else None if self.documents is None else {}
            scores["invalid_extra_documents"] = invalid_extra_documents(retrieved, gold, classes)
        return {
            "question_id": question["question_id"],
            "type": question["type"],
            "round": number,
            "corrected": bool(review and review.changed),
            "question": question["text"],
            "gold_answer": question["answer"],
            "answer": text,
            "answer_facts": list(question["facts"]),
            "gold_doc_ids": list(gold),
            "document_ids": retrieved,
            "applies": applies,
            "scores": scores,
            **({"repeats": repeats} if repeats else {}),
            "verdicts": {"correctness": correctness, "facts": facts},
            "review": review.to_dict() if review else None,
        }

    def counts(self, records: Sequence[dict], system: str) -> dict[str, int]:
        """Return how many questions there are, were answered, and lack a verdict."""
        return {
            "questions": len(self.inputs.questions),
            "unanswered": len(self.inputs.questions) - len(self.inputs.answers[system]),
            "evaluated": len(records),
            "without_answer": sum(record["answer"] is None for record in records),
            "without_documents": sum(record["document_ids"] is None for record in records),
            "corrected": sum(record["corrected"] for record in records),
            "missing_verdicts": sum(map(missing, records)),
            "skipped_lines": len(self.inputs.skipped),
        }


def answer_tasks(question: Mapping[str, Any], answer: str | None) -> list[Task]:
    """Return the tasks for one answer, correctness first; none for one missing or empty."""
    if not answer:
        return []
    common = {"question": question["text"], "answer": answer}
    return [
        Task("correctness", {**common, "gold": question["answer"]}),
        *(Task("fact", {**common, "fact": fact}) for fact in question["facts"]),
    ]


def preference_task(question: Mapping[str, Any], first: str, second: str) -> Task:
    """Return the task of preferring one of two answers."""
    return Task(
        "preference",
        {
            "question": question["text"],
            "gold": question["answer"],
            "first": first or "(no text)",
            "second": second or "(no text)",
        },
    )


def _judged(correct: bool | None, supported: list) -> dict[str, float | None]:
    value, share = None if correct is None else float(correct), completeness(supported)
    return {
        "correctness": value,
        "completeness": share,
        "score": leaderboard_score(value, share),
    }


def missing(record: Mapping[str, Any]) -> int:
    """Return how many verdicts a record lacks, those of a panel included."""
    found = record["verdicts"]
    values = [fact["value"] for fact in found["facts"]]
    values += [found["correctness"]["value"]] if found["correctness"] else []
    review = record["review"] or {"classes": {}, "votes": {}, "status": ""}
    votes = [vote for votes in review["votes"].values() for vote in votes]
    return values.count(None) + votes.count(None) + (review["status"] == "undecided")


def agreements(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the agreement of repeated verdicts, and of the panel's members."""
    rows: dict[str, list[list[float]]] = {"correctness": [], "fact": []}
    votes: list[list[float]] = []
    for record in records:
        found = record["verdicts"]
        kinds = [("correctness", found["correctness"])] if found["correctness"] else []
        kinds += [("fact", fact) for fact in found["facts"]]
        for kind, verdict in kinds:
            rows[kind].append([code(kind, value) for value in verdict["values"]])
        for cast in (record["review"] or {"votes": {}})["votes"].values():
            votes.append([code("validity", vote) for vote in cast])
    table = {
        kind: agreement(ratings)
        for kind, ratings in rows.items()
        if ratings and len(ratings[0]) > 1
    }
    if votes:
        width = max(map(len, votes))
        padded = [row + [float("nan")] * (width - len(row)) for row in votes]
        table["panel"] = agreement(padded, level="ordinal")
    return table


# -- a run, its journal and its report --------------------------------------------------------


def run(
    head: dict,
    names: Sequence[str],
    block: Callable[[list[tuple[str, int]]], list[dict]],
    *,
    out: str | Path | None,
    only: Sequence[str],
    again: bool,
    retry_missing: bool,
    overwrite: bool,
    progress: Callable[[int, int], None] | None,
    lacks: Callable[[dict], int] = missing,
) -> list[dict]:
    """Evaluate what is asked for and not there yet; return all records, in order of `names`."""
    if again and not only:
        raise UsageError("again goes with only", "name the questions to evaluate anew")
    wanted = chosen(names, only)
    done, journal = {}, None
    if out is not None:
        out = Path(out)
        done = _existing(head, out, only, again, retry_missing, overwrite, lacks)
        if not (out.exists() and not overwrite):
            journal = Journal(out, head, overwrite)
            done = journal.records.copy()
    elif again or retry_missing:
        raise UsageError("again and retry_missing need a report to work on", "give out")
    todo = []
    for name in wanted:
        before = done.get(name)
        if before is None:
            todo.append((name, 0))
        elif again:
            todo.append((name, before["round"] + 1))
        elif lacks(before):
            todo.append((name, before["round"]))
    for start in range(0, len(todo), BLOCK):
        part = block(todo[start : start + BLOCK])
        done |= {record["question_id"]: record for record in part}
        if journal is not None:
            journal.add(part)
        if progress is not None:
            progress(start + len(part), len(todo))
    return [done[name] for name in names if name in done]


def _existing(head, out, only, again, retry_missing, overwrite, lacks) -> dict[str, dict]:
    if not out.exists():
        if again or retry_missing:
            raise UsageError(f"{out} does not exist: there is nothing to evaluate anew")
        if corrected_path(out).exists() and not overwrite:
            raise UsageError(f"{corrected_path(out)} exists, of another report", "--overwrite")
        return {}
    if overwrite:
        return {}
    if not only and not retry_missing:
        raise UsageError(
            f"{out} exists",
            "--only ID adds or redoes a question, --missing what it lacks, --overwrite everything",
        )
    data = read(out).data
    for part, value in _decisive(head).items():
        if data.get(part) != value:
            raise DataError(
                f"{out} is the report of another run: its {part} differ",
                "give the options and files of that run, or another --out",
            )
    done = {record["question_id"]: record for record in data["questions"]}
    if not again:
        for name in only:
            if name in done and not lacks(done[name]):
                raise UsageError(
                    f"{out} has {name!r} already", "--again (again=True) gets new verdicts for it"
                )
    return done


def _decisive(head: dict) -> dict:
    # An upgrade in between is said in the report, but does not make it another run.
    return {part: value for part, value in head.items() if part != "versions"}


class Journal:
    """Records of a run that is under way, one a line, in `NAME.partial` beside the report."""

    def __init__(self, out: Path, head: dict, overwrite: bool):
        self.path = journal_path(out)
        self.records: dict[str, dict] = {}
        first = canonical({"run": digest(canonical(_decisive(head)))})
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else []
        if lines and lines[0] != first.encode():
            if not overwrite:
                raise DataError(
                    f"{self.path} is what another run with other options or files left",
                    "remove it, or --overwrite",
                )
            lines = []
        # What follows the last line end was being written when the run stopped.
        for line in lines[1:-1]:
            record = json.loads(line)
            self.records[record["question_id"]] = record
        kept = [first, *map(_line, self.records.values())]
        write_text(self.path, "".join(f"{line}\n" for line in kept))

    def add(self, records: Sequence[dict]) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.writelines(f"{_line(record)}\n" for record in records)


def _line(record: dict) -> str:
    # The order of keys stays: the report shows them in it.
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def finish(report, out: str | Path, records: Sequence[dict], questions: Mapping) -> None:
    """Write the report and the corrected questions beside it, and remove the journal."""
    out = Path(out)
    report.write(out, overwrite=True)
    rows = corrected_questions(records, questions)
    corrected_path(out).unlink(missing_ok=True)
    if rows:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_text(corrected_path(out), text)
    journal_path(out).unlink(missing_ok=True)


def corrected_path(out: Path) -> Path:
    """Return where the corrected questions go: `NAME.corrected.jsonl` beside the report."""
    return out.with_name(f"{out.stem}.corrected.jsonl")


def journal_path(out: Path) -> Path:
    """Return where the journal of an unfinished run is: `NAME.partial` beside the report."""
    return out.with_name(f"{out.name}.partial")


def corrected_questions(records: Sequence[dict], questions: Mapping[str, dict]) -> list[dict]:
    """Return the questions whose gold set was corrected, old and new, in the official columns."""
    rows = []
    for record in records:
        if record["corrected"]:
            before = questions[record["question_id"]]
            rows.append(
                {
                    "question_id": record["question_id"],
                    "question_type": record["type"],
                    "question": record["question"],
                    "expected_doc_ids": record["gold_doc_ids"],
                    "gold_answer": record["gold_answer"],
                    "answer_facts": record["answer_facts"],
                    "updated": True,
                    "before": {
                        "expected_doc_ids": list(before["gold_doc_ids"]),
                        "gold_answer": before["answer"],
                        "answer_facts": list(before["facts"]),
                    },
                }
            )
    return rows
