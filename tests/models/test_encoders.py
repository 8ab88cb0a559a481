"""Encoders: prefixes, unit vectors, truncation, the cache, weights of the hub, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ragkit import models
from ragkit.errors import DataError, HashMismatch, ModelError, UsageError
from ragkit.models import base, encoders, registry
from ragkit.models.registry import card
from tests.models import support

INT8 = ("e5-small-v2-int8", "bge-small-en-v1.5-int8")
TEXTS = [
    "Where does the ferry leave?",
    "",
    "naïve café 日本 \U0001f600",
    "The ferry leaves from pier two at noon, weather permitting. " * 5,
]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The folder of a made model that lies in the hub's cache and is called "tiny"."""
    made = replace(card("e5-small-v2"), name="tiny", dimension=16, max_tokens=32)
    return support.in_hub_cache(monkeypatch, tmp_path, made, support.tiny_encoder)


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", *INT8])
def test_vectors_are_unit_float32_and_near_for_related_texts(name):
    (encoder,) = support.fetched(name)
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (4, encoder.dimension) == (4, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4), abs=1e-6)
    assert encoder.encode([]).shape == (0, 384)
    asked = encoder.encode(["How do I cancel my subscription?"], "query")
    passages = ["To end your plan, open Billing and press Cancel.", "The whale is a mammal."]
    near, far = (asked @ encoder.encode(passages).T)[0]
    assert near > far + 0.05


@pytest.mark.parametrize("name", INT8)
def test_a_quantised_vector_depends_on_its_text_alone(name):
    (encoder,) = support.fetched(name)
    together = encoder.encode(TEXTS, "query")
    for number, text in enumerate(TEXTS):
        assert (encoder.encode([text], "query")[0] == together[number]).all()


@pytest.mark.parametrize(("name", "pooling"), [(INT8[0], "mean"), (INT8[1], "cls")])
def test_a_vector_is_what_the_plain_session_gives(name, pooling):
    support.fetched(name)
    import onnxruntime
    from tokenizers import Tokenizer

    entry = card(name)
    folder = registry.need(entry)
    tokens = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens.no_padding()
    ids = np.array([tokens.encode(entry.query + TEXTS[0]).ids])
    assert ids[0, [0, -1]].tolist() == [101, 102]  # [CLS] and [SEP]
    feed = {"input_ids": ids, "attention_mask": ids**0, "token_type_ids": ids * 0}
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    states = onnxruntime.InferenceSession(folder / "model.onnx", options).run(None, feed)[0][0]
    expected = states[0] if pooling == "cls" else states.mean(axis=0)
    found = models.encoder(name).encode([TEXTS[0]], "query")[0]
    assert found == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


def test_kinds_put_the_prefix_before_the_text():
    (encoder,) = support.fetched("e5-small-v2-int8")
    for kind, prefix in [("query", "query: "), ("passage", "passage: "), (None, "")]:
        assert (encoder.encode(["a"], kind) == encoder.encode([prefix + "a"], None)).all()
    assert (encoder.encode(["a"]) == encoder.encode(["a"], "passage")).all()
    with pytest.raises(UsageError, match="no kind 'quary'\n.*'query'"):
        encoder.encode(["a"], "quary")


def test_longer_texts_are_cut_off_at_max_tokens_up_to_ten_megabytes():
    (encoder,) = support.fetched("bge-small-en-v1.5-int8")
    words = ["ferry"] * 510
    just, more = " ".join(words), " ".join([*words, "harbour"] * 3)
    assert encoder.count_tokens([just, more]).tolist() == [512, 2 + 3 * 511]
    text, word = "the ferry leaves at noon ", "x"  # a long word is unknown
    for one, other in (
        (just, more),
        (text * 800, text * 400_000),
        (word * 1_000, word * 2_000_000),
    ):
        assert (encoder.encode([one]) == encoder.encode([other])).all()


def test_windows_of_a_long_text_are_its_parts():
    (encoder,) = support.fetched("bge-small-en-v1.5-int8")
    text = " ".join(f"Sentence {number} says nothing new." for number in range(200))
    assert len(encoder.spans(text)) == encoder.count_tokens([text])[0] - 2
    pieces = encoder.windows(text, 100, 20)
    assert all(piece in text for piece in pieces)
    assert text.startswith(pieces[0])
    assert text.endswith(pieces[-1])
    assert encoder.windows("short", 100, 20) == ["short"]


def test_a_second_run_encodes_nothing(monkeypatch):
    support.fetched("e5-small-v2-int8")
    first = models.embed(TEXTS, model="e5-small-v2-int8")

    def fail(self, *texts):
        raise AssertionError("encoded again")

    base._opened.cache_clear()
    monkeypatch.setattr(encoders.Encoder, "_run", fail)
    assert (models.embed(TEXTS, model="e5-small-v2-int8") == first).all()
    with pytest.raises(AssertionError, match="encoded again"):
        models.embed(TEXTS, model="e5-small-v2-int8", kind="query")
    with pytest.raises(AssertionError, match="encoded again"):
        models.embed(TEXTS, model="e5-small-v2-int8", cache=False)


def test_the_cache_of_one_model_is_not_anothers(tmp_path):
    support.fetched(*INT8)
    one, other = (models.embed(["a"], model=name, cache=tmp_path) for name in INT8)
    assert not np.allclose(one, other)
    assert support.kept(tmp_path) == 2


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a", "texts should be several strings, found one"),
        (["a", None], "texts: number 2 should be a string, found None"),
        (["a\ud800"], "texts: number 1 is not valid Unicode: half a surrogate pair at character 2"),
    ],
)
def test_bad_texts(texts, message):
    with pytest.raises(UsageError, match=message):
        models.embed(texts)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_vector_without_direction_is_an_error_and_not_kept(tmp_path, monkeypatch, value):
    support.fetched("e5-small-v2-int8")
    monkeypatch.setattr(encoders.Encoder, "_run", lambda *_: np.full((2, 384), value))
    with pytest.raises(
        DataError, match="e5-small-v2-int8 gives a vector without direction for 'a'"
    ):
        models.embed(["a"], model="e5-small-v2-int8", cache=tmp_path)
    assert support.kept(tmp_path) == 0


def test_a_model_of_the_hub_is_checked_and_loaded(hub):
    encoder = models.encoder("tiny")
    vectors = encoder.encode(["the ferry leaves", "harbour"], "query")
    assert vectors.shape == (2, 16)
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(hub)).encode(
        ["query: the ferry leaves", "query: harbour"], normalize_embeddings=True
    )
    assert vectors == pytest.approx(plain, abs=1e-6)
    assert encoder.count_tokens(["noon " * 50]).tolist() == [54]
    long = encoder.encode(["noon " * 50, "noon " * 28])
    assert long[0] == pytest.approx(long[1], abs=1e-6)


def test_weights_that_are_not_what_the_hub_filed_are_refused(hub):
    with open(hub / "model.safetensors", "r+b") as stream:
        stream.seek(-1, 2)
        stream.write(b"\x55")
    with pytest.raises(HashMismatch, match=r"model.safetensors: sha256 .*, expected"):
        models.encoder("tiny").encode(["a"])


def test_files_that_cannot_be_loaded_are_named(hub):
    (hub / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"tiny: the files in .* could not be loaded") as caught:
        models.encoder("tiny").encode(["a"])
    assert "ragkit models fetch tiny" in caught.value.hint


def test_threads_of_torch_are_given_back(hub):
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        models.encoder("tiny").encode(["a"])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
