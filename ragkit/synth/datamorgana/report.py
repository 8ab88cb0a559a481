"""Rows, notes and the report of a made set of questions."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from ragkit.files import write_text
from ragkit.synth.briefs import shares
from ragkit.synth.datamorgana import words
from ragkit.synth.datamorgana.collection import Collection
from ragkit.synth.datamorgana.config import Config
from ragkit.synth.datamorgana.mistakes import error_rate
from ragkit.synth.streams import Stream

if TYPE_CHECKING:
    from ragkit.synth.datamorgana.offline import Draft

# The challenge had two sessions of 500 questions each, 105 of which were in both.
SESSIONS = {"First": 395, "Second": 395, "Both": 105}


@dataclass
class Benchmark:
    """Questions in the fields of LiveRAG's appendix B, notes on each, and the statistics.

    Attributes
    ----------
    rows : list of dict
    notes : list of dict
        `Index`, the text `correct` without spelling mistakes, `error_rate` (edits for each
        character), `overlap` (share of words in common with the documents), `facts` (the ids of
        those asked for) and `marks` (what the documents say of them).
    report : dict
    left_out : list of dict
        Questions and documents that the author spoilt: stage, item, reason and remedy.
    """

    rows: list[dict] = field(default_factory=list)
    notes: list[dict] = field(default_factory=list)
    report: dict = field(default_factory=dict)
    left_out: list[dict] = field(default_factory=list)

    def write(self, out: str | Path) -> None:
        """Write `out` and beside it `STEM.notes.jsonl`, `STEM.report.json`, `STEM.left_out.jsonl`.

        The last one only if something was left out.
        """
        out = Path(out)
        write_text(beside(out, "notes.jsonl"), _lines(self.notes))
        told = json.dumps(self.report, ensure_ascii=False, indent=1) + "\n"
        write_text(beside(out, "report.json"), told)
        if self.left_out:
            write_text(beside(out, "left_out.jsonl"), _lines(self.left_out))
        write_text(out, _lines(self.rows))


def beside(out: Path, tail: str) -> Path:
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.{tail}")


def _lines(rows: list[dict]) -> str:
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)


def row(index: int, draft: Draft, claims: dict, session: str, collection: Collection) -> dict:
    """Return a question in the fields of LiveRAG's appendix B."""
    return {
        "Index": index,
        "Question": draft.data["question"].strip(),
        "Answer": draft.data["answer"].strip(),
        "Supporting_Documents": [
            {"doc_id": d, "content": collection.text(d)} for d in draft.documents
        ],
        "Answer_Claims": claims,
        "Session": session,
        "DataMorgana_Config": draft.categories,
    }


def note(index: int, draft: Draft, collection: Collection) -> dict:
    """Return what is known of a question beside its row."""
    text, used = draft.data["question"].strip(), draft.used()
    correct = draft.data.get("correct", text)
    known = words.names(*(fact.subject for fact in used))
    return {
        "Index": index,
        "correct": correct,
        "error_rate": round(error_rate(correct, text), 4),
        "overlap": round(words.overlap(correct, " ".join(draft.texts), known), 4),
        "facts": [fact.fact_id for fact in used],
        "marks": [fact.value for fact in used],
    }


def sessions(count: int, stream: Stream) -> list[str]:
    """Return the session of each question, in the challenge's proportions."""
    counts = shares(count, list(map(float, SESSIONS.values())))
    found = [name for name, n in zip(SESSIONS, counts, strict=True) for _ in range(n)]
    return stream.sample(found, count)


def report(rows, notes, config: Config, pool, refused: Counter, *, offline: bool) -> dict:
    """Return what a reader of the questions wants to know of them."""
    lengths: dict[str, list[int]] = {}
    measured: dict[str, dict[str, list[float]]] = {"error rate": {}, "overlap": {}}
    for made_row, made_note in zip(rows, notes, strict=True):
        chosen = made_row["DataMorgana_Config"]
        for name in ("all", chosen.get("Phrasing", "")):
            lengths.setdefault(name, []).append(len(made_row["Question"].split()))
        for what, by in (("error rate", "Linguistic Correctness"), ("overlap", "Linguistic Variation")):  # fmt: skip
            values = measured[what].setdefault(chosen.get(by, ""), [])
            values.append(made_note[what.replace(" ", "_")])
    drawn = {
        name: Counter(r["DataMorgana_Config"][name] for r in rows)
        for name in config.categorizations
    }
    found = {
        "questions": len(rows),
        "config": Path(config.path).name,
        "documents": {
            "found by topic": pool.found,
            "kept": len(pool.documents),
            "left out": dict(sorted(pool.verdicts.counts.items())),
            "asked about": len({d["doc_id"] for r in rows for d in r["Supporting_Documents"]}),
        },
        "categories": {
            name: {
                c.name: {"configured": c.probability, "drawn": drawn[name][c.name]} for c in choices
            }
            for name, choices in config.categorizations.items()
        },
        "fit": fit(drawn, config),
        "words": {
            k: {"median": median(v), "mean": round(mean(v), 2)} for k, v in sorted(lengths.items())
        },
        "attempts refused": dict(sorted(refused.items())),
    }
    # What the text would be without mistakes is not known of a model's question.
    for what in ("error rate", "overlap") if offline else ("overlap",):
        found[what] = {k: round(mean(v), 4) for k, v in sorted(measured[what].items())}
    return found


def fit(drawn: dict[str, Counter], config: Config) -> dict[str, dict[str, float]]:
    """Return, by categorization, Pearson's chi-square against the probabilities, and its p-value."""
    from scipy.stats import chisquare

    found = {}
    for name, choices in config.categorizations.items():
        some = [c for c in choices if c.probability > 0]
        expected = [c.probability * drawn[name].total() for c in some]
        if len(some) > 1:
            result = chisquare([drawn[name][c.name] for c in some], expected, sum_check=False)
            found[name] = {
                "chi2": round(float(result.statistic), 3),
                "p": round(float(result.pvalue), 4),
            }
    return found
