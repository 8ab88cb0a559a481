"""Weights for tests: the fetched ones where they are here, and tiny ones made on the spot."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from ragkit import models, paths
from ragkit.models import registry
from ragkit.models.registry import Card, cards, find

# Read before any test points $RAGKIT_CACHE elsewhere.
FETCHED = paths.cache_dir() / "models"
WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] query passage : the ferry leaves at noon harbour master".split()
)


def fetched(*names: str) -> list:
    """Return the models whose weights are really here; skip the test where some are not."""
    target = paths.cache_dir() / "models"
    if not target.exists() and FETCHED.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(FETCHED.resolve())
    for name in names:
        if find(cards()[name]) is None:
            pytest.skip(f"the weights of {name} are not here: {cards()[name].command}")
    opened = {"encoder": models.encoder, "reranker": models.reranker}
    return [opened[cards()[name].kind](name) for name in names]


def kept(folder: Path) -> int:
    """Return the number of results in the store of a folder."""
    with sqlite3.connect(folder / "store.sqlite") as base:
        return base.execute("SELECT COUNT(*) FROM results").fetchone()[0]


def tiny_tokenizer(folder: Path) -> None:
    from transformers import BertTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [*WORDS, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {word: number for number, word in enumerate(words)}
    BertTokenizerFast(vocabulary, model_max_length=32).save_pretrained(folder)


def in_hub_cache(monkeypatch, home: Path, card: Card, build) -> Path:
    """Lay a model out as the hub's own cache does, weights under their sha256, and register it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(home))
    monkeypatch.setattr(registry, "cards", lambda: {card.name: card})
    root = home / ("models--" + card.hub.replace("/", "--"))
    folder, weights = root / "snapshots" / ("0" * 40), "model.safetensors"
    for part in (folder, root / "refs", root / "blobs"):
        part.mkdir(parents=True)
    (root / "refs" / "main").write_text("0" * 40)
    build(folder)
    blob = root / "blobs" / hashlib.sha256((folder / weights).read_bytes()).hexdigest()
    (folder / weights).rename(blob)
    (folder / weights).symlink_to(blob)
    return folder


def tiny_config(**more):
    from transformers import BertConfig

    return BertConfig(
        vocab_size=128,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        **more,
    )


def tiny_encoder(folder: Path) -> None:
    """Save a BERT of one layer with random weights, as sentence-transformers saves its models."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules as parts
    from transformers import BertModel

    torch.manual_seed(0)
    tiny_tokenizer(folder)
    BertModel(tiny_config()).save_pretrained(folder)
    transformer = parts.Transformer(str(folder))
    pooling = parts.Pooling(transformer.get_embedding_dimension(), "mean")
    SentenceTransformer(modules=[transformer, pooling]).save(str(folder))


def tiny_reranker(folder: Path) -> None:
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(0)
    tiny_tokenizer(folder)
    BertForSequenceClassification(tiny_config(num_labels=1)).save_pretrained(folder)
