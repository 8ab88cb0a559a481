"""DataMorgana without a language model: categories are drawn, a document found, a question made.

LiveRAG, section 2.2: one question at a time, from one document or two.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from ragkit.errors import UsageError
from ragkit.files import sha256, write_text
from ragkit.synth.author import AuthorOptions
from ragkit.synth.datamorgana import materials, sampling
from ragkit.synth.datamorgana.company import Company, content, load
from ragkit.synth.datamorgana.config import Config, check_count, load_config, offline_only
from ragkit.synth.datamorgana.materials import Material
from ragkit.synth.datamorgana.mistakes import error_rate
from ragkit.synth.datamorgana.wording import Refused, Writer
from ragkit.synth.datamorgana.words import overlap
from ragkit.synth.streams import Stream

# The challenge had two sessions of 500 questions each, 105 of which were in both.
SESSIONS = {"First": 395, "Second": 395, "Both": 105}
LOOK = 60  # materials looked through for one that suits the persona
# Chances that a claim beyond what was asked for is in the answer.
MORE = {"concise-answer": (0.0, 0.0), "unspecified": (0.45, 0.2), "detailed-answer": (1.0, 0.5)}

Progress = Callable[[str, int, int], None]


@dataclass
class Benchmark:
    """Questions in the fields of LiveRAG's appendix B, notes on each, and the statistics.

    Attributes
    ----------
    rows : list of dict
    notes : list of dict
        `Index`, the text `correct` without spelling mistakes, `error_rate` (edits for each
        character), `overlap` (share of words in common with the documents), `asks` (what is asked
        for).
    report : dict
    """

    rows: list[dict] = field(default_factory=list)
    notes: list[dict] = field(default_factory=list)
    report: dict = field(default_factory=dict)

    def write(self, out: str | Path) -> None:
        """Write `out` and beside it `STEM.notes.jsonl` and `STEM.report.json`."""
        out = Path(out)
        write_text(beside(out, "notes.jsonl"), _lines(self.notes))
        report = json.dumps(self.report, ensure_ascii=False, indent=1) + "\n"
        write_text(beside(out, "report.json"), report)
        write_text(out, _lines(self.rows))


def beside(out: Path, tail: str) -> Path:
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.{tail}")


def make_questions(
    documents: str | Path,
    *,
    questions: int,
    config: str | Path | Config | None = None,
    seed: int,
    author: str = "offline",
    progress: Progress | None = None,
    author_options: AuthorOptions | None = None,
) -> Benchmark:
    """Make questions about the documents of a folder.

    Parameters
    ----------
    documents : path-like
        A folder with documents.jsonl and, for the offline author, facts.jsonl.
    questions : int
    config : path-like or Config, optional
        Default: LiveRAG's.
    seed : int, at least 0
    author : str
        `offline` or `openai:MODEL`.
    progress : callable, optional
        Called with stage, steps done and steps in all.
    author_options : AuthorOptions, optional
        For a model as author.

    Raises
    ------
    DataError
        If the folder or the configuration is not fit.
    UsageError
        If the facts do not carry as many questions, or the offline author is given options.
    """
    check_count(questions)
    if seed < 0:
        raise UsageError(f"seed must be at least 0, not {seed}")
    if not isinstance(config, Config):
        config = load_config(config)
    if author != "offline":
        from ragkit.synth.datamorgana.model import ModelWriter

        company = load(documents, facts=False)
        writer = ModelWriter(
            author, company, config, seed, progress, author_options or AuthorOptions()
        )
    else:
        if author_options is not None:
            raise UsageError("the offline author takes no options of a model")
        offline_only(config)
        writer = _Run(load(documents), config, seed, progress or (lambda *_: None))
    made = writer.make(questions)
    made.report |= settings(documents, config, questions, seed, author)
    return made


def settings(
    documents: str | Path, config: Config, questions: int, seed: int, author: str
) -> dict[str, int | str]:
    """Return what a finished file of questions was made from, as its report says it."""
    return {
        "questions asked for": questions,
        "seed": seed,
        "author": author,
        "sha256 of the config": config.digest,
        "sha256 of documents.jsonl": sha256(Path(documents) / "documents.jsonl"),
    }


def estimate(
    documents: str | Path,
    *,
    questions: int,
    config: str | Path | Config | None = None,
    seed: int,
    author: str = "offline",
    author_options: AuthorOptions | None = None,
) -> list[str]:
    """Return, in lines, what `make_questions` would do; nothing is asked or written."""
    check_count(questions)
    if not isinstance(config, Config):
        config = load_config(config)
    if author != "offline":
        from ragkit.synth.datamorgana.model import ModelWriter

        company = load(documents, facts=False)
        return ModelWriter(
            author, company, config, seed, None, author_options or AuthorOptions()
        ).estimate(questions)
    offline_only(config)
    run = _Run(load(documents), config, seed, lambda *_: None)
    pool, ready, drawn = run.prepare(questions)
    lines = [f"{len(run.company.documents):,} documents, {pool.found:,} found by topic"]
    lines += [f"  {n:>7,} left out: {what}" for what, n in sorted(pool.verdicts.counts.items())]
    lines += [f"  {len(pool.documents):>7,} to be asked about", f"{questions:,} questions"]
    wanted = Counter(categories["Answer Type"] for categories in drawn)
    for kind, found in ready.items():
        can = len({m.key for m in found})
        lines.append(f"  {wanted[kind]:>7,} {kind} ({can:,} possible)")
    return lines


class _Run:
    def __init__(self, company: Company, config: Config, seed: int, progress: Progress):
        self.company, self.config, self.seed, self.progress = company, config, seed, progress

    def pool(self) -> sampling.Pool:
        self.progress("sampling", 0, 1)
        pool = sampling.sample(self.company, self.config, sampling.topics())
        if not pool.documents:
            reasons = ", ".join(f"{n} {what}" for what, n in pool.verdicts.counts.most_common())
            raise UsageError(
                f"{self.company.folder}: none of {pool.found} documents passes the filters ({reasons})",
                f"loosen [filters] or [sampling] in {self.config.path}",
            )
        self.progress("sampling", 1, 1)
        return pool

    def prepare(self, questions: int):
        """Return the pool, what can be asked by answer type, and the categories drawn."""
        pool = self.pool()
        ready = materials.build(self.company, pool.documents, Stream(self.seed, "materials"))
        ready = {
            kind: Stream(self.seed, "order", kind).sample(found, len(found))
            for kind, found in ready.items()
        }
        drawn = [self.config.draw(Stream(self.seed, "categories", i)) for i in range(questions)]
        return pool, ready, drawn

    def make(self, questions: int) -> Benchmark:
        pool, ready, drawn = self.prepare(questions)
        wanted = Counter(categories["Answer Type"] for categories in drawn)
        short = [
            f"{len({m.key for m in ready[kind]})} of {n} {kind}"
            for kind, n in wanted.items()
            if len({m.key for m in ready[kind]}) < n
        ]
        if short:
            self._too_many(", ".join(short), len(pool.documents))
        texts = {d: self.company.text(d) for d in pool.documents}
        writer = Writer(texts)
        self.refused: Counter[str] = Counter()
        self.asked: set[tuple] = set()
        self.written: set[str] = set()
        self.times: Counter[str] = Counter()
        sessions = _sessions(questions, Stream(self.seed, "sessions"))
        out = Benchmark()
        for i, categories in enumerate(drawn):
            stream = Stream(self.seed, "question", i)
            material, text, correct = self._one(
                ready[categories["Answer Type"]], categories, writer, stream
            )
            if material is None:
                self._too_many(f"question {i + 1} ({', '.join(categories.values())})", len(texts))
            claims = _claims(material, categories["Answer Style"], stream)
            out.rows.append(
                row(
                    i + 1,
                    text,
                    material.documents,
                    claims,
                    sessions[i],
                    categories,
                    self.company.documents,
                )  # fmt: skip
            )
            out.notes.append(
                note(
                    i + 1,
                    text,
                    correct,
                    " ".join(texts[d] for d in material.documents),
                    material.names,
                )
                | {"asks": list(material.key)}
            )
            self.progress("questions", i + 1, questions)
        out.report = report(out, self.config, pool, self.refused)
        return out

    def _too_many(self, what: str, documents: int):
        raise UsageError(
            f"{self.company.folder}: the facts of {documents} documents do not carry the questions: {what}",
            "ask for fewer questions, lower the probability of that category, or make more documents",
        )

    def _one(self, found: list[Material], categories, writer: Writer, stream: Stream):
        """Return a material, the question and its text without mistakes; the first that will do.

        What one document alone states comes first, then documents asked about least, then what
        suits the persona.
        """
        free = [m for m in found if m.key not in self.asked]
        persona = categories["User Persona"]
        free.sort(key=lambda m: (m.shared, sum(self.times[d] for d in m.documents)))
        first = sorted(free[:LOOK], key=lambda m: m.leaning != persona)
        ordered = [*first, *free[LOOK:]]
        # Only where no material can be put in its own keywords are the spare ones tried.
        spare = [m for m in ordered if m.spare_keys]
        for place, material in enumerate([*ordered, *spare]):
            reason = validate(self.company, material)
            if reason:
                self.refused[reason] += 1
                continue
            try:
                text, correct = writer.write(
                    material, categories, stream, spare=place >= len(ordered)
                )
            except Refused as refused:
                self.refused[str(refused)] += 1
                continue
            if text.lower() in self.written:
                self.refused["asked before in the same words"] += 1
                continue
            self.written.add(text.lower())
            self.asked.add(material.key)
            self.times.update(material.documents)
            return material, text, correct
        return None, "", ""


def validate(company: Company, material: Material) -> str:
    """Return why the documents do not answer a question, or an empty string."""
    for doc_id, needed in material.needed.items():
        if any(part.lower() not in company.lower[doc_id] for part in needed):
            return "a document does not state its fact"
    if len(material.documents) == 2:
        a, b = material.documents
        if a == b:
            return "both documents are the same"
        for one, other in ((a, b), (b, a)):
            known = company.lower[one]
            names = material.kind == "multi-aspect"
            if names and all(part.lower() in known for part in material.needed[other]):
                return "one document answers it alone"
    return ""


def _claims(material: Material, style: str, stream: Stream) -> dict[str, list[str]]:
    useful, useless = MORE[style]
    return {
        "direct": list(material.direct),
        "useful": [c for c in material.useful[:3] if stream.chance(useful)],
        "useless": [c for c in material.useless[:1] if stream.chance(useless)],
    }


def row(index, text, doc_ids, claims, session, categories, documents) -> dict:
    """Return a question in the fields of LiveRAG's appendix B."""
    answer = " ".join(claim for kind in ("direct", "useful", "useless") for claim in claims[kind])
    return {
        "Index": index,
        "Question": text,
        "Answer": answer,
        "Supporting_Documents": [{"doc_id": d, "content": content(documents[d])} for d in doc_ids],
        "Answer_Claims": claims,
        "Session": session,
        "DataMorgana_Config": categories,
    }


def note(index, text, correct, document, names) -> dict:
    return {
        "Index": index,
        "correct": correct,
        "error_rate": round(error_rate(correct, text), 4),
        "overlap": round(overlap(correct, document, names), 4),
    }


def _sessions(count: int, stream: Stream) -> list[str]:
    from ragkit.synth.briefs import shares

    counts = shares(count, list(map(float, SESSIONS.values())))
    names = [name for name, n in zip(SESSIONS, counts, strict=True) for _ in range(n)]
    return stream.sample(names, count)


def report(made: Benchmark, config: Config, pool, refused) -> dict:
    """Return what a reader of the questions wants to know of them."""
    lengths: dict[str, list[int]] = {}
    rates: dict[str, list[float]] = {}
    overlaps: dict[str, list[float]] = {}
    for made_row, made_note in zip(made.rows, made.notes, strict=True):
        chosen = made_row["DataMorgana_Config"]
        words = len(made_row["Question"].split())
        for name in ("all", chosen.get("Phrasing", "")):
            lengths.setdefault(name, []).append(words)
        rates.setdefault(chosen.get("Linguistic Correctness", ""), []).append(
            made_note["error_rate"]
        )
        overlaps.setdefault(chosen.get("Linguistic Variation", ""), []).append(made_note["overlap"])
    drawn = {
        name: Counter(r["DataMorgana_Config"][name] for r in made.rows)
        for name in config.categorizations
    }
    return {
        "questions": len(made.rows),
        "config": Path(config.path).name,
        "documents": {
            "found by topic": pool.found,
            "kept": len(pool.documents),
            "left out": dict(sorted(pool.verdicts.counts.items())),
            "asked about": len({d["doc_id"] for r in made.rows for d in r["Supporting_Documents"]}),
        },
        "categories": {
            name: {
                c.name: {"configured": c.probability, "drawn": drawn[name][c.name]} for c in choices
            }
            for name, choices in config.categorizations.items()
        },
        "fit": fit(made.rows, config),
        "words": {
            k: {"median": median(v), "mean": round(mean(v), 2)} for k, v in sorted(lengths.items())
        },
        "error rate": {k: round(mean(v), 4) for k, v in sorted(rates.items())},
        "overlap": {k: round(mean(v), 4) for k, v in sorted(overlaps.items())},
        "attempts refused": dict(sorted(refused.items())),
    }


def fit(rows: list[dict], config: Config) -> dict[str, dict[str, float]]:
    """Return, by categorization, Pearson's chi-square against the probabilities, and its p-value."""
    from scipy.stats import chisquare

    found = {}
    for name, choices in config.categorizations.items():
        counts = Counter(r["DataMorgana_Config"][name] for r in rows)
        some = [c for c in choices if c.probability > 0]
        expected = [c.probability * len(rows) for c in some]
        if len(some) > 1:
            result = chisquare([counts[c.name] for c in some], expected, sum_check=False)
            found[name] = {
                "chi2": round(float(result.statistic), 3),
                "p": round(float(result.pvalue), 4),
            }
    return found


def _lines(rows: list[dict]) -> str:
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)
