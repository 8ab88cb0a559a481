"""A generated company as a reader meets it: its records as frames, its documents as pages."""

from __future__ import annotations

import filecmp
import re
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.files import read_json, read_jsonl

STAGES = {
    "1-scaffolding": "what all later stages refer to",
    "2-core": "projects and completeness clusters",
    "3-volume": "single documents on leaf topics",
    "4-noise": "misfiled, near-duplicate and informal documents",
    "5-questions": "questions, drafted and validated",
    "6-export": "the benchmark's own layout, statistics",
}
# Table 5's families: from one document, from exploring the corpus, from what generation left.
FAMILIES = {
    "single-document": ("basic", "semantic", "intra_document_reasoning", "miscellaneous"),
    "corpus-exploration": ("project_related", "constrained", "high_level", "info_not_found"),
    "generation-dependent": ("conflicting_info", "completeness"),
}
# What a draft of each type has to pass besides "every gold document says it".
CHECKS = {
    "basic": "shares enough words with its document",
    "semantic": "shares few words with its document",
    "intra_document_reasoning": "its two facts stand far apart",
    "project_related": "no single document holds all of its answer",
    "constrained": "has distractors that break a constraint",
    "conflicting_info": "old and new value stand in two documents",
    "completeness": "no single document holds all of its answer",
    "miscellaneous": "its document is an informal one",
    "high_level": "no document of a project, a cluster or the noise answers it",
    "info_not_found": "nobody states the fact, though others of its subject are stated",
}


class Company:
    """The records that `ragkit.synth.generate` leaves beside a generated benchmark.

    Parameters
    ----------
    folder : path-like
        As `ragkit generate erb` or `ragkit.synth.cached_company` writes it, with at most 20,000 documents.

    Raises
    ------
    DataError
        If the folder holds no finished generation.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        if not (self.folder / "statistics.json").is_file():
            raise DataError(f"{folder}: no finished generation", "ragkit generate erb --help")
        self.statistics = read_json(self.folder / "statistics.json")
        self.settings = self.statistics["settings"]

    @cached_property
    def documents(self) -> pd.DataFrame:
        """Return all documents with the fields of their sources, indexed by doc_id."""
        rows = read_jsonl(self.folder / "enterpriserag_bench" / "documents.jsonl")
        return pd.DataFrame(rows, dtype=object).set_index("doc_id", drop=False)

    @cached_property
    def questions(self) -> pd.DataFrame:
        """Return the questions with what was noted when they were validated."""
        rows = pd.DataFrame(read_jsonl(self.folder / "questions.jsonl"))
        notes = pd.DataFrame(self._lines("5-questions/notes.jsonl"))
        return rows.merge(notes, on="question_id", how="left")

    @cached_property
    def rejected(self) -> pd.DataFrame:
        """Return how many drafts a rule turned down: type, rule, drafts."""
        found = read_json(self.folder / "stages" / "5-questions" / "rejected.json")
        rows = [(*name.split(": ", 1), count) for name, count in found.items()]
        return pd.DataFrame(rows, columns=["type", "rule", "drafts"])

    @cached_property
    def facts(self) -> pd.DataFrame:
        """Return every fact, with the documents that state it in `sources`."""
        return pd.DataFrame(read_jsonl(self.folder / "facts.jsonl")).set_index("fact_id")

    @cached_property
    def employees(self) -> pd.DataFrame:
        return pd.DataFrame(self._lines("1-scaffolding/directory.jsonl"))

    @cached_property
    def groups(self) -> dict[str, dict]:
        """Return projects and completeness clusters by code name."""
        rows = read_json(self.folder / "stages" / "2-core" / "groups.json")
        return {row["code"]: row for row in rows}

    @property
    def projects(self) -> dict[str, dict]:
        return {code: row for code, row in self.groups.items() if "initiative" in row}

    @property
    def clusters(self) -> dict[str, dict]:
        return {code: row for code, row in self.groups.items() if "alias" in row}

    @cached_property
    def near_duplicates(self) -> pd.DataFrame:
        """Return the planted pairs: original, duplicate, subject, attribute, old, new."""
        return pd.DataFrame(self._lines("4-noise/near_duplicates.jsonl"))

    @cached_property
    def moves(self) -> pd.DataFrame:
        """Return the misfiled documents by source and kind: columns random and plausible."""
        rows = pd.DataFrame(self._lines("4-noise/moves.jsonl"))
        source = rows["folder"].str.split("/").str[0]
        order = list(self.statistics["sources"])
        return pd.crosstab(source, rows["kind"]).reindex(order, fill_value=0)

    @cached_property
    def largest_leaf(self) -> int:
        """Return the most documents that one leaf topic holds."""
        topics = read_json(self.folder / "stages" / "1-scaffolding" / "topics.json")
        return max(leaf["count"] for leaves in topics.values() for leaf in leaves)

    def structure(self) -> pd.DataFrame:
        """Return sizes under the names of the paper's sections 4.1 and 4.3.

        Returns
        -------
        DataFrame
            row, column, measured: the mean size of a project, the smallest and largest cluster,
            source types, the largest leaf topic, types and families of questions.
        """
        projects, clusters = (
            [len(group["documents"]) for group in part.values()]
            for part in (self.projects, self.clusters)
        )
        rows = [
            ("project", "typical", sum(projects) / len(projects)),
            ("completeness_cluster", "lowest", min(clusters)),
            ("completeness_cluster", "highest", max(clusters)),
            ("corpus", "source_types", self.documents["source_type"].nunique()),
            ("leaf_topic", "highest", self.largest_leaf),
            ("total", "question_types", self.questions["type"].nunique()),
            ("total", "families", int((families(self.questions)["questions"] > 0).sum())),
        ]
        return pd.DataFrame(rows, columns=["row", "column", "measured"])

    def document(self, doc_id: str) -> dict:
        """Return one document, without the fields that its source does not have."""
        if doc_id not in self.documents.index:
            raise UsageError(
                f"no document {doc_id!r}", did_you_mean(doc_id, self.documents.index[:1000])
            )
        return self.documents.loc[doc_id].dropna().to_dict()

    def stages(self) -> pd.DataFrame:
        """Return what each stage made: stage, purpose, made."""
        rows = []
        for stage, purpose in STAGES.items():
            done = read_json(self.folder / "stages" / stage / "done.json")
            rows.append({"stage": stage, "purpose": purpose, "made": _counts(done)})
        return pd.DataFrame(rows)

    def marks(self, *doc_ids: str) -> list[str]:
        """Return the words of the facts that some documents state: statements, and values.

        A value that is a short number is left to its statement, since it may stand elsewhere too.
        """
        wanted = set(doc_ids)
        own = self.facts[self.facts["sources"].map(lambda sources: bool(wanted & set(sources)))]
        long = own.loc[~own["value"].str.fullmatch(r"[\d.,]{1,4}"), "value"]
        return list(dict.fromkeys([*own["statement"], *long]))

    def statements(self, fact_id: str) -> pd.DataFrame:
        """Return the documents that state a fact: source, title, says (the line with its value)."""
        if fact_id not in self.facts.index:
            raise UsageError(f"no fact {fact_id!r}", did_you_mean(fact_id, self.facts.index))
        fact = self.facts.loc[fact_id]
        rows = []
        for doc_id in fact["sources"]:
            document = self.document(doc_id)
            lines = f"{document['title']}\n{document['content']}".split("\n")
            says = next((line for line in lines if fact["value"].lower() in line.lower()), "")
            rows.append((document["source_type"], document["title"], says, doc_id))
        return pd.DataFrame(rows, columns=["source", "title", "says", "doc_id"])

    def mentions(self, code: str, words: str) -> list[str]:
        """Return the documents of a project or cluster with these words, in the order of writing."""
        if code not in self.groups:
            raise UsageError(f"no project or cluster {code!r}", did_you_mean(code, self.groups))
        own = [row["doc_id"] for row in self.groups[code]["documents"]]
        found = self.documents.loc[[i for i in own if i in self.documents.index]]
        says = (found["title"] + "\n" + found["content"]).str.contains(words, regex=False)
        return found.index[says].tolist()

    def line(self, name: str) -> list[str]:
        """Return a person's line of managers, from the person to the head."""
        manager = self.employees.set_index("name")["manager"]
        if name not in manager.index:
            raise UsageError(f"nobody is called {name!r}", did_you_mean(name, manager.index))
        found = [name]
        while isinstance(manager[found[-1]], str):
            found.append(manager[found[-1]])
        return found

    def again(self, *, jobs: int = 1) -> tuple[pd.DataFrame, bool]:
        """Generate the company anew in a temporary folder, and compare.

        Returns
        -------
        DataFrame
            stage, seconds.
        bool
            Whether all files are the same, byte by byte.
        """
        from ragkit.synth import generate

        marks: dict[str, list[float]] = {}

        def progress(stage: str, done: int, total: int) -> None:
            marks.setdefault(stage, []).append(time.perf_counter())

        with tempfile.TemporaryDirectory(prefix="ragkit-company-") as place:
            start = time.perf_counter()
            generate(place, **self.settings, jobs=jobs, progress=progress)
            names = sorted(path.relative_to(place) for path in Path(place).rglob("*.json*"))
            names += sorted(path.relative_to(place) for path in Path(place).rglob("*.zip"))
            _, off, lost = filecmp.cmpfiles(place, self.folder, map(str, names), shallow=False)
        ends = [start, *(times[-1] for times in marks.values())]
        seconds = [after - before for before, after in zip(ends, ends[1:], strict=False)]
        table = pd.DataFrame({"stage": list(marks), "seconds": seconds})
        return table, not off and not lost

    def _lines(self, name: str) -> list[dict]:
        return read_jsonl(self.folder / "stages" / name)


def question_cards(company: Company, *, each: int = 1):
    """Return the first questions of each type for display: answer, facts, gold documents, notes.

    Parameters
    ----------
    company : Company
    each : int, default=1
        Questions of a type.

    Returns
    -------
    IPython.display.HTML
    """
    from IPython.display import HTML

    rows = company.questions.groupby("type", sort=False).head(each).to_dict("records")
    for row in rows:
        gold = [company.document(doc_id) for doc_id in row["gold_doc_ids"]]
        row["gold"] = [f"{d['source_type']}: {d['title']} ({d['path']})" for d in gold]
        noted, misleading = row["pattern"], len(row["distractor_doc_ids"])
        if misleading and "distractor" not in noted:
            noted += f"{'; ' if noted else ''}distractors: {misleading}"
        row["noted"] = noted
    return HTML(_templates().questions(rows))


def families(questions: pd.DataFrame) -> pd.DataFrame:
    """Return the families of question types with their types and questions.

    References
    ----------
    EnterpriseRAG-Bench, section 4.3 and Table 5.
    """
    counts = questions["type"].value_counts()
    rows = [
        {
            "family": family,
            "types": ", ".join(kind.replace("_", " ") for kind in kinds if kind in counts),
            "questions": int(sum(counts.get(kind, 0) for kind in kinds)),
        }
        for family, kinds in FAMILIES.items()
    ]
    return pd.DataFrame(rows)


def pages(
    documents: Sequence[dict], *, marks: Iterable[str] = (), notes: Sequence[str] = (), columns=1
):
    """Return documents for display in a notebook, each whole, with words marked.

    Parameters
    ----------
    documents : sequence of dict
        As `Company.document` returns them.
    marks : iterable of str
        Words that are marked wherever they stand, in letters of either case.
    notes : sequence of str
        A line above each document, if given.
    columns : int, default=1
        Documents side by side.

    Returns
    -------
    IPython.display.HTML
    """
    from IPython.display import HTML

    if notes and len(notes) != len(documents):
        raise UsageError(f"{len(documents)} documents need as many notes, found {len(notes)}")
    mark = partial(_marked, [mark for mark in marks if mark])
    return HTML(_templates().pages(documents, notes or [""] * len(documents), mark, columns))


def _templates():
    files = jinja2.FileSystemLoader(Path(__file__).parent)
    return jinja2.Environment(loader=files, autoescape=True).get_template("study.html").module


def _marked(marks: list[str], text: str) -> Markup:
    """Return text for a page, the marks in it highlighted; a number is not marked inside another."""
    longest = sorted(map(re.escape, marks), key=len, reverse=True)
    pattern = rf"(?<!\w)(?<!\d[.,])({'|'.join(longest)})(?!\w)" if marks else r"(?!)()"
    parts = re.split(pattern, text, flags=re.IGNORECASE)
    # Every second part is a mark.
    shown = Markup('<mark style="background:#ffe08a">{}</mark>')
    return Markup("").join(shown.format(part) if i % 2 else part for i, part in enumerate(parts))


def _counts(done: dict) -> str:
    """Return the counts of a stage in words."""
    parts = []
    for name, value in done.items():
        if name == "documents" and isinstance(value, dict):
            parts.append(f"documents {sum(value.values()):,} from {len(value)} sources")
        elif name == "rejected":
            parts += [f"drafts rejected {sum(value.values()):,}"] if value else []
        elif isinstance(value, dict):
            inner = ", ".join(f"{key} {count:,}" for key, count in value.items())
            parts += [f"{name} {sum(value.values()):,} ({inner})"] if value else []
        else:
            parts.append(f"{name.replace('_', ' ')} {value:,}")
    return "; ".join(parts)
