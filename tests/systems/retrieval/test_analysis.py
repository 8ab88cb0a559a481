"""Words as Lucene's standard analyzer finds them; expected terms were read off Lucene 8.7."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from ragkit.systems.retrieval import analysis
from ragkit.systems.retrieval.bm25 import count_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("don't O'Neil's ’tis it’s 'quoted'", "don't o'neil's tis it’s quoted"),
        ("3.14 1,000 1.2.3 1;2 1:2 v1.2 a.1", "3.14 1,000 1.2.3 1;2 1 2 v1.2 a 1"),
        ("well-known foo_bar __x__ __ e.g. U.S.A. a:b", "well known foo_bar __x__ e.g u.s.a a:b"),
        ("http://x.y/z?q=1&r=a_b me@x.com C++ C#", "http x.y z q 1 r a_b me x.com c c"),
        ("你好世界 こんにち カタカナ ｶﾅ 한국어", "你 好 世 界 こ ん に ち カタカナ ｶﾅ 한국어"),
        ("ภาษาไทย ລາວ", "ภาษาไทย ລາວ"),
        ("👍 👍🏽 👨‍👩‍👧 🇩🇪🇫🇷 ☕️ 1️⃣ #️⃣ ★ ✓ →", "👍 👍🏽 👨‍👩‍👧 🇩🇪 🇫🇷 ☕️ 1️⃣ #️⃣ ★"),
        ("İstanbul ΟΔΟΣ ÄÖ ﬁ Ⅳ", "istanbul οδοσ äö ﬁ ⅳ"),
        ("soft\u00adhyphen e\u0301te\u0301", "soft\u00adhyphen e\u0301te\u0301"),
        ('א"א אב\' ab"c', "א\"א אב' ab c"),
        (" …—\n", ""),
    ],
)
def test_standard_terms(text, terms):
    assert analysis.standard_terms(text) == terms.split()


def test_long_words_come_in_pieces_of_255_units():
    assert list(map(len, analysis.standard_terms("x" * 600 + " y"))) == [255, 255, 90, 1]
    # Two units each: 127 of them are 254 units, and the half of one more is no letter.
    assert list(map(len, analysis.standard_terms("\U00010400" * 200))) == [127, 73]


def test_ascii_texts_need_no_table():
    text = "Don't 3.14 a_b x.y:z 1,2;3 __ _9_ a.1 'q' e-mail\t#*1 --"
    assert analysis._words().findall(text) == analysis._ascii_words().findall(text)


def test_nothing_joins_across_white_space():
    # The index looks at one piece between white space at a time; see count_terms.
    spaces = [chr(point) for point in range(0x110000) if chr(point).isspace()]
    joined = "".join(analysis.character_classes().values())
    assert [space for space in spaces if re.match(f"[{joined}]", space)] == ["\u202f"]


def test_pieces_give_the_terms_of_the_text():
    text = "One two-three, 你好 a\u202fb x.y — one"
    expected = analysis.standard_terms(text)
    terms, counts = count_terms([text, "", "one"], analysis.standard_terms)
    assert set(terms) == set(expected)
    assert {t: counts[0, column] for t, column in terms.items()} == Counter(expected)
    assert counts.sum(axis=1).tolist() == [len(expected), 0, 1]
