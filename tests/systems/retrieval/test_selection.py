"""Choosing on one half: by hand, no peeking, and bad input."""

from __future__ import annotations

from itertools import product

import pandas as pd
import pytest

from ragkit.errors import DataError
from ragkit.systems.retrieval.selection import choose
from tests.conftest import frame_of

IDS = [f"q{number}" for number in range(8)]
QUESTIONS = pd.DataFrame({"question_id": IDS, "gold_doc_ids": [("g",)] * 8})


def runs(**right):
    """Return runs of one document: the gold one for the questions named."""
    pairs = product(right, IDS)
    return frame_of("runs", *((s, q, 1, "g" if q in right[s] else "x", 1.0) for s, q in pairs))


def test_the_choice_is_made_on_one_half_and_reported_on_the_other():
    made = runs(even=IDS[::2], odd=IDS[1::2], none=[])
    table = choose(made, QUESTIONS, measures=["R@1"], seed=3)
    assert len(table) == 2 * 3
    for system, total in (("even", 4), ("odd", 4), ("none", 0)):
        rows = table[table["system"] == system]
        # The two halves are the other's counterpart, and hold every question once.
        assert rows["here"].tolist() == rows["value"].tolist()[::-1]
        assert rows["here"].sum() * 4 == total
    for _, part in table.groupby("half"):
        assert part["here"][part["chosen"]].tolist() == [part["here"].max()]
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
    assert (table["n"] == 4).all()


def test_what_is_reported_has_no_part_in_the_choice():
    def first(**systems):
        table = choose(runs(**systems), QUESTIONS, measures=["R@1"])
        return table[table["half"] == "first"].set_index("system")

    # A question belongs to the first half if a system that is right on it alone scores there.
    half = [name for name in IDS if first(only=[name], none=[])["here"]["only"]]
    whole = first(a=IDS[:5], b=IDS[3:])
    less = first(a=[name for name in IDS[:5] if name in half], b=IDS[3:])
    assert less[["here", "chosen"]].equals(whole[["here", "chosen"]])


def test_equal_systems_give_the_first_the_seed_deals_and_one_question_has_no_halves():
    assert choose(runs(b=IDS, a=IDS), QUESTIONS).query("chosen")["system"].unique() == ["b"]
    right = runs(a=IDS[:3])
    values = {choose(right, QUESTIONS, measures=["R@1"], seed=seed)["here"][0] for seed in range(9)}
    assert len(values) > 1
    with pytest.raises(DataError, match="two halves need at least 2 questions, found 1"):
        choose(runs(a=IDS), QUESTIONS[:1])
