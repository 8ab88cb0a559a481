"""Encoders and rerankers by name, their weights checked by sha256 and their outputs kept.

>>> from ragkit import models
>>> models.encoder("all-MiniLM-L6-v2").encode(["a question"], kind="query").shape
(1, 384)
>>> models.reranker("ms-marco-MiniLM-L-12-v2-int8").score("a question", ["a passage"]).shape
(1,)
"""

from __future__ import annotations

from ragkit.models.encoders import Encoder, StaticEncoder, embed, encoder
from ragkit.models.registry import Card, cards
from ragkit.models.rerankers import Reranker, reranker

__all__ = ["Card", "Encoder", "Reranker", "StaticEncoder", "cards", "embed", "encoder", "reranker"]
