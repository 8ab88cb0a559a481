from __future__ import annotations

import numpy as np
import pytest

from ragkit import checks
from ragkit.errors import UsageError


def test_whole_numbers():
    assert checks.whole(np.int64(3), "k") == 3
    assert isinstance(checks.whole(np.int64(3), "k"), int)
    for bad in (0, 1.0, True, "3", None, float("nan")):
        with pytest.raises(UsageError, match="k should be a whole number of at least 1, found"):
            checks.whole(bad, "k")
    with pytest.raises(UsageError, match="from 1 to 1,000"):
        checks.whole(1001, "k", most=1000)


def test_numbers():
    assert checks.number(1, "b", least=0, most=1) == 1.0
    for bad in (float("nan"), float("inf"), "big", True, None, -0.1, 1.1):
        with pytest.raises(UsageError, match="b should be a number from 0 to 1, found"):
            checks.number(bad, "b", least=0, most=1)
    with pytest.raises(UsageError, match="b should be a number, found 'x'"):
        checks.number("x", "b")
    with pytest.raises(UsageError, match="of at most 2, found 3"):
        checks.number(3, "b", most=2)


def test_choices_and_options_name_the_nearest():
    assert checks.choice("rrf", "method", ["rrf", "convex"]) == "rrf"
    with pytest.raises(UsageError, match="no method 'rff'\n  hint: did you mean 'rrf'"):
        checks.choice("rff", "method", ["rrf", "convex"])
    checks.options({"k1": 1}, ["k1", "b"], "bm25")
    with pytest.raises(UsageError, match="no option of generate 'bugdet'"):
        checks.options({"bugdet": 3}, ["budget"], "generate")


def test_strings():
    assert checks.strings(["a"], "texts") == ["a"]
    with pytest.raises(UsageError, match="several strings, found one"):
        checks.strings("a", "texts")
    with pytest.raises(UsageError, match="texts: number 2 should be a string, found None"):
        checks.strings(["a", None], "texts")
    with pytest.raises(UsageError, match="number 2 is not valid Unicode: .* at character 2"):
        checks.strings(["é", "a\ud800"], "texts")
