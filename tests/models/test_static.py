"""Static embeddings: means worked by hand, idf weights, Model2Vec's files, and real questions."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from ragkit import datasets, models
from ragkit.errors import DataError, HashMismatch, ModelError, UsageError
from ragkit.measures import metrics
from ragkit.models import base
from ragkit.models.registry import Card
from ragkit.systems.retrieval import Dense
from ragkit.systems.retrieval.saved import Kept
from tests.models import support

NAME = "static:wordllama"
VOCABULARY = {"[UNK]": 0, "ferry": 1, "harbour": 2, "the": 3}
TABLE = np.array([[9, 9], [3, 0], [0, 4], [1, 1]], dtype=np.float16)


def model(folder, pooling="static", most=512, **parts):
    """Write files as Model2Vec does, of two dimensions, and return their encoder."""
    folder.mkdir(exist_ok=True)
    save_file(parts or {"embeddings": TABLE}, folder / "model.safetensors")
    tokenizer = Tokenizer(WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    files = {"model.safetensors": {"bytes": 0}}
    made = Card("made", "encoder", "a/b", most, "MIT", files, pooling=pooling)
    return models.StaticEncoder(made, folder, 1)


def test_a_vector_is_the_mean_of_its_tokens(tmp_path):
    encoder = model(tmp_path)
    vectors = encoder.encode(["ferry", "ferry harbour", "ferry nobody harbour", "harbour the"])
    expected = [[1, 0], [0.6, 0.8], [0.6, 0.8], np.array([1, 5]) / np.sqrt(26)]
    assert (encoder.dimension, vectors.dtype) == (2, np.float32)
    assert vectors == pytest.approx(np.array(expected, dtype=float), abs=1e-6)
    assert encoder.encode([]).shape == (0, 2)
    with pytest.raises(DataError, match="a vector without direction for 'nobody'"):
        encoder.encode(["nobody"])


def test_idf_weights_are_worked_by_hand(tmp_path):
    encoder = model(tmp_path, "static-idf")
    with pytest.raises(UsageError, match="made has no idf yet\n.*fit"):
        encoder.encode(["ferry"])
    fitted = encoder.fit(iter(["the ferry", "the the harbour", "the ferry"]))
    assert encoder.unfitted
    # ln((1 + 3) / (1 + df)) + 1 with df 0, 2, 1 and 3
    expected = [np.log(4) + 1, np.log(4 / 3) + 1, np.log(2) + 1, 1]
    assert fitted.idf_ == pytest.approx(np.array(expected), abs=1e-6)
    vector = expected[1] * TABLE[1].astype(float) + expected[3] * TABLE[3]
    assert fitted.encode(["the ferry"])[0] == pytest.approx(vector / np.linalg.norm(vector))
    again = pickle.loads(pickle.dumps(fitted))
    assert again.identity == fitted.identity != encoder.identity
    assert (again.encode(["the ferry"]) == fitted.encode(["the ferry"])).all()


def test_idf_is_that_of_scikit_learn(tmp_path):
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["the ferry", "the harbour the", "ferry ferry", "the"]
    peer = TfidfVectorizer(vocabulary=["ferry", "harbour", "the"]).fit(texts)
    found = model(tmp_path, "static-idf").fit(texts).idf_
    assert found[1:] == pytest.approx(peer.idf_, abs=1e-6)


def test_tokens_are_mapped_and_weighted_as_model2vec_does(tmp_path):
    mapping = np.array([0, 1, 1, 0], dtype=np.int64)  # harbour shares the vector of ferry
    weights = np.array([1, 2, 1, 0.5], dtype=np.float32)
    rows = np.array([[0, 1], [1, 0]], dtype=np.float32)
    encoder = model(tmp_path, embeddings=rows, mapping=mapping, weights=weights)
    found = encoder.encode(["ferry the", "harbour the the"])
    expected = np.array([[2, 0.5], [1, 1]])
    assert found == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True))


def test_a_text_is_cut_off_and_a_vector_depends_on_it_alone(tmp_path):
    encoder = model(tmp_path, most=2)
    assert (encoder.encode(["the the ferry"]) == encoder.encode(["the the"])).all()
    many = ["ferry the", "the"] * 700  # more than one batch
    assert (encoder.encode(many) == np.tile(encoder.encode(many[:2]), (700, 1))).all()


def test_files_without_a_table_are_named(tmp_path):
    with pytest.raises(ModelError, match=r"made: no table of vectors among \['other'\]"):
        model(tmp_path, other=TABLE).encode(["ferry"])


def test_a_model_of_the_hub_by_name(tmp_path, monkeypatch):
    name = "model2vec:owner/made"
    with pytest.raises(ModelError, match="of model2vec:owner/made are not here") as caught:
        models.encoder(name)
    assert caught.value.hint == "run: ragkit models fetch model2vec:owner/made"
    hub = Card(name, "encoder", "owner/made", 512, "", {})
    folder = support.in_hub_cache(monkeypatch, tmp_path, hub, model)
    base._opened.cache_clear()
    assert models.embed(["ferry"], model=name).tolist() == [[1, 0]]
    with open(folder / "model.safetensors", "r+b") as stream:
        stream.seek(-1, 2)
        stream.write(b"\x55")
    base._opened.cache_clear()
    with pytest.raises(HashMismatch, match="model.safetensors: sha256"):
        models.embed(["ferry"], model=name)


def test_dense_weights_by_its_documents_and_keeps_the_weights(tmp_path):
    encoder = model(tmp_path / "model", "static-idf")
    texts = ["the ferry", "the harbour", "the the"]
    rows = pd.DataFrame({"doc_id": list("abc"), "title": None, "text": texts})
    dense = Dense(encoder).fit(iter(rows.to_dict("records")))
    assert (dense.encoder_.idf_ == encoder.fit(texts).idf_).all()
    asked = ["ferry", "the harbour"]
    loaded = Dense(encoder).load(dense.save(tmp_path / "index"))
    assert loaded.search(asked).equals(dense.search(asked))
    first = Kept(Dense(encoder)).fit(rows).search(asked)
    assert Kept(Dense(encoder)).fit(rows).search(asked).equals(first)
    # Other documents, other weights.
    more = pd.DataFrame({"doc_id": ["x"], "title": None, "text": ["harbour"]})
    assert (dense.fit(more).encoder_.idf_ == encoder.fit(["harbour"]).idf_).all()


def test_wordllama_is_the_registered_file():
    (encoder,) = support.fetched(NAME)
    assert encoder.dimension == encoder.card.dimension == 256
    asked = "How do I cancel my subscription?"
    texts = [asked, "To end your plan, open Billing and cancel.", "The whale is a mammal."]
    vectors = models.embed(texts, model=NAME)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.05
    # The plain mean of the tokens' vectors, without the special first one.
    ids = encoder._tokenizer.encode(asked, add_special_tokens=False).ids
    plain = encoder.weighted(np.ones(len(encoder._table))).encode([asked])[0]
    mean = encoder._table[ids].mean(axis=0)
    assert plain == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


@pytest.mark.parametrize(
    ("weights", "fields", "first", "fifth"),
    [
        (lambda idf: idf**0, ("text",), 0.515, 0.834),
        (lambda idf: idf - 1, ("text",), 0.536, 0.851),  # ln((1 + n) / (1 + df)) alone
        (None, ("text",), 0.543, 0.851),
        (None, ("title", "text"), 0.543, 0.870),
    ],
)
def test_wordllama_finds_the_articles_of_real_questions(mirror, weights, fields, first, fifth):
    """Shares of gold articles among the first 1 and 5, on 160 of WixQA's questions."""
    support.fetched(NAME)
    wixqa = datasets.load_optional("wixqa", profile="paper", data=mirror)
    if wixqa is None or len(wixqa.questions) != 160:
        pytest.skip("not the mirror's 160 questions of WixQA")
    dense = Dense(NAME, fields=fields)
    if weights:
        idf = Dense(NAME, fields=fields).fit(wixqa.documents).encoder_.idf_
        dense = Dense(dense.encoder.weighted(weights(idf)), fields=fields)
    runs = dense.fit(wixqa.documents).search(wixqa.questions, 5)
    found = metrics.retrieval(runs, wixqa.questions, measures=["R@1", "R@5"])
    sums = found.groupby("metric")["score"].sum() / len(wixqa.questions)
    assert sums.to_numpy() == pytest.approx([first, fifth], abs=0.0006)
