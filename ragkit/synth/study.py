"""A written company as a reader meets it: its plan, briefs, documents and noise as frames.

`ragkit.explore.documents` shows documents and briefs side by side.

>>> from ragkit.synth import sample
>>> company = Company(sample.cached_company())  # replayed, a minute the first time
>>> list(company.document(company.documents["doc_id"].iloc[0]))[:3]
['path', 'doc_id', 'source']
>>> families(company.questions)["family"].tolist()
['single-document', 'corpus-exploration', 'generation-dependent']
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pandas as pd

from ragkit import display
from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.files import read_frame, read_json, read_jsonl
from ragkit.synth.company.questions import FLOWS


class Company:
    """The files that `ragkit.synth.company.generate_company` leaves in a folder.

    Documents and questions are read from the folder `official`, if others have corrected them since.
    Raises `DataError` if the folder holds no finished company.
    """

    def __init__(self, folder: str | Path, official: str | Path | None = None):
        self.folder = Path(folder)
        self.official = Path(official or self.folder / "enterpriserag_bench")
        if not (self.folder / "statistics.json").is_file():
            raise DataError(f"{folder}: no finished company", "ragkit generate company --help")
        self.statistics = read_json(self.folder / "statistics.json")

    def __repr__(self) -> str:
        return f"<Company {self.statistics['company']}: {self.folder}>"

    def _repr_html_(self) -> str:
        facts = {"folder": self.folder, "official files": self.official}
        facts |= {name: f"{len(getattr(self, name)):,}" for name in ("documents", "questions")}
        shown = display.table(self.blocks.groupby("kind", sort=False).head(2), "Two of each kind")
        after = (
            "Next: `.plan('people')` is what a stage was answered, `.document(doc_id)` a document."
        )
        return display.card(self.statistics["company"], facts, shown, after=after)

    @cached_property
    def documents(self) -> pd.DataFrame:
        """Return all documents in ragkit's columns, with the fields of their sources, by doc_id."""
        rows = pd.DataFrame(read_jsonl(self.official / "documents.jsonl"), dtype=object)
        rows = rows.rename(columns={"source_type": "source", "content": "text"})
        return rows.set_index("doc_id", drop=False)

    @cached_property
    def notes(self) -> pd.DataFrame:
        """Return where each document comes from, by doc_id.

        Its key in the plan, kind and block, the `original` that a near-duplicate repeats, what was
        `changed`, and how the document was `moved` (plausible, random, or empty).
        """
        return pd.DataFrame(read_jsonl(self.folder / "document_notes.jsonl")).set_index("doc_id")

    @cached_property
    def questions(self) -> pd.DataFrame:
        return read_frame(self.official / "questions.jsonl", "questions")

    @cached_property
    def left_out(self) -> pd.DataFrame:
        """Return what a check turned down for good: stage, item, reason and remedy."""
        return pd.DataFrame(read_jsonl(self.folder / "left_out.jsonl"))

    def plan(self, stage: str) -> dict:
        """Return what a stage of the scaffolding was answered: company, people, projects ..."""
        path = self.folder / "plan" / f"{stage}.json"
        if not path.is_file():
            known = [one.stem for one in path.parent.glob("*.json")]
            raise UsageError(f"no stage {stage!r}", did_you_mean(stage, known))
        return read_json(path)

    @cached_property
    def blocks(self) -> pd.DataFrame:
        """Return projects, completeness clusters and topics: kind, name, about, documents."""
        said = {"project": "description", "cluster": "question", "topic": "description"}
        rows = [
            (kind, block["name"], block[about], block["documents"])
            for kind, about in said.items()
            for block in self.plan(f"{kind}s")[f"{kind}s"]
        ]
        return pd.DataFrame(rows, columns=["kind", "name", "about", "documents"])

    @cached_property
    def entries(self) -> dict[str, dict]:
        """Return the entries of the manifests by key: what each document was to be."""
        files = sorted((self.folder / "plan" / "manifest").glob("*.json"))
        return {row["key"]: row for path in files for row in read_json(path)["documents"]}

    def document(self, doc_id: str) -> dict:
        """Return one document, without the fields that its source does not have."""
        if doc_id not in self.documents.index:
            known = self.documents.index[:1000]
            raise UsageError(f"no document {doc_id!r}", did_you_mean(doc_id, known))
        return self.documents.loc[doc_id].dropna().to_dict()

    def brief(self, doc_id: str) -> dict:
        """Return the entry of a document's manifest: title, and what it says as text."""
        entry = self.entries[self.notes.loc[doc_id, "key"]]
        parts = {
            "date": entry["date"],
            "people": ", ".join(entry["people"]),
            "what it has to carry": entry["summary"],
            "its part of the cluster's answer": entry.get("carries", ""),
            "documents that it reads": ", ".join(entry["reads"]),
            "metadata": "; ".join(f"{k}: {v}" for k, v in entry["metadata"].items()),
        }
        said = "\n\n".join(f"{name}: {value}" for name, value in parts.items() if value)
        head = {"source": entry["source"], "key": entry["key"], "title": entry["title"]}
        return head | {"text": said}

    @cached_property
    def moves(self) -> pd.DataFrame:
        """Return the misfiled documents by source: plausible (by the author) and random."""
        kinds = pd.crosstab(self.documents["source"], self.notes["moved"])
        return kinds.reindex(columns=["plausible", "random"], fill_value=0)

    @cached_property
    def near_duplicates(self) -> pd.DataFrame:
        """Return original, duplicate and what was changed (before, after), of every pair."""
        ids = pd.Series(self.notes.index, self.notes["key"])
        again = self.notes[self.notes["kind"] == "near-duplicate"]
        pairs = {"original": again["original"].map(ids), "duplicate": again.index}
        return pd.DataFrame(pairs).assign(changed=again["changed"]).reset_index(drop=True)

    def structure(self) -> pd.DataFrame:
        """Return sizes under the names of the paper's sections 4.1 and 4.3: row, column, measured.

        They are the mean size of a project, the smallest and largest cluster, source types, the
        largest topic, types and families of questions.
        """
        sizes = self.notes["block"].value_counts()
        own = self.blocks.assign(documents=self.blocks["name"].map(sizes))
        size = own.groupby("kind")["documents"].agg(["mean", "min", "max"])
        rows = [
            ("project", "typical", size.loc["project", "mean"]),
            ("completeness_cluster", "lowest", size.loc["cluster", "min"]),
            ("completeness_cluster", "highest", size.loc["cluster", "max"]),
            ("corpus", "source_types", self.documents["source"].nunique()),
            ("leaf_topic", "highest", size.loc["topic", "max"]),
            ("total", "question_types", self.questions["type"].nunique()),
            ("total", "families", len(families(self.questions))),
        ]
        return pd.DataFrame(rows, columns=["row", "column", "measured"])


def families(questions: pd.DataFrame) -> pd.DataFrame:
    """Return the families of question types (section 4.3, Table 5) with their types and questions."""
    counts = questions["type"].value_counts()
    rows = [
        (flow["family"], kind.replace("_", " "), counts[kind])
        for kind, flow in FLOWS.items()
        if kind in counts
    ]
    table = pd.DataFrame(rows, columns=["family", "types", "questions"])
    groups = table.groupby("family", sort=False, as_index=False)
    return groups.agg({"types": ", ".join, "questions": "sum"})
