"""What a run of the harness evaluates: its options, and the checked questions and answers."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ragkit import __version__, checks, schema
from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.files import sha256
from ragkit.judging.goldset import RULES, check_panel, pool_of
from ragkit.judging.inputs import read_answers, read_documents, read_questions
from ragkit.judging.inputs import strip_citations as stripped
from ragkit.judging.judges import Judge
from ragkit.judging.report import VERSION, check_writable, corrected_path
from ragkit.store import Store, digest

# What is evaluated of a system: its answers, the documents that it lists, or both.
PARTS = ("both", "answers", "documents")


@dataclass(frozen=True)
class Options:
    """How answers are evaluated.

    Parameters
    ----------
    documents : mapping of id to text, or path, optional
        The texts of gold and retrieved documents. With them a panel classifies the retrieved
        documents; without them every document that is not gold is an invalid extra one.
    panel : sequence of Judge, optional
        Who classifies documents and compares answers. Default: the judge, three times.
    correct_gold : bool, optional
        Correct the gold sets by the panel's classes before scoring. Corrected questions are
        flagged and written to NAME.corrected.jsonl beside the report. Default: only when two
        systems are compared and documents are given; the leaderboard does not correct (section
        5.3, note).
    rules : {"paper", "code"}
        See `ragkit.judging.goldset.classify`.
    cutoff : int >= 1, optional
        The most documents to use of each answer. Default: all.
    repeat : int >= 1
        Verdicts on every answer and fact. More than half decide, so an odd number is best: of an
        even one, half yes counts as no.
    round : int >= 0
        Each round gets verdicts that are independent of those of other rounds.
    seed : int
        For the intervals, and the order in which two answers are shown.
    parts : {"both", "answers", "documents"}
        What to evaluate of a system.
    skip_bad : bool
        Leave out bad lines of the files; they are counted and listed in the report.
    store : Store, optional
        Where the verdicts of judges without a ledger are kept. Default: the store in the cache.

    Raises
    ------
    UsageError
        If an option is out of range.
    """

    documents: Mapping[str, str] | str | Path | None = None
    panel: Sequence[Judge] | None = None
    correct_gold: bool | None = None
    rules: str = "paper"
    cutoff: int | None = None
    repeat: int = 1
    round: int = 0
    seed: int = 0
    parts: str = "both"
    skip_bad: bool = False
    store: Store | None = None

    def __post_init__(self):
        checks.choice(self.rules, "rules", RULES)
        checks.choice(self.parts, "parts", PARTS)
        checks.whole(self.repeat, "repeat")
        checks.whole(self.round, "round", least=0)
        if self.cutoff is not None:
            checks.whole(self.cutoff, "cutoff")
        if self.correct_gold and self.documents is None:
            raise UsageError(
                "the gold sets can only be corrected with the texts of the documents",
                "give documents",
            )


@dataclass(frozen=True)
class Case:
    """Checked inputs: questions by id, answers by system and question, judges, options."""

    questions: dict[str, dict]
    answers: dict[str, dict[str, dict]]
    judge: Judge
    panel: list[Judge]
    options: Options
    about: dict[str, Any]
    skipped: list[dict]
    documents: Mapping[str, str] | None = None
    store: Store | None = None

    @property
    def shared(self) -> list[str]:
        """The questions that every system answers."""
        return [name for name in self.questions if all(self.text(s, name) for s in self.answers)]

    def text(self, system: str, name: str) -> str | None:
        """Return an answer without citations, None if there is none."""
        answer = self.answers[system].get(name, {}).get("answer")
        return None if answer is None or self.options.parts == "documents" else stripped(answer)

    def retrieved(self, system: str, name: str) -> list[str] | None:
        """Return the documents that a system lists for a question, None if it does not."""
        row = self.answers[system].get(name)
        if row is None or self.options.parts == "answers":
            return None
        return list(dict.fromkeys(row["doc_ids"]))[: self.options.cutoff]

    def pool(self, name: str) -> list[str]:
        """Return the documents to classify for a question: gold ones, then retrieved ones."""
        found = [doc for system in self.answers for doc in self.retrieved(system, name) or []]
        return pool_of(self.questions[name]["gold_doc_ids"], found)


@contextmanager
def prepared(questions, answers, judge: Judge, options: Options, out) -> Iterator[Case]:
    """Yield the checked case of a run; its store is closed afterwards.

    Parameters
    ----------
    questions, judge, options, out
        As in `evaluate`.
    answers : sequence of pairs
        As in `estimate`.
    """
    case = _load(questions, answers, judge, options)
    if options.parts != "documents":
        judge.need("correctness", "fact")
    if options.panel is not None:
        check_panel(case.panel)
        if options.documents is None and len(answers) == 1:
            raise UsageError("a panel judges documents, and none are given", "give documents")
    for (source, _), system in zip(answers, case.answers, strict=True):
        _check_parts(case, system, isinstance(source, str | Path))
    if options.documents is not None:
        writer = ["regenerate"] if options.correct_gold else []
        check_panel(case.panel, "validity", *writer)
        case = _with_documents(case)
    if out is not None:
        check_writable(out)
        files = [questions, options.documents, *(source for source, _ in answers)]
        taken = {Path(file).resolve() for file in files if isinstance(file, str | Path)}
        if taken & {Path(out).resolve(), corrected_path(out).resolve()}:
            raise UsageError(f"{out}: an input would be overwritten", "choose another --out")
    if options.store is not None or not any(one.code for one in (judge, *case.panel)):
        yield replace(case, store=options.store)
        return
    with Store() as store:
        yield replace(case, store=store)


def _load(questions, answers, judge: Judge, options: Options) -> Case:
    about: dict[str, dict] = {}
    skipped: list[dict] = []
    if isinstance(questions, str | Path):
        frame, bad = read_questions(questions, skip_bad=options.skip_bad)
        skipped += bad
    else:
        frame = schema.check(questions, "questions")
        for column in ("answer", "facts"):
            empty = frame[column].map(lambda value: not value).astype(bool)
            if empty.any():
                raise DataError(f"question {frame['question_id'][empty].iloc[0]!r} has no {column}")
    rows = frame[list(schema.COLUMNS["questions"])].to_dict("records")
    about["questions"] = _about(questions, rows)
    found: dict[str, dict[str, dict]] = {}
    for number, (source, system) in enumerate(answers, 1):
        name, own, bad = _answers(source, system, frame, options)
        skipped += bad
        about["answers" if len(answers) == 1 else f"answers_{number}"] = _about(source, own)
        if name in found:
            raise UsageError(f"both systems are called {name!r}", "rename one of them")
        found[name] = {row["question_id"]: row for row in own}
    panel = [judge] * 3 if options.panel is None else list(options.panel)
    by_id = {row["question_id"]: row for row in rows}
    return Case(by_id, found, judge, panel, options, about, skipped)


def _about(source, rows: list) -> dict[str, Any]:
    """Return digest and number of rows of an input, and its name if it is a file."""
    if isinstance(source, str | Path):
        return {"file": Path(source).name, "sha256": sha256(source), "rows": len(rows)}
    return {"sha256": digest(rows), "rows": len(rows)}


def _answers(source, system: str | None, questions, options: Options):
    """Return the name and the rows of one system, and the bad rows of its file."""
    bad, where = [], "answers"
    if isinstance(source, str | Path):
        frame, bad = read_answers(source, questions, skip_bad=options.skip_bad)
        where = str(source)
    else:
        frame = schema.check(source, "answers")
        unknown = ~frame["question_id"].isin(questions["question_id"])
        if unknown.any():
            name = frame["question_id"][unknown].iloc[0]
            raise DataError(f"answers: {name!r} is none of the questions")
    names = list(dict.fromkeys(frame["system"]))
    if len(names) > 1 and system is None:
        raise UsageError(
            f"{where}: answers of {len(names)} systems: {', '.join(names)}",
            f"--system {names[0]} (system={names[0]!r}) evaluates one of them",
        )
    if system is not None and system not in names:
        # A file that names no system has the file's name.
        if names != [Path(where).name.partition(".")[0]]:
            raise UsageError(f"{where}: no answers of {system!r}", did_you_mean(system, names))
        frame = frame.assign(system=system)
    name = system or names[0]
    frame = frame[frame["system"] == name]
    frame = frame.assign(answer=frame["answer"].astype(object).where(frame["answer"].notna(), None))
    return name, frame[list(schema.COLUMNS["answers"])].to_dict("records"), bad


def _check_parts(case: Case, system: str, in_file: bool) -> None:
    """Raise `DataError` if what is to be evaluated of a system is not in its answers.

    A file may lack the column doc_ids; in a frame an empty tuple says that there are none.
    """
    rows, parts = case.answers[system].values(), case.options.parts
    if parts != "documents" and all(row["answer"] is None for row in rows):
        raise DataError(
            f"{system}: no row has an answer",
            "--parts documents (parts='documents') evaluates the documents alone",
        )
    gold = any(case.questions[row["question_id"]]["gold_doc_ids"] for row in rows)
    if in_file and parts != "answers" and gold and not any(row["doc_ids"] for row in rows):
        raise DataError(
            f"{system}: no row has doc_ids, so document recall cannot be computed",
            "--parts answers (parts='answers') evaluates the answers alone",
        )


def _with_documents(case: Case) -> Case:
    needed = {doc for name in case.questions for doc in case.pool(name)}
    documents = case.options.documents
    if isinstance(documents, str | Path):
        documents = read_documents(documents, needed)
    absent = sorted(needed - set(documents))
    if absent:
        raise DataError(f"the text of document {absent[0]!r} is not there")
    kept = {doc: documents[doc] for doc in sorted(needed)}
    case.about["documents"] = {"sha256": digest(kept), "rows": len(kept)}
    return replace(case, documents=kept)


def head(case: Case, kind: str, **names) -> dict[str, Any]:
    """Return the head of a report: what decides its verdicts."""
    options = case.options
    kinds = ["preference"] * (len(case.answers) == 2)
    if case.documents is not None:
        kinds += ["validity"] + ["regenerate"] * bool(options.correct_gold)
    told = ("rules", "cutoff", "repeat", "round", "seed", "parts")
    data = {
        "schema": kind,
        "version": VERSION,
        **names,
        "judge": case.judge.describe(["correctness", "fact"]),
        "panel": [judge.describe(kinds) for judge in case.panel] if kinds else None,
        "settings": {
            **{name: getattr(options, name) for name in told},
            "correct_gold": bool(options.correct_gold),
            "extra_documents": "all invalid" if case.documents is None else "classified",
            "citations": "stripped",
        },
        "inputs": case.about,
        "skipped": case.skipped,
        "versions": {
            "ragkit": __version__,
            "python": platform.python_version(),
            "krippendorff": version("krippendorff"),
        },
    }
    return json.loads(json.dumps(data))
