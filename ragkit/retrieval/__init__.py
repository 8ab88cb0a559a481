"""Retrieval: documents in, a `runs` frame out.

>>> from ragkit.retrieval import BM25
>>> runs = BM25(k1=1.2, b=0.75).fit(documents).search(questions, k=10)
"""

from __future__ import annotations

from ragkit.retrieval.bm25 import BM25

__all__ = ["BM25"]
