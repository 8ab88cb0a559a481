"""What a run of the harness evaluates: its options, and the checked questions and answers."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ragkit import __version__, checks, schema
from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.files import sha256
from ragkit.judging.goldset import RULES, check_panel, pool_of, require
from ragkit.judging.inputs import read_answers, read_documents, read_questions
from ragkit.judging.inputs import strip_citations as stripped
from ragkit.judging.judges import Judge
from ragkit.judging.report import check_writable, corrected_path
from ragkit.store import digest

# What is evaluated of a system: its answers, the documents that it lists, or both.
PARTS = ("both", "answers", "documents")


@dataclass(frozen=True)
class Options:
    """How answers are evaluated.

    Parameters
    ----------
    documents : mapping of id to text, or path, optional
        The texts of gold and retrieved documents. With them a panel classifies the retrieved
        documents; without them every document that is not gold is invalid.
    panel : sequence of Judge, optional
        Who classifies documents and compares answers. Default: the judge, three times.
    correct_gold : bool, optional
        Correct the gold sets by the panel's classes before scoring. Corrected questions are
        flagged, and written to NAME.corrected.jsonl beside the report. Default: only when two
        systems are compared and documents are given; the leaderboard does not correct.
    rules : {"paper", "code"}
        How the votes on a document decide; see `ragkit.judging.classify`.
    cutoff : int, optional
        The most documents to use of each answer. Default: all.
    repeat : int, at least 1
        Verdicts on every answer and fact. More than half decide, so an odd number is best: of an
        even one, half yes counts as no.
    round : int, at least 0
        Each round gets verdicts that are independent of those of other rounds.
    seed : int
        For the intervals, and for the order in which two answers are shown.
    parts : {"both", "answers", "documents"}
        What to evaluate of a system.
    skip_bad : bool
        Leave out bad rows of the inputs, and list them in the report.

    Raises
    ------
    UsageError
        If an option is out of range.

    Source: EnterpriseRAG-Bench, sections 5.1 to 5.3.
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

    def __post_init__(self):
        checks.choice(self.rules, "rules", RULES)
        checks.choice(self.parts, "parts", PARTS)
        checks.whole(self.repeat, "repeat")
        checks.whole(self.round, "round", least=0)
        if self.cutoff is not None:
            checks.whole(self.cutoff, "cutoff")
        if self.correct_gold and self.documents is None:
            raise UsageError("gold sets are corrected with the texts of the documents: give them")


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


def prepare(questions, answers, judge: Judge, options: Options, out) -> Case:
    """Return the checked case of a run; the parameters are those of `evaluate` and `estimate`."""
    frame, skipped = read_questions(questions, skip_bad=options.skip_bad)
    rows = frame[list(schema.COLUMNS["questions"])].to_dict("records")
    about = {"questions": _about(questions, rows)}
    found: dict[str, dict[str, dict]] = {}
    for number, (source, system) in enumerate(answers, 1):
        own, bad = read_answers(source, frame, skip_bad=options.skip_bad)
        skipped += bad
        listed = own.attrs.get("lists", True) or not frame["gold_doc_ids"].map(len).any()
        name, own = _of_system(own, source, system)
        if name in found:
            raise UsageError(f"both systems are called {name!r}", "rename one of them")
        about["answers" if len(answers) == 1 else f"answers_{number}"] = _about(source, own)
        found[name] = {row["question_id"]: row for row in own}
        _check_parts(name, own, options.parts, listed)
    panel = [judge] * 3 if options.panel is None else list(options.panel)
    by_id = {row["question_id"]: row for row in rows}
    case = Case(by_id, found, judge, panel, options, about, skipped)
    if options.parts != "documents":
        judge.need("correctness", "fact")
    check_panel(panel)
    if options.documents is not None:
        check_panel(panel, "validity", *["regenerate"] * bool(options.correct_gold))
        case = _with_documents(case)
    elif options.panel is not None and len(answers) == 1:
        raise UsageError("a panel judges documents, and none are given", "give documents")
    if out is not None:
        check_writable(out)
        files = [questions, options.documents, *(source for source, _ in answers)]
        taken = {Path(file).resolve() for file in files if isinstance(file, str | Path)}
        if taken & {Path(out).resolve(), corrected_path(out).resolve()}:
            raise UsageError(f"{out}: an input would be overwritten", "choose another --out")
    return case


def _about(source, rows: list) -> dict[str, Any]:
    """Return digest and number of rows of an input, and its name if it is a file."""
    if isinstance(source, str | Path):
        return {"file": Path(source).name, "sha256": sha256(source), "rows": len(rows)}
    return {"sha256": digest(rows), "rows": len(rows)}


def _of_system(frame, source, system: str | None) -> tuple[str, list[dict]]:
    """Return the name and the rows of the system to evaluate."""
    where = str(source) if isinstance(source, str | Path) else "answers"
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
    frame = frame[frame["system"] == (system or names[0])]
    frame = frame.assign(answer=frame["answer"].astype(object).where(frame["answer"].notna(), None))
    return system or names[0], frame[list(schema.COLUMNS["answers"])].to_dict("records")


def _check_parts(system: str, rows: list[dict], parts: str, listed: bool) -> None:
    """Raise `DataError` if what is to be evaluated of a system is not in its answers."""
    if parts != "documents" and all(row["answer"] is None for row in rows):
        raise DataError(
            f"{system}: no row has an answer",
            "--parts documents (parts='documents') evaluates the documents alone",
        )
    if parts != "answers" and not listed:
        raise DataError(
            f"{system}: no row has doc_ids, so document recall cannot be computed",
            "--parts answers (parts='answers') evaluates the answers alone",
        )


def _with_documents(case: Case) -> Case:
    needed = {doc for name in case.questions for doc in case.pool(name)}
    documents = case.options.documents
    if isinstance(documents, str | Path):
        documents = read_documents(documents, needed)
    require(needed, documents)
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
