"""What a run of the harness evaluates: its options, and the checked questions and answers."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ragkit import __version__, checks, schema
from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.files import sha256
from ragkit.judging import inputs
from ragkit.judging.goldset import RULES, check_panel, pool_of, require
from ragkit.judging.judges import Judge
from ragkit.judging.report import check_writable, corrected_path
from ragkit.store import digest

Source = pd.DataFrame | str | Path


@dataclass(frozen=True)
class Options:
    """How answers are evaluated: EnterpriseRAG-Bench, sections 5.1 to 5.3.

    Parameters
    ----------
    documents : mapping of id to text, or path, optional
        Texts of gold and retrieved documents, which a panel classifies. Default: every document
        that is not gold is invalid.
    panel : sequence of Judge, optional
        Who classifies documents and compares answers. Default: the judge, three times.
    correct_gold : bool, optional
        Correct the gold sets by the panel's classes before scoring; corrected questions are
        flagged, and written to NAME.corrected.jsonl beside the report. Default: only when two
        systems are compared and documents are given; the leaderboard does not correct.
    rules : {"paper", "code"}
        How the votes on a document decide; see `ragkit.judging.goldset.classify`.
    cutoff : int, optional
        The most documents to use of each answer. Default: all.
    repeat : int, at least 1
        Verdicts on every answer and fact; a yes takes more than half.
    round : int, at least 0
        Each round gets verdicts independent of other rounds'.
    seed : int
        For the intervals, and for the order in which two answers are shown.
    parts : {"both", "answers", "documents"}
        What to evaluate of a system.
    skip_bad : bool
        Leave out bad rows of the inputs, and list them in the report.
    labels : DataFrame or path, optional
        Scores in [0, 1] of a stricter judge on answers drawn at random: see `labelled`.
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
    labels: Source | None = None

    def __post_init__(self):
        checks.choice(self.rules, "rules", RULES)
        checks.choice(self.parts, "parts", ("both", "answers", "documents"))
        checks.whole(self.repeat, "repeat")
        checks.whole(self.round, "round", least=0)
        checks.whole(1 if self.cutoff is None else self.cutoff, "cutoff")
        if self.correct_gold and self.documents is None:
            raise UsageError("gold sets are corrected with the texts of the documents: give them")


class Given(NamedTuple):
    """What a system gives for a question: each None if it is absent or not evaluated."""

    answer: str | None = None  # without citations
    doc_ids: list[str] | None = None


@dataclass(frozen=True)
class Case:
    """Checked inputs: questions by id, what each system gives by question, judges, options."""

    questions: dict[str, dict]
    answers: dict[str, dict[str, Given]]
    judge: Judge
    panel: list[Judge]
    options: Options
    pools: dict[str, list[str]]  # the documents to classify for each question
    documents: Mapping[str, str] | None
    about: dict[str, Any]
    skipped: list[dict]
    labels: dict[tuple[str, str], float]  # by system and question

    @property
    def shared(self) -> list[str]:
        """The questions that every system answers."""
        given = self.answers.values()
        return [name for name in self.questions if all(own[name].answer for own in given)]


def prepare(questions: Source, answers, judge: Judge, options: Options, out=None) -> Case:
    """Return the checked case of a run; `answers` are pairs of a source and a system or None."""
    frame, skipped = inputs.read_questions(questions, skip_bad=options.skip_bad)
    rows = frame[list(schema.COLUMNS["questions"])].to_dict("records")
    asked = {row["question_id"]: row for row in rows}
    about, found = {"questions": _about(questions, frame)}, {}
    for number, (source, system) in enumerate(answers, 1):
        own, bad = inputs.read_answers(source, frame, skip_bad=options.skip_bad)
        skipped += bad
        name, part = _of_system(own, source, system)
        if name in found:
            raise UsageError(f"both systems are called {name!r}", "rename one of them")
        about["answers" if len(answers) == 1 else f"answers_{number}"] = _about(source, part)
        listed = own.attrs["lists"] or not frame["gold_doc_ids"].map(len).any()
        _check_parts(name, part, options.parts, listed)
        found[name] = dict.fromkeys(asked, Given()) | _given(part, options)
    pools = {
        name: pool_of(row["gold_doc_ids"], [own[name].doc_ids for own in found.values()])
        for name, row in asked.items()
    }
    panel = [judge] * 3 if options.panel is None else list(options.panel)
    if options.parts != "documents":
        judge.need("correctness", *["fact"] * any(row["facts"] for row in rows))
    kinds = [] if options.documents is None else ["validity"]
    check_panel(panel, *kinds, *["regenerate"] * bool(options.correct_gold))
    if options.panel is not None and not kinds and len(answers) == 1:
        raise UsageError("a panel judges documents, and none are given", "give documents")
    documents = options.documents
    if documents is not None:
        needed = {doc for pool in pools.values() for doc in pool}
        if isinstance(documents, str | Path):
            documents = inputs.read_documents(documents, needed) if needed else {}
        require(needed, documents)
        documents = {doc: documents[doc] for doc in sorted(needed)}
        about["documents"] = {"sha256": digest(documents), "rows": len(documents)}
    labels = {} if options.labels is None else inputs.read_labels(options.labels, found, asked)
    if labels:
        rows = pd.DataFrame(list(labels.items()), columns=["answer", "score"])
        about["labels"] = _about(options.labels, rows)
    if out is not None:
        check_writable(out)
        files = [questions, options.documents, options.labels, *(source for source, _ in answers)]
        taken = {Path(file).resolve() for file in files if isinstance(file, str | Path)}
        if taken & {Path(out).resolve(), corrected_path(out).resolve()}:
            raise UsageError(f"{out}: an input would be overwritten", "choose another --out")
    return Case(asked, found, judge, panel, options, pools, documents, about, skipped, labels)


def _about(source: Source, frame: pd.DataFrame) -> dict[str, Any]:
    """Return digest and number of rows of an input, and its name if it is a file."""
    if isinstance(source, str | Path):
        return {"file": Path(source).name, "sha256": sha256(source), "rows": len(frame)}
    return {"sha256": digest(frame), "rows": len(frame)}


def _of_system(frame: pd.DataFrame, source: Source, system: str | None):
    """Return the name and the rows of the system to evaluate."""
    where = str(source) if isinstance(source, str | Path) else "answers"
    names = list(dict.fromkeys(frame["system"]))
    if len(names) > 1 and system is None:
        raise UsageError(
            f"{where}: answers of {len(names)} systems: {', '.join(names)}",
            f"--system {names[0]} (system={names[0]!r}) evaluates one of them",
        )
    if names == [Path(where).name.partition(".")[0]] and system is not None:
        return system, frame  # a file that names no system has the file's name
    if system is not None and system not in names:
        raise UsageError(f"{where}: no answers of {system!r}", did_you_mean(system, names))
    return system or names[0], frame[frame["system"] == (system or names[0])]


def _check_parts(system: str, frame: pd.DataFrame, parts: str, listed: bool) -> None:
    if parts != "documents" and frame["answer"].isna().all():
        raise DataError(
            f"{system}: no row has an answer",
            "--parts documents (parts='documents') evaluates the documents alone",
        )
    if parts != "answers" and not listed:
        raise DataError(
            f"{system}: no row has doc_ids, so document recall cannot be computed",
            "--parts answers (parts='answers') evaluates the answers alone",
        )


def _given(frame: pd.DataFrame, options: Options) -> dict[str, Given]:
    found = {}
    for name, answer, docs in frame[["question_id", "answer", "doc_ids"]].to_numpy():
        text = (
            None
            if pd.isna(answer) or options.parts == "documents"
            else inputs.strip_citations(answer)
        )
        docs = list(dict.fromkeys(docs))[: options.cutoff]
        found[name] = Given(text, None if options.parts == "answers" else docs)
    return found


def head(case: Case, kind: str) -> dict[str, Any]:
    """Return the head of a report: what decides its verdicts."""
    options = case.options
    kinds = ["preference"] * (len(case.answers) == 2)
    if case.documents is not None:
        kinds += ["validity"] + ["regenerate"] * bool(options.correct_gold)
    told = ("rules", "cutoff", "repeat", "round", "seed", "parts")
    data = {
        "schema": kind,
        "systems": list(case.answers),
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
