"""Retrieval: documents in, a `runs` frame out.

>>> from ragkit.systems.retrieval import BM25, Dense, Hybrid, Rerank
>>> runs = BM25(k1=1.2, b=0.75).fit(documents).search(questions, k=10)
>>> BM25().fit(documents).save("index"); BM25(b=0.3).load("index").search(questions)
>>> both = Hybrid([BM25(), Dense("e5-small-v2-int8")])
>>> runs = Rerank(both, "ms-marco-MiniLM-L-12-v2-int8").fit(documents).search(questions, k=10)
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
