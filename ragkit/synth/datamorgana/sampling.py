"""Which documents may be asked about: found by topic, then filtered (LiveRAG, section 2.1)."""

from __future__ import annotations

from dataclasses import dataclass

from ragkit.synth import banks
from ragkit.synth.datamorgana.company import Company
from ragkit.synth.datamorgana.config import Config
from ragkit.synth.datamorgana.filters import Score, Verdicts, judge


@dataclass
class Pool:
    """The valid documents.

    Parameters
    ----------
    documents : list of str
    found : int
        How many the topics brought in.
    topics : dict of str to list of str
        Subtopics by topic.
    verdicts : Verdicts
    """

    documents: list[str]
    found: int
    topics: dict[str, list[str]]
    verdicts: Verdicts


def topics() -> dict[str, list[str]]:
    """Return the topics and subtopics of a generated company: its areas and their matters."""
    found: dict[str, list[str]] = {}
    for bank in ("topics", "misc"):
        for topic in banks.topics(bank).values():
            found.setdefault(topic.area, []).extend([topic.title, *topic.things])
    return found


def frame(company: Company):
    """Return the documents as a frame for retrieval."""
    import pandas as pd

    return pd.DataFrame(list(company.documents.values()))


def retrieve(company: Company, queries: list[str], k: int) -> list[list[str]]:
    """Return for each query the ids of the k best documents by BM25."""
    from ragkit.systems.retrieval.bm25 import BM25

    index = BM25().fit(frame(company))
    runs = index.search(queries, k=k)
    found: list[list[str]] = [[] for _ in queries]
    for query_id, doc_id in zip(runs["question_id"], runs["doc_id"], strict=True):
        found[int(query_id)].append(doc_id)
    return found


def sample(
    company: Company,
    config: Config,
    subtopics: dict[str, list[str]],
    scores: dict[str, dict[str, Score]] | None = None,
) -> Pool:
    """Retrieve documents for every subtopic and keep the valid ones, in the folder's order."""
    queries = list(dict.fromkeys(s for group in subtopics.values() for s in group))
    found = {
        doc_id
        for ids in retrieve(company, queries, config.sampling["per_subtopic"])
        for doc_id in ids
    }
    verdicts = judge(
        ((d, company.text(d)) for d in company.documents if d in found),
        config.filters,
        min_words=config.sampling["min_words"],
        max_words=config.sampling["max_words"],
        scores=scores,
    )
    return Pool(verdicts.kept, len(found), subtopics, verdicts)
