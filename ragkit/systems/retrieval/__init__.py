"""Retrieval: documents in, a `runs` frame out.

>>> from ragkit import datasets
>>> from ragkit.systems.retrieval import BM25, Dense, Hybrid, Kept, Rerank
>>> wixqa = datasets.load("wixqa").part(documents=40, questions=5)
>>> runs = BM25(k1=1.2, b=0.75).fit(wixqa.documents).search(wixqa.questions, k=10)
>>> runs.columns.tolist()
['system', 'question_id', 'rank', 'doc_id', 'score']
>>> path = BM25().fit(wixqa.documents).save("index")
>>> again = BM25(b=0.3).load(path).search(wixqa.questions)
>>> both = Hybrid([BM25(), Dense("e5-small-v2-int8")])
>>> reranked = Rerank(both, "ms-marco-MiniLM-L-12-v2-int8", depth=5).fit(wixqa.documents)
>>> reranked.search(wixqa.questions, k=5).groupby("question_id").size().tolist()
[5, 5, 5, 5, 5]
>>> kept = Kept(BM25()).fit(wixqa.documents)  # its index is there the next time
"""

from __future__ import annotations

from ragkit.systems.retrieval.bm25 import BM25
from ragkit.systems.retrieval.dense import Dense
from ragkit.systems.retrieval.hybrid import Hybrid
from ragkit.systems.retrieval.rerank import Rerank
from ragkit.systems.retrieval.saved import Kept
from ragkit.systems.retrieval.selection import choose
from ragkit.systems.retrieval.servers import OpenSearch, Qdrant

__all__ = ["BM25", "Dense", "Hybrid", "Kept", "OpenSearch", "Qdrant", "Rerank", "choose"]
