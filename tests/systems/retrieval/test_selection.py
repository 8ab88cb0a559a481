"""Choosing on one half: by hand, no peeking, and bad input."""

from __future__ import annotations

import pandas as pd
import pytest

from ragkit.errors import DataError
from ragkit.systems.retrieval.selection import choose

IDS = [f"q{number}" for number in range(8)]
QUESTIONS = pd.DataFrame({"question_id": IDS, "gold_doc_ids": [("g",)] * 8})


def runs(**right):
    """Return runs of one document: the gold one for the questions named."""
    return pd.DataFrame(
        [
            (system, name, 1, "g" if name in hits else "x", 1.0)
            for system, hits in right.items()
            for name in IDS
        ],
        columns=["system", "question_id", "rank", "doc_id", "score"],
    )


def test_the_choice_is_made_on_one_half_and_reported_on_the_other():
    even, odd = IDS[::2], IDS[1::2]
    table = choose(runs(even=even, odd=odd, none=[]), QUESTIONS, measures=["R@1"], seed=3)
    assert len(table) == 2 * 3
    assert table.groupby("half")["chosen"].sum().tolist() == [1, 1]
    for system, total in (("even", 4), ("odd", 4), ("none", 0)):
        rows = table[table["system"] == system]
        # The two halves are the other's counterpart, and hold every question once.
        assert rows["here"].tolist() == rows["value"].tolist()[::-1]
        assert rows["here"].sum() * 4 == total
    for _, part in table.groupby("half"):
        assert part.loc[part["chosen"], "here"].item() == part["here"].max()
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
    assert (table["n"] == 4).all()


def test_what_is_reported_has_no_part_in_the_choice():
    first = choose(runs(a=IDS[:5], b=IDS[3:]), QUESTIONS, measures=["R@1"])
    half = first[first["half"] == "first"]
    other = [name for name in IDS if name not in _dealt(QUESTIONS)]
    changed = choose(
        runs(a=[n for n in IDS[:5] if n not in other], b=IDS[3:]), QUESTIONS, measures=["R@1"]
    )
    assert changed[changed["half"] == "first"]["here"].tolist() == half["here"].tolist()
    assert changed[changed["half"] == "first"]["chosen"].tolist() == half["chosen"].tolist()


def _dealt(questions):
    """Return the first half: the questions that a system right on them alone scores 1 on."""
    found = []
    for name in questions["question_id"]:
        table = choose(runs(only=[name], none=[]), questions, measures=["R@1"])
        here = table[(table["half"] == "first") & (table["system"] == "only")]["here"].item()
        found += [name] if here else []
    return found


def test_equal_systems_give_the_first_and_the_seed_deals():
    assert choose(runs(b=IDS, a=IDS), QUESTIONS).query("chosen")["system"].unique() == ["b"]
    right = runs(a=IDS[:3])
    values = {choose(right, QUESTIONS, measures=["R@1"], seed=seed)["here"][0] for seed in range(9)}
    assert len(values) > 1


def test_one_question_has_no_halves():
    with pytest.raises(DataError, match="two halves need at least 2 questions, found 1"):
        choose(runs(a=IDS), QUESTIONS[:1])
