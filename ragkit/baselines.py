"""Some forty small retrieval systems, for a real response matrix wherever there is a corpus.

Each system is a way of weighing terms (scikit-learn) or an encoder, and a depth: how many words of
a document it indexes after the title. They are not competitive; they differ enough, and honestly,
for an item response model to have something to explain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragkit import datasets, models, schema
from ragkit.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

# Words of the text that are indexed after the title.
DEPTHS = {"8": 8, "20": 20, "40": 40, "80": 80, "all": None}
# Ways of weighing terms: options of TfidfVectorizer, and dimensions of a latent space if any.
WEIGHTINGS: dict[str, tuple[dict, int | None]] = {
    "tf": ({"use_idf": False}, None),
    "binary": ({"binary": True, "use_idf": False}, None),
    "tfidf": ({}, None),
    "tfidf-sublinear": ({"sublinear_tf": True}, None),
    "tfidf-stop": ({"stop_words": "english"}, None),
    "tfidf-bigrams": ({"ngram_range": (1, 2)}, None),
    "char-3-5": ({"analyzer": "char_wb", "ngram_range": (3, 5), "sublinear_tf": True}, None),
    "lsa-16": ({"sublinear_tf": True}, 16),
}


def systems() -> list[str]:
    """Return the names of all systems, WEIGHTING/DEPTH."""
    return [f"{how}/{depth}" for how in (*WEIGHTINGS, "all-MiniLM-L6-v2") for depth in DEPTHS]


def run(
    documents: pd.DataFrame, questions: pd.DataFrame, *, names: Iterable[str] | None = None
) -> pd.DataFrame:
    """Rank all documents for every question by every system.

    Parameters
    ----------
    documents, questions : DataFrame
        See `ragkit.schema`.
    names : iterable of str, optional
        Some of `systems()`; all by default.

    Returns
    -------
    DataFrame
        A `runs` frame: system, question_id, rank (from 1), doc_id, score (cosine). Equal scores
        keep the documents' order.
    """
    schema.check(documents, "documents")
    schema.check(questions, "questions")
    known = systems()
    chosen = known if names is None else list(names)
    for name in chosen:
        if name not in known:
            raise UsageError(f"no system {name!r}", did_you_mean(name, known))
    frames = []
    for name in chosen:
        how, _, depth = name.partition("/")
        leads = documents["text"].str.split().str[: DEPTHS[depth]].str.join(" ")
        texts = (documents["title"].fillna("") + "\n" + leads).tolist()
        cosines = _similarity(how)(texts, questions["text"].tolist())
        order = np.argsort(-cosines, axis=1, kind="stable")
        n, m = order.shape
        frames.append(
            pd.DataFrame(
                {
                    "system": name,
                    "question_id": np.repeat(questions["question_id"].to_numpy(), m),
                    "rank": np.tile(np.arange(1, m + 1), n),
                    "doc_id": documents["doc_id"].to_numpy()[order].ravel(),
                    "score": np.take_along_axis(cosines, order, axis=1).ravel(),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def reciprocal_ranks(runs: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Return the reciprocal rank of the first gold document, as a `scores` frame.

    Questions without gold documents are left out.

    Returns
    -------
    DataFrame
        subject_id (the system), item_id (the question), score in (0, 1]; a question whose gold
        documents are in no run of a system scores 0 there.
    """
    gold = questions.set_index("question_id")["gold_doc_ids"]
    gold = gold[gold.map(len) > 0].map(set)
    if gold.empty:
        raise DataError("no question has a gold document")
    kept = runs[runs["question_id"].isin(gold.index)]
    pairs = zip(kept["question_id"], kept["doc_id"], strict=True)
    hits = kept[[doc in gold[question] for question, doc in pairs]]
    first = hits.groupby(["system", "question_id"])["rank"].min()
    cells = pd.MultiIndex.from_product([runs["system"].unique(), gold.index])
    scores = (1 / first).reindex(cells, fill_value=0.0)
    return scores.rename_axis(["subject_id", "item_id"]).rename("score").reset_index()


def sample_scores() -> pd.DataFrame:
    """Return the reciprocal ranks of all systems on the sample's LiveRAG questions.

    The corpus is the whole embedded sample: the supporting documents among all others.

    Returns
    -------
    DataFrame
        A `scores` frame of `len(systems())` subjects.
    """
    names = ("liverag", "enterpriserag_bench", "wixqa")
    sets = {name: datasets.load(name, profile="sample") for name in names}
    columns = list(schema.COLUMNS["documents"])
    documents = pd.concat([sets[name].documents[columns] for name in names], ignore_index=True)
    questions = sets["liverag"].questions
    return reciprocal_ranks(run(documents, questions), questions)


def _similarity(how: str) -> Callable[[list[str], list[str]], np.ndarray]:
    if how not in WEIGHTINGS:
        return lambda texts, asked: (
            models.embed(asked, model=how) @ models.embed(texts, model=how).T
        )
    return lambda texts, asked: _weighted(texts, asked, *WEIGHTINGS[how])


def _weighted(texts: list[str], asked: list[str], options: dict, dimensions: int | None):
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    vectorizer = TfidfVectorizer(**options)
    weights = vectorizer.fit_transform(texts)
    queries = vectorizer.transform(asked)
    if dimensions:
        rank = min(dimensions, min(weights.shape) - 1)
        space = TruncatedSVD(rank, algorithm="arpack", random_state=0).fit(weights)
        return normalize(space.transform(queries)) @ normalize(space.transform(weights)).T
    return (queries @ weights.T).toarray()
